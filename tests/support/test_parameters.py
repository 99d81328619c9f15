"""Parameters: what a file may say, what is drawn, and when a lesson is passed."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.support.errors import UserError
from estragon.support.parameters import Curriculum, ParameterSpec, Plan

FILE = """
parameters:
  gravity: 9.8
  friction: {uniform: [0.2, 0.8]}
  goal_radius: {log_uniform: [0.1, 1.0]}
  wind: {normal: [0.0, 0.3]}
  map: {choice: [small, large]}
curriculum:
  - name: near
    parameters: {goal_distance: {uniform: [1, 3]}}
    until: {success_rate: 0.8, window: 100, min_episodes: 50}
  - name: far
    parameters: {goal_distance: {uniform: [3, 10]}, gravity: 5}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    path = tmp_path / "parameters.yaml"
    path.write_text(FILE)
    return Plan.read(path)


def test_values_stay_in_their_ranges_and_spread_over_them(plan: Plan) -> None:
    drawn = [plan.draw(0, 3, episode) for episode in range(2000)]
    columns = {name: [values[name] for values in drawn] for name in drawn[0]}
    assert set(columns["gravity"]) == {9.8}
    assert set(columns["map"]) == {"small", "large"}
    friction, radius, wind, distance = (
        np.array(columns[name], dtype=float)
        for name in ("friction", "goal_radius", "wind", "goal_distance")
    )
    assert 0.2 <= friction.min() < 0.21
    assert 0.79 < friction.max() <= 0.8
    assert 0.1 <= radius.min() < radius.max() <= 1.0
    assert np.median(radius) == pytest.approx(math.sqrt(0.1), rel=0.1)
    assert (wind.mean(), wind.std()) == pytest.approx((0.0, 0.3), abs=0.03)
    assert 1.0 <= distance.min() < distance.max() <= 3.0


def test_a_lesson_overrides_what_holds_for_all(plan: Plan) -> None:
    assert plan.draw(1, 0, 0)["gravity"] == 5.0
    assert plan.draw(1, 0, 0)["goal_distance"] >= 3.0  # type: ignore[operator]


def test_values_depend_on_seed_lesson_and_episode_alone(plan: Plan) -> None:
    assert plan.draw(0, 1, 7) == plan.draw(0, 1, 7)
    others = [plan.draw(0, 1, 8), plan.draw(0, 2, 7), plan.draw(1, 1, 7)]
    assert all(values["friction"] != plan.draw(0, 1, 7)["friction"] for values in others)


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "parameters.json"
    path.write_text(json.dumps({"parameters": {"wind": {"normal": [0, 1]}}}))
    assert list(Plan.read(path).draw(0, 0, 0)) == ["wind"]


def test_small_numbers_in_json_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "parameters.json"
    path.write_text(json.dumps({"parameters": {"a": 1e-9, "b": {"log_uniform": [1e-9, 1e-9]}}}))
    assert "1e-09" in path.read_text()
    drawn = Plan.read(path).draw(0, 0, 0)
    assert drawn["a"] == 1e-9
    assert drawn["b"] == pytest.approx(1e-9)


@pytest.mark.parametrize("text", ["", "{", "parameters: {a: 1}", '{"parameters": {"a": NaN}}'])
def test_what_is_not_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "parameters.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"parameters\.json: not JSON"):
        Plan.read(path)


LESSON = {"name": "a", "until": {"reward": 1}}
BAD: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "neither"),
    "a list": ([1], "object"),
    "unknown section": ({"params": {}}, "params"),
    "unknown sampler": ({"parameters": {"a": {"beta": [1, 2]}}}, "beta"),
    "two samplers": ({"parameters": {"a": {"uniform": [1, 2], "constant": 1}}}, "one of"),
    "three ends": ({"parameters": {"a": {"uniform": [1, 2, 3]}}}, "length"),
    "upside down": ({"parameters": {"a": {"uniform": [2, 1]}}}, "lower end"),
    "log of 0": ({"parameters": {"a": {"log_uniform": [0, 1]}}}, "above 0"),
    "negative deviation": ({"parameters": {"a": {"normal": [0, -1]}}}, "deviation"),
    "infinite": ({"parameters": {"a": math.inf}}, "finite"),
    "no choice": ({"parameters": {"a": {"choice": []}}}, "length"),
    "never reached": ({"curriculum": [{"name": "a"}, {"name": "b"}]}, "b is never reached"),
    "same name": ({"curriculum": [LESSON, {"name": "a"}]}, "different names"),
    "two criteria": (
        {"curriculum": [{"name": "a", "until": {"reward": 1, "progress": 0.5}}]},
        "one of reward",
    ),
    "no criterion": ({"curriculum": [{"name": "a", "until": {}}]}, "one of reward"),
    "more than all": ({"curriculum": [{"name": "a", "until": {"success_rate": 1.5}}]}, "1"),
    "window too small": (
        {"curriculum": [{"name": "a", "until": {"reward": 1, "window": 10}}]},
        "at most the window of 10",
    ),
    "back without having been there": (
        {"curriculum": [{"name": "a", "until": {"reward": 1, "fall_back": 2}}]},
        "fall_back",
    ),
    "progress goes back": (
        {
            "curriculum": [
                {"name": "a", "until": {"progress": 0.5}},
                {"name": "b", "until": {"progress": 0.4}},
                {"name": "c"},
            ]
        },
        "lesson b",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    found, named = BAD[case]
    with pytest.raises(UserError, match=named):
        Plan.parse(found)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "parameters.yaml"
    with pytest.raises(UserError, match=r"parameters\.yaml"):
        Plan.read(path)
    path.write_text("parameters: [")
    with pytest.raises(UserError, match=r"parameters\.yaml"):
        Plan.read(path)


SPECS = [
    ParameterSpec("gravity", 9.8, 0.0, 20.0),
    ParameterSpec("map", "small", choices=("small", "large")),
    ParameterSpec("wind", 0.0, -1.0, 1.0),
]


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"gravty": 9.0}, "gravity, map, wind"),
        ({"gravity": 21.0}, "0 to 20"),
        ({"gravity": {"uniform": [-1.0, 5.0]}}, "0 to 20, got -1 to 5"),
        ({"gravity": {"choice": [5.0, 30.0]}}, "got 5 to 30"),
        ({"gravity": "low"}, "number, got low"),
        ({"map": {"choice": ["small", "huge"]}}, "huge"),
    ],
)
def test_what_the_game_does_not_declare_is_refused(parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        Plan.parse({"parameters": parameters}).check(SPECS)


def test_what_it_declares_is_accepted() -> None:
    Plan.parse({"parameters": {"gravity": 5, "map": "large", "wind": {"normal": [0, 1]}}}).check(
        SPECS
    )


def lessons(**until: Any) -> Curriculum:
    plan = Plan.parse(
        {
            "curriculum": [
                {"name": "a", "until": until},
                {"name": "b", "until": {"reward": 1e9}},
                {"name": "c"},
            ]
        }
    )
    return Curriculum(plan)


def test_a_lesson_is_passed_when_the_window_says_so() -> None:
    own = lessons(success_rate=0.75, window=8, min_episodes=4, key="won")
    changes = [own.add(0.0, {"won": won}) for won in (1, 1, 0, 0, 1, 1, 1, 1, 1)]
    assert changes == [False] * 7 + [True, False]
    assert own.name == "b"


def test_too_few_episodes_pass_nothing() -> None:
    own = lessons(reward=1.0, window=10, min_episodes=5)
    assert [own.add(5.0, {}) for _ in range(5)] == [False] * 4 + [True]


def test_share_of_training() -> None:
    own = lessons(progress=0.5)
    assert not own.add(0.0, {})
    own.progress = 0.5
    assert own.add(0.0, {})
    assert own.name == "b"


def test_falling_back() -> None:
    plan = Plan.parse(
        {
            "curriculum": [
                {"name": "a", "until": {"reward": 1.0, "window": 2, "min_episodes": 2}},
                {
                    "name": "b",
                    "until": {"reward": 5.0, "window": 2, "min_episodes": 2, "fall_back": 0.5},
                },
                {"name": "c"},
            ]
        }
    )
    own = Curriculum(plan)
    names = []
    for reward in (2.0, 2.0, 0.0, 0.0, 2.0, 2.0):
        own.add(reward, {})
        names.append(own.name)
    assert names == ["a", "b", "b", "a", "a", "b"]


def test_saved_it_goes_on_in_the_same_lesson() -> None:
    own, other = (lessons(reward=1.0, window=10, min_episodes=6) for _ in range(2))
    for _ in range(4):
        own.add(5.0, {})
    other.restore(json.loads(json.dumps(own.save())))
    assert [one.add(5.0, {}) for one in (own, other)] == [False, False]
    assert [one.add(5.0, {}) for one in (own, other)] == [True, True]
    assert own.save() == other.save()


def test_a_rule_of_ones_own() -> None:
    plan = lessons(reward=1e9).plan
    own = Curriculum(plan, rule=lambda _, __, info: 2 if info.get("bored") else None)
    assert not own.add(0.0, {})
    assert own.add(0.0, {"bored": True})
    assert own.name == "c"
