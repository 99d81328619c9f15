"""Walls hold: whatever the agents do, nothing ever overlaps anything."""

from collections.abc import Callable

import numpy as np
import pytest

from estragon.tag.arenas import Arenas
from estragon.tag.layout import layout_names
from estragon.tag.state import vectors
from tests.prove import Recorder
from tests.tag.audit import Audit
from tests.tag.staging import tick_rules

EACH_LAYOUT = [*layout_names(), "random:0-31"]
LAYOUTS = ",".join(EACH_LAYOUT)
ARENAS = 512
TICKS, MANY_TICKS = 100, 2500
"""Per policy; 5 policies × 512 arenas × 2 agents × 100 ticks = 512,000 agent-ticks."""

Policy = Callable[[Arenas, np.random.Generator, np.ndarray], np.ndarray]


def wander(arenas: Arenas, random: np.random.Generator, held: np.ndarray) -> np.ndarray:
    """Uniform actions, each held for a while."""
    fresh = random.random(arenas.count) < 0.1
    held[fresh] = random.uniform(-1.2, 1.2, (int(fresh.sum()), 2, 3))
    return held


def corner(arenas: Arenas, random: np.random.Generator, held: np.ndarray) -> np.ndarray:
    """Press into the nearest corner, jumping, and now and then change one's mind."""
    places = vectors(arenas.agents, "x", "y", "z")[..., [0, 2]]
    signs = np.where(random.random(places.shape) < 0.02, -1.0, 1.0)
    held[..., :2] = np.sign(places) * signs
    held[..., 2] = random.random(held.shape[:2]) < 0.3
    return held


def edges(arenas: Arenas, random: np.random.Generator, held: np.ndarray) -> np.ndarray:
    """Run at box edges and jump at all moments around reaching them."""
    targets = random.uniform(-6.0, 6.0, held[..., :2].shape)
    fresh = random.random(held.shape[:2]) < 0.05
    places = vectors(arenas.agents, "x", "y", "z")[..., [0, 2]]
    held[fresh, :2] = (targets - places)[fresh]
    held[..., 2] = random.random(held.shape[:2]) < 0.5
    return held


def push(arenas: Arenas, random: np.random.Generator, held: np.ndarray) -> np.ndarray:
    """Both run at each other and jump on each other's heads."""
    places = vectors(arenas.agents, "x", "y", "z")[..., [0, 2]]
    held[..., :2] = places[:, ::-1] - places + random.normal(0.0, 0.3, places.shape)
    held[..., 2] = random.random(held.shape[:2]) < 0.4
    return held


def shove_into_corner(arenas: Arenas, random: np.random.Generator, held: np.ndarray) -> np.ndarray:
    """One hides in a corner or on an edge, the other presses it further in."""
    corner(arenas, random, held)
    places = vectors(arenas.agents, "x", "y", "z")[..., [0, 2]]
    held[:, 0, :2] = places[:, 1] - places[:, 0]
    return held


POLICIES: list[Policy] = [wander, corner, edges, push, shove_into_corner]


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_overlaps(policy: Policy) -> None:
    assert_walls_hold(policy, seed=1, ticks=TICKS)


@pytest.mark.prove
@pytest.mark.parametrize("layout", EACH_LAYOUT)
def test_nothing_overlaps_for_long_on_every_layout(layout: str, record_result: Recorder) -> None:
    worst = max(
        assert_walls_hold(policy, seed=seed, ticks=MANY_TICKS, layout=layout)
        for policy in POLICIES
        for seed in range(100, 104)
    )
    ticks = len(POLICIES) * 4 * MANY_TICKS * ARENAS * 2
    record_result(
        f"walls hold: {layout}",
        f"{ticks:,} agent-ticks of {len(POLICIES)} ways to press, closest approach "
        f"{-worst * 1000:.4f} mm, no overlap",
    )


def assert_walls_hold(policy: Policy, seed: int, ticks: int, layout: str = LAYOUTS) -> float:
    """Play and audit every tick; returns the deepest overlap, negative if all kept apart."""
    arenas = Arenas(ARENAS, rules=tick_rules(rules="transfer"), layout=layout, seed=seed)
    arenas.reset()
    assert len(np.unique(arenas.arenas["layout"])) == len(arenas.layouts)
    audit = Audit(arenas)
    random = np.random.default_rng(seed)
    held = np.zeros((ARENAS, 2, 3), dtype=np.float32)
    worst = -np.inf
    for _ in range(ticks):
        arenas.step(policy(arenas, random, held))
        worst = max(worst, audit.deepest())
    skin = arenas.rules.physics.skin_m
    assert worst <= skin, f"{policy.__name__}, seed {seed}: {worst} m deep, skin {skin}"
    assert worst <= 0.0, f"{policy.__name__}, seed {seed}: within the skin, but {worst} m deep"
    return worst


def test_the_audit_sees_an_overlap() -> None:
    arenas = Arenas(ARENAS, rules=tick_rules(), layout=LAYOUTS)
    arenas.reset()
    audit = Audit(arenas)
    assert audit.deepest() <= 0.0
    arenas.agents["x"][7, 0] = arenas.agents["x"][7, 1] + 0.9
    arenas.agents["z"][7, 0] = arenas.agents["z"][7, 1]
    assert audit.deepest() == pytest.approx(0.1)
    arenas.reset()
    arenas.agents["x"][3, 1] = 9.6
    assert audit.deepest() >= 0.0999
    arenas.reset()
    box_arena = int(np.argmax([len(arenas.layouts[n].boxes) for n in arenas.arenas["layout"]]))
    box = arenas.layouts[arenas.arenas["layout"][box_arena]].boxes[0]
    arenas.agents["x"][box_arena, 0], arenas.agents["z"][box_arena, 0] = box.at_m
    assert audit.deepest() > 0.5
