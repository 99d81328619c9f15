"""Rule numbers that differ from episode to episode: drawn by name, played as rules of their own."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas
from estragon.tag.layout import load_layouts
from estragon.tag.rules import VARIABLE, Rules, load_rules
from estragon.tag.state import VARIED, VARIED_CONSTANTS, Constants, constants_of
from estragon.tag.variation import Variation

ARENAS, SEED, FIRST = 4, 7, 3
EVERY_NUMBER = {
    "gravity_mps2": {"uniform": [4, 20]},
    "speed_mps": {"uniform": [2, 16]},
    "acceleration_mps2": {"log_uniform": [5, 80]},
    "jump_speed_mps": {"normal": [5.5, 2.0]},
    "time_limit_sec": {"uniform": [2, 4]},
    "tag_reach_m": {"choice": [0, 0.125, 0.4]},
    "spawn_separation_m": {"uniform": [0, 10]},
}
LAYOUTS = ["colonnade", "rooms", "random:0-1"]
TWO_LESSONS = [
    {"name": "slow", "parameters": {"speed_mps": 2, "layout": "empty"}, "until": {"progress": 0.5}},
    {"name": "fast", "parameters": {"speed_mps": {"uniform": [10, 16]}, "layout": "rooms"}},
]


def variation_of(
    folder: Path, rules: Rules | None = None, layout: str | None = None, **contents: Any
) -> Variation:
    path = folder / "parameters.json"
    path.write_bytes(msgspec.json.encode(contents))
    return Variation.read(path, rules or load_rules(), layout)


def arenas_of(variation: Variation, rules: Rules | None = None, **options: Any) -> Arenas:
    options = {"count": ARENAS, "first_arena": FIRST, "threads": 1} | options
    return Arenas(options.pop("count"), rules=rules, seed=SEED, variation=variation, **options)


class Episode(NamedTuple):
    """One that was played: its rules, what was done, and everything that came of it."""

    rules: Rules
    arena: int
    number: int
    actions: list[np.ndarray]
    seen: list[np.ndarray]
    rewards: list[np.ndarray]


def played(arenas: Arenas, decisions: int) -> list[Episode]:
    """The episodes that ended."""

    def begun(a: int) -> Episode:
        number = int(arenas.arenas["episode"][a])
        seen = [arenas.observations[a].copy()]
        return Episode(arenas.rules_in_force[a], a, number, [], seen, [])

    random = np.random.default_rng(1)
    arenas.reset()
    running = [begun(a) for a in range(arenas.count)]
    ended = []
    for _ in range(decisions):
        actions = random.uniform(-1, 1, (arenas.count, 2, 3)).astype(np.float32)
        results = arenas.step(actions)
        for a, episode in enumerate(running):
            over = bool(results.ends[a])
            seen = results.final_observations if over else results.observations
            episode.actions.append(actions[a])
            episode.seen.append(seen[a].copy())
            episode.rewards.append(results.rewards[a].copy())
            if over:
                ended.append(episode)
                running[a] = begun(a)
    return ended


@pytest.mark.parametrize("rule_set", ["seek", "transfer", "hide"])
def test_an_episode_is_that_of_an_engine_with_its_rules(rule_set: str, tmp_path: Path) -> None:
    rules = load_rules(rules=rule_set)
    chosen = EVERY_NUMBER | {"layout": {"choice": LAYOUTS}}
    variation = variation_of(tmp_path, rules, parameters=chosen)
    episodes = played(arenas_of(variation, rules), 200)
    assert len(episodes) > ARENAS
    assert len({episode.rules.digest for episode in episodes}) == len(episodes)
    for episode in episodes:
        drawn = variation.values(0, SEED, FIRST + episode.arena, episode.number)
        assert episode.rules == rules.varied(drawn)
        alone = Arenas(
            1,
            rules=episode.rules,
            layout=variation.layouts,
            seed=SEED,
            first_arena=FIRST + episode.arena,
            threads=1,
        )
        alone.reset()
        alone.arenas["episode"] = episode.number - 1
        seen = [alone.next_episode()[0].copy()]
        rewards = []
        for action in episode.actions:
            results = alone.step(action[None], restart=False)
            seen.append(results.observations[0].copy())
            rewards.append(results.rewards[0].copy())
        assert results.ends[0]
        assert np.array_equal(seen, episode.seen)
        assert np.array_equal(rewards, episode.rewards)


def test_values_belong_to_the_arena_and_the_episode_alone(tmp_path: Path) -> None:
    variation = variation_of(tmp_path, parameters=EVERY_NUMBER)
    together = played(arenas_of(variation, threads=2), 120)
    for a in range(ARENAS):
        alone = played(arenas_of(variation, count=1, first_arena=FIRST + a), 120)
        theirs = {e.number: e.rules for e in together if e.arena == a}
        for episode in alone:
            assert theirs.get(episode.number, episode.rules) == episode.rules
    one, other = variation.values(0, 1, 2, 3), variation.values(0, 1, 3, 2)
    assert one == variation.values(0, 1, 2, 3)
    assert one != other
    assert one != variation.values(0, 2, 2, 3)


def test_drawn_numbers_lie_in_their_range_and_in_a_rules_file(tmp_path: Path) -> None:
    wide = {
        "jump_speed_mps": {"normal": [7.0, 5.0]},
        "tag_reach_m": {"log_uniform": [0.00001, 0.4]},
    }
    variation = variation_of(tmp_path, parameters=EVERY_NUMBER | wide)
    drawn = [variation.values(0, 0, 0, episode) for episode in range(300)]
    for name, (_, low, high) in VARIABLE.items():
        values = [each[name] for each in drawn]
        assert low <= min(values) < max(values) <= high
        assert all("e" not in repr(value) and len(repr(value)) < 9 for value in values)
    assert {0.0, 8.0} <= {each["jump_speed_mps"] for each in drawn}


def test_the_constants_that_vary_come_first() -> None:
    rules = load_rules()
    assert (VARIED.names or ())[:VARIED_CONSTANTS] == Constants._fields[:VARIED_CONSTANTS]
    extreme = rules.varied({name: low + 0.5 for name, (_, low, _) in VARIABLE.items()})
    changed = [
        one != other for one, other in zip(*map(constants_of, (rules, extreme)), strict=True)
    ]
    assert changed == [place < VARIED_CONSTANTS for place in range(len(changed))]
    assert rules.varied(rules.variable()) == rules


def test_layouts_are_drawn_as_the_option_does(tmp_path: Path) -> None:
    variation = variation_of(tmp_path, parameters={"layout": {"choice": LAYOUTS}})
    chosen = arenas_of(variation)
    usual = Arenas(ARENAS, layout=",".join(LAYOUTS), seed=SEED, first_arena=FIRST, threads=1)
    chosen.reset()
    usual.reset()
    random = np.random.default_rng(0)
    for _ in range(450):
        actions = random.uniform(-1, 1, (ARENAS, 2, 3)).astype(np.float32)
        one, other = chosen.step(actions), usual.step(actions)
        assert all(np.array_equal(*pair) for pair in zip(one, other, strict=True))
        assert np.array_equal(chosen.layout_index, usual.layout_index)
    assert chosen.arenas["episode"].min() >= 2
    assert chosen.layouts == usual.layouts == variation.layouts_of(0)


def test_another_lesson_begins_with_the_next_episode(tmp_path: Path) -> None:
    variation = variation_of(tmp_path, curriculum=TWO_LESSONS)
    arenas = arenas_of(variation)
    arenas.reset()
    arenas.teach(1)
    arenas.step(np.zeros((ARENAS, 2, 3), dtype=np.float32))
    assert {rules.agent.speed_mps for rules in arenas.rules_in_force} == {2.0}
    arenas.next_episode()
    assert min(rules.agent.speed_mps for rules in arenas.rules_in_force) >= 10.0
    assert [variation.layouts[index].name for index in arenas.layout_index] == ["rooms"] * ARENAS


def test_it_goes_on_from_what_was_saved(tmp_path: Path) -> None:
    """In the middle of an episode of a lesson that is over."""
    variation = variation_of(tmp_path, parameters=EVERY_NUMBER, curriculum=TWO_LESSONS)
    arenas, other = arenas_of(variation), arenas_of(Variation.restore(variation.save()))
    arenas.reset()
    actions = np.random.default_rng(2).uniform(-1, 1, (90, ARENAS, 2, 3)).astype(np.float32)
    for each in actions[:20]:
        arenas.step(each)
    arenas.teach(1)
    seen = other.restore(arenas.save())
    assert np.array_equal(seen, arenas.observations)
    for each in actions[20:]:
        one, two = arenas.step(each), other.step(each)
        assert all(np.array_equal(*pair) for pair in zip(one, two, strict=True))
    assert arenas.arenas["episode"].max() > 0
    assert arenas.rules_in_force == other.rules_in_force


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        ({"parameters": {"wings": 2}}, "wings: the game has no such parameter; it has acc"),
        ({"parameters": {"size_m": 2}}, "size_m: the game has no such parameter"),
        ({"parameters": {"speed_mps": {"uniform": [1, 9]}}}, "speed_mps: expected 2 to 16, got 1"),
        ({"parameters": {"speed_mps": "fast"}}, "speed_mps: expected a number, got fast"),
        ({"parameters": {"speed_mps": {"even": [1, 9]}}}, "speed_mps: Object contains unknown"),
        ({"parameters": {"layout": 3}}, "layout: expected the name of a layout"),
        ({"parameters": {"layout": {"uniform": [1, 3]}}}, "layout: expected the name of a layout"),
        ({"parameters": {"layout": "moon"}}, "no layout 'moon'"),
        (
            {"parameters": {"layout": "rooms", "tag_reach_m": {"uniform": [0, 1]}}},
            "thinner than the tag reach of 1 m",
        ),
        (
            {"curriculum": [{"name": "a", "until": {"reward": 1}}, {"name": "b"}]},
            "lesson a: until: tag knows progress and success_rate",
        ),
        (
            {
                "curriculum": [
                    {"name": "a", "until": {"success_rate": 1, "key": "x"}},
                    {"name": "b"},
                ]
            },
            "lesson a: until: tag knows progress and success_rate",
        ),
        ({}, "neither parameters nor curriculum"),
    ],
)
def test_a_bad_file_is_one_line(contents: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        variation_of(tmp_path, **contents)
    assert says in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "parameters.json"))
    assert "\n" not in str(error.value)


def test_the_layout_option_is_for_lessons_without_one(tmp_path: Path) -> None:
    named = {"layout": "rooms"}
    with pytest.raises(UserError, match="leave out --layout empty"):
        variation_of(tmp_path, layout="empty", parameters=named)
    lessons = [{"name": "a", "until": {"progress": 0.5}}, {"name": "b", "parameters": named}]
    variation = variation_of(tmp_path, layout="empty", curriculum=lessons)
    rules = load_rules()
    assert variation.layouts_of(0) == load_layouts("empty", rules)
    assert variation.layouts_of(1) == load_layouts("rooms", rules)
