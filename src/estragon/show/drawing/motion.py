"""A logged match at any moments: smooth between the logged ticks, and seen by the engine."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from estragon.show.trajectories.trajectory import Trajectory
from estragon.tag.layout import Layout
from estragon.tag.rules import RAY_CHANNELS, Rules
from estragon.tag.state import vectors

SAME_SEC = 1e-9
"""Closer than this, two moments are the same."""


class Motion(NamedTuple):
    """What every frame of a match shows, one row a frame."""

    seconds: np.ndarray
    """(frames,) float64 since the match began; after its end everybody stays."""
    positions: np.ndarray
    """(frames, agents, 3) float64: centres of the cubes, m."""
    forwards: np.ndarray
    """(frames, agents, 2) float64: x and z of where they face."""
    is_seeker: np.ndarray
    """(frames, agents) bool."""
    seen: np.ndarray
    """(frames, agents) bool: who sees its opponent."""
    ray_ends: np.ndarray
    """(frames, agents, rays, 2) float64: x and z of where every ray ends."""
    tags: list[tuple[float, float, float]]
    """Second, x and z of every tag."""


def motion_of(trajectory: Trajectory, seconds: Sequence[float]) -> Motion:
    """The match at these seconds, in rising order."""
    rules = trajectory.game_rules()
    wanted = np.array(seconds, dtype=np.float64)
    known = trajectory.seconds
    now = np.clip(wanted, known[0], known[-1])
    positions = _flow(now, known, trajectory.positions, trajectory.velocities)
    forwards = _turn(now, known, trajectory.forwards)
    is_seeker = trajectory.is_seeker[_before(now, known)]
    observations = _look(positions, forwards, is_seeker, rules, trajectory.layout)
    reaches = observations[..., rules.field("rays")][..., ::RAY_CHANNELS].astype(np.float64)
    return Motion(
        seconds=wanted,
        positions=positions,
        forwards=forwards,
        is_seeker=is_seeker,
        seen=observations[..., rules.field("opponent_visible").start] > 0.5,
        ray_ends=_ray_ends(positions, forwards, reaches * rules.eyes.range_m, rules),
        tags=_tags(trajectory),
    )


def _before(now: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The last logged moment at or before each second."""
    rows: np.ndarray = np.searchsorted(known, now + SAME_SEC, side="right") - 1
    return rows


def _flow(
    now: np.ndarray, known: np.ndarray, positions: np.ndarray, velocities: np.ndarray
) -> np.ndarray:
    """Cubic Hermite curves through positions, within the range of the two logged ones."""
    if len(known) == 1:
        return np.repeat(positions, len(now), axis=0)
    row = np.minimum(_before(now, known), len(known) - 2)
    span = (known[row + 1] - known[row])[:, None, None]
    u = (now - known[row])[:, None, None] / span
    start, end = positions[row], positions[row + 1]
    curve = (
        (1.0 + 2.0 * u) * (1.0 - u) ** 2 * start
        + u * (1.0 - u) ** 2 * span * velocities[row]
        + u**2 * (3.0 - 2.0 * u) * end
        + u**2 * (u - 1.0) * span * velocities[row + 1]
    )
    within: np.ndarray = np.clip(curve, np.minimum(start, end), np.maximum(start, end))
    return within


def _turn(now: np.ndarray, known: np.ndarray, forwards: np.ndarray) -> np.ndarray:
    """Facing that turns the shorter way around, at an even rate."""
    angles = np.unwrap(np.arctan2(forwards[..., 1], forwards[..., 0]), axis=0)
    between = np.stack([np.interp(now, known, column) for column in angles.T], axis=1)
    return np.stack([np.cos(between), np.sin(between)], axis=-1)


def _look(
    positions: np.ndarray,
    forwards: np.ndarray,
    is_seeker: np.ndarray,
    rules: Rules,
    layout: Layout,
) -> np.ndarray:
    """What the engine shows agents in these poses: (frames, agents, observation size) float32.

    Rays in between two decisions cannot be interpolated: one that passes an edge meets something
    else. So every frame becomes an arena of its own, in which the agents look again.
    """
    from estragon.tag.arenas import Arenas  # needs numba; those who only draw do not

    arenas = Arenas(len(positions), rules=rules, layout=[layout], threads=1)
    arenas.reset()
    vectors(arenas.agents, "x", "y", "z")[...] = positions
    vectors(arenas.agents, "forward_x", "forward_z")[...] = forwards
    arenas.arenas["seeker"] = np.argmax(is_seeker, axis=1)
    return arenas.restore(arenas.save())


def _ray_ends(
    positions: np.ndarray, forwards: np.ndarray, reaches: np.ndarray, rules: Rules
) -> np.ndarray:
    from estragon.tag.state import fan_of  # as above

    ray_cos, ray_sin = fan_of(rules)
    ahead, aside = forwards[..., :1], forwards[..., 1:]
    along = np.stack(
        [ahead * ray_cos - aside * ray_sin, ahead * ray_sin + aside * ray_cos], axis=-1
    )
    ends: np.ndarray = positions[..., None, ::2] + along * reaches[..., None]
    return ends


def _tags(trajectory: Trajectory) -> list[tuple[float, float, float]]:
    """When and where tags happened: midway between the two."""
    found = []
    for tag in trajectory.tags:
        row = min(int(np.searchsorted(trajectory.ticks, tag.tick)), len(trajectory.ticks) - 1)
        x, _, z = trajectory.positions[row].mean(axis=0)
        found.append((tag.tick / trajectory.start.ticks_per_second, float(x), float(z)))
    return found
