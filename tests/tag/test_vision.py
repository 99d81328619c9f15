"""Eyes: rays stop at what is really there, and nothing is seen through a box."""

from typing import Any

import numpy as np
import pytest

from estragon.tag.arenas import Arenas
from estragon.tag.layout import Layout
from estragon.tag.rules import load_rules
from tests.tag.staging import place, staged, tick_rules

RULES = load_rules()
REST = RULES.agent.size_m / 2 + RULES.physics.skin_m
RAYS = RULES.field("rays")
VISIBLE = RULES.field("opponent_visible").start
SEEN = RULES.field("last_seen_relative")
AGE = RULES.field("last_seen_age").start
STEP_M = 0.02
TOUCH_M = 0.0001


def sight(arenas: Arenas, agent: int = 0) -> np.ndarray:
    return arenas._observe()[0, agent]


def test_no_ray_passes_through_anything_solid() -> None:
    """March along every ray in small steps, asking of each point what it is in."""
    arenas = Arenas(400, layout="playground,central_cross,random:0-15", seed=8)
    observations = arenas.reset()
    random = np.random.default_rng(0)
    for _ in range(30):
        observations = arenas.step(
            random.uniform(-1, 1, (400, 2, 3)).astype(np.float32)
        ).observations
    angles = np.deg2rad(np.linspace(-60.0, 60.0, 36))
    hits = {"wall": 0, "agent": 0, "nothing": 0}
    for a in range(arenas.count):
        for i in range(2):
            hits_here = _march(arenas, a, i, observations[a, i, RAYS].reshape(-1, 3), angles)
            for kind, count in hits_here.items():
                hits[kind] += count
    assert min(hits.values()) > 100, f"all kinds of sight were meant to occur: {hits}"


def _march(arenas: Arenas, a: int, i: int, rays: np.ndarray, angles: np.ndarray) -> dict[str, int]:
    agent, other = arenas.agents[a, i], arenas.agents[a, 1 - i]
    layout = arenas.layouts[arenas.arenas["layout"][a]]
    height = agent["y"] + RULES.eyes.height_m
    counts = {"wall": 0, "agent": 0, "nothing": 0}
    steps = np.arange(0.0, RULES.eyes.range_m, STEP_M)
    turned = np.arctan2(agent["forward_z"], agent["forward_x"]) + angles
    x = agent["x"] + steps * np.cos(turned)[:, None]
    z = agent["z"] + steps * np.sin(turned)[:, None]
    solids = (np.abs(x) > 10.0) | (np.abs(z) > 10.0)
    for box in layout.boxes:
        if height < box.size_m[1]:
            inside = np.abs(x - box.at_m[0]) < box.size_m[0] / 2
            inside &= np.abs(z - box.at_m[1]) < box.size_m[2] / 2
            solids |= inside
    bodies = np.zeros_like(solids)
    if abs(height - other["y"]) < 0.5:
        bodies = (np.abs(x - other["x"]) < 0.5) & (np.abs(z - other["z"]) < 0.5)
    for (share, is_wall, is_agent), turn, solid, body in zip(
        rays, turned, solids, bodies, strict=True
    ):
        met = np.flatnonzero(solid | body)
        distance = share * RULES.eyes.range_m
        if len(met) and steps[met[0]] > 3 * STEP_M:
            # grazing a corner may fall between two steps, so the ray may only be shorter
            assert distance <= steps[met[0]] + STEP_M
            if abs(distance - steps[met[0]]) <= STEP_M:
                assert is_agent == (body[met[0]] and not solid[met[0]]) or is_wall == solid[met[0]]
        assert is_wall + is_agent <= 1
        if is_wall or is_agent:
            place = (agent["x"] + distance * np.cos(turn), agent["z"] + distance * np.sin(turn))
            assert _touches(place, height, other if is_agent else None, layout)
        counts["agent" if is_agent else "wall" if is_wall else "nothing"] += 1
        if not is_wall and not is_agent:
            assert share == 1.0
            assert not len(met)
    return counts


def _touches(place: tuple[float, float], height: float, body: Any, layout: Layout) -> bool:
    """Whether a ray that ends here ends at something: at the opponent, or else a wall or box."""
    x, z = place
    near = 0.5 + TOUCH_M
    if body is not None:
        across = abs(x - body["x"]) <= near and abs(z - body["z"]) <= near
        return bool(across and abs(height - body["y"]) <= near)
    if max(abs(x), abs(z)) >= 10.0 - TOUCH_M:
        return True
    return any(
        abs(x - box.at_m[0]) <= box.size_m[0] / 2 + TOUCH_M
        and abs(z - box.at_m[1]) <= box.size_m[2] / 2 + TOUCH_M
        and height <= box.size_m[1] + TOUCH_M
        for box in layout.boxes
    )


def test_straight_ahead_distance_is_the_distance_to_the_wall() -> None:
    rules = tick_rules()
    arenas = staged((0.0, REST, 4.0), (-8.0, REST, -8.0), rules=rules)
    rays = sight(arenas)[RAYS].reshape(-1, 3)
    middle = (rays[17, 0] + rays[18, 0]) / 2 * 15.0
    assert middle == pytest.approx(6.0 / np.cos(np.deg2rad(60 / 35)), abs=1e-4)
    assert rays[17, 1] == 1.0


def test_an_opponent_ahead_is_seen_and_one_behind_is_not() -> None:
    arenas = staged((0.0, REST, 0.0), (0.0, REST, 6.0), rules=tick_rules())
    assert sight(arenas)[VISIBLE] == 1.0
    assert sight(arenas)[RAYS].reshape(-1, 3)[:, 2].sum() >= 2
    place(arenas, 0, forward_z=-1.0)
    assert sight(arenas)[VISIBLE] == 0.0


def test_someone_standing_on_a_box_is_seen_by_the_aimed_ray_alone() -> None:
    on_the_box = (0.0, 1.1 + REST, 0.9)
    arenas = staged((0.0, REST, -1.7), on_the_box, rules=tick_rules(), layout="playground")
    assert sight(arenas)[VISIBLE] == 0.0, "hidden by the edge of the box it stands on"
    place(arenas, 0, z=-4.0)
    seen = sight(arenas)
    assert seen[VISIBLE] == 1.0
    assert seen[RAYS].reshape(-1, 3)[:, 2].sum() == 0.0
    assert seen[SEEN] * 10.0 == pytest.approx([0.0, 1.1, 4.9], abs=1e-5)


def test_nothing_about_a_hidden_opponent_leaks() -> None:
    hidden = []
    for x in (-5.5, -4.0, -2.5):
        arenas = staged(
            (-4.0, REST, -2.0), (x, REST, 3.0), rules=tick_rules(), layout="central_cross"
        )
        hidden.append(sight(arenas).copy())
    assert all(seen[VISIBLE] == 0.0 for seen in hidden)
    assert np.array_equal(hidden[0], hidden[1])
    assert np.array_equal(hidden[0], hidden[2])


def test_memory_keeps_the_place_and_ages() -> None:
    arenas = staged((0.0, REST, 0.0), (0.0, REST, 6.0), rules=tick_rules())
    assert sight(arenas)[AGE] == 0.0
    place(arenas, 0, forward_z=-1.0)
    place(arenas, 1, x=5.0)
    for _ in range(30):
        results = arenas.step(np.zeros((1, 2, 3), dtype=np.float32))
    seen = results.observations[0, 0]
    assert seen[VISIBLE] == 0.0
    assert seen[SEEN] * 10.0 == pytest.approx([0.0, 0.0, 6.0], abs=1e-5)
    assert seen[AGE] == pytest.approx(30 / 600)


def test_never_seen_is_old_and_nowhere() -> None:
    arenas = staged((0.0, REST, 0.0), (0.0, REST, -6.0), rules=tick_rules())
    seen = sight(arenas)
    assert seen[AGE] == 1.0
    assert not seen[SEEN].any()


def test_too_far_is_not_seen() -> None:
    arenas = staged((0.0, REST, -9.0), (0.0, REST, 6.6), rules=tick_rules())
    assert sight(arenas)[VISIBLE] == 0.0
    place(arenas, 1, z=6.4)
    assert sight(arenas)[VISIBLE] == 1.0
