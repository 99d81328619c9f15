"""The engine agrees to the bit with a plain-Python one written from docs/physics.md alone."""

import json
from typing import Any

import numpy as np
import pytest

from estragon.support import paths
from estragon.tag.arenas import Arenas
from estragon.tag.layout import Box, Layout, load_layouts
from estragon.tag.rules import GOING_ON, load_rules
from estragon.tag.state import vectors
from estragon.tag.threefry import threefry
from tests.tag import reference
from tests.tag.reference import ReferenceMatch

EPISODES = 4
CASES = [
    (layout, rules, rewards, clinging)
    for layout, rules, rewards in (
        ("empty", "seek", "default"),
        ("empty", "transfer", "classic"),
        ("four_corners", "seek", "classic"),
        ("central_cross", "transfer", "default"),
        ("playground", "seek", "default"),
        ("playground", "transfer", "classic"),
        ("random:0-15", "transfer", "default"),
        ("four_corners,random:16-31,central_cross", "seek", "classic"),
        ("blocks,house", "hide", "hide"),
    )
    for clinging in (False, True)
]
"""18 cases × 4 episodes = 72 episodes, in half of which the agents cling to each other."""


@pytest.mark.parametrize(("layout", "rules", "rewards", "clinging"), CASES)
@pytest.mark.parametrize("count", [EPISODES, pytest.param(100, marks=pytest.mark.prove)])
def test_whole_episodes_are_identical(
    layout: str, rules: str, rewards: str, clinging: bool, count: int
) -> None:
    loaded = load_rules(rules=rules, rewards=rewards)
    seed = CASES.index((layout, rules, rewards, clinging)) + 1
    arenas = Arenas(count, rules=loaded, layout=layout, seed=seed)
    arenas.reset()
    matches = _references(layout, rules, rewards, seed, count)
    for a, match in enumerate(matches):
        match.begin(0)
        _assert_same_sight(arenas.observations[a], match.sense(), f"arena {a} at the start")
    random = np.random.default_rng(seed)
    playing = list(range(count))
    step = contacts = 0
    while playing:
        actions = _actions(arenas, random, clinging)
        results = arenas.step(actions, restart=False)
        contacts += int((results.distances < 1.05).sum())
        for a in list(playing):
            match, where = matches[a], f"seed {seed}, arena {a}, decision {step}"
            end, winner = match.decide(actions[a].tolist())
            assert (end, winner) == (results.ends[a], results.winners[a]), where
            _assert_same_sight(results.observations[a], match.sense(), where)
            _assert_same_state(arenas, a, match, where)
            assert np.array_equal(np.array(match.rewards, dtype=np.float32), results.rewards[a]), (
                where
            )
            assert np.array_equal(np.array(match.terms, dtype=np.float32), results.terms[a]), where
            if end != GOING_ON:
                playing.remove(a)
        step += 1
    if clinging and rules == "transfer":
        assert contacts > 20, "agents were meant to touch"


def _references(
    layout: str, rules: str, rewards: str, seed: int, count: int
) -> list[ReferenceMatch]:
    rules_json: dict[str, Any] = json.loads(paths.rules_file().read_text())
    rules_json |= {"rules": rules, "rewards": rewards}
    layouts = [
        {"boxes": [{"at_m": box.at_m, "size_m": box.size_m} for box in layout_.boxes]}
        for layout_ in load_layouts(layout, load_rules())
    ]
    return [ReferenceMatch(rules_json, layouts, seed=seed, arena=a) for a in range(count)]


def _actions(arenas: Arenas, random: np.random.Generator, clinging: bool) -> np.ndarray:
    """Random actions, or both agents running at each other; some are not numbers at all."""
    actions = random.uniform(-1.3, 1.3, (arenas.count, 2, 3)).astype(np.float32)
    places = vectors(arenas.agents, "x", "y", "z")[..., [0, 2]]
    if clinging:
        actions[..., :2] = places[:, ::-1] - places + random.normal(0.0, 0.4, places.shape)
    else:
        held = random.random(actions.shape[:2]) < 0.7
        velocity = vectors(arenas.agents, "velocity_x", "velocity_y", "velocity_z")[..., [0, 2]]
        actions[held, :2] += velocity[held]
    actions[random.random(actions.shape) < 0.002] = np.nan
    return actions


def _assert_same_state(arenas: Arenas, a: int, match: ReferenceMatch, where: str) -> None:
    assert arenas.arenas["tick"][a] == match.tick, where
    assert arenas.arenas["seeker"][a] == match.seeker, where
    assert arenas.arenas["layout"][a] == match.layout, where
    for i in range(2):
        for name in arenas.agents.dtype.names or ():
            ours, theirs = arenas.agents[name][a, i], getattr(match.agents[i], name)
            assert ours == theirs, f"{where}, agent {i}: {name} is {ours!r}, expected {theirs!r}"


def _assert_same_sight(ours: np.ndarray, theirs: list[list[float]], where: str) -> None:
    different = np.argwhere(ours != np.array(theirs, dtype=np.float32))
    assert not len(different), f"{where}: observations differ at {different.tolist()}"


def test_where_drawing_finds_no_place_the_far_points_are_the_same() -> None:
    """A corridor in which hardly any drawn place is free."""
    boxes = [Box((0.0, 0.7), (20.0, 2.8, 18.6))]
    arenas = Arenas(24, layout=[Layout(boxes)], seed=3)
    arenas.reset()
    rules_json = json.loads(paths.rules_file().read_text())
    plain = {"boxes": [{"at_m": [0.0, 0.7], "size_m": [20.0, 2.8, 18.6]}]}
    far = 0
    for a in range(24):
        match = ReferenceMatch(rules_json, [plain], seed=3, arena=a)
        match.begin(0)
        _assert_same_sight(arenas.observations[a], match.sense(), f"arena {a}")
        _assert_same_state(arenas, a, match, f"arena {a}")
        far += bool(arenas.agents["x"][a, 0] == -arenas.agents["x"][a, 1])
    assert 3 < far < 24, "both ways were meant to occur"


def test_both_draw_the_same_numbers() -> None:
    random = np.random.default_rng(5)
    for words in random.integers(0, 2**32, (200, 4)).tolist():
        assert threefry(*words) == reference.threefry(*words)
