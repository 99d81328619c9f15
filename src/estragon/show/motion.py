"""A recorded match at the film's frame rate: smooth between the decisions, seen by the engine."""

from typing import NamedTuple

import numpy as np

from estragon.show.record import Recording, ray_distances
from estragon.tag.arenas import Arenas
from estragon.tag.constants import fan_of
from estragon.tag.layout import Layout
from estragon.tag.match import TAGGED
from estragon.tag.observation import VISIBLE
from estragon.tag.rules import Rules
from estragon.tag.state import vectors


class Motion(NamedTuple):
    """What every frame of a match shows, one row a frame."""

    seconds: np.ndarray
    """(frames,) float64 since the match began; the last frame is its very end."""
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


def motion_of(recording: Recording, rules: Rules, layout: Layout, fps: int) -> Motion:
    """Bring a recording to `fps` frames a second."""
    times = recording.ticks / rules.physics.ticks_per_second
    end = times[-1]
    frames = int(np.ceil(end * fps - 1e-9)) + 1
    seconds = np.minimum(np.arange(frames) / fps, end)
    positions = _between(seconds, times, recording.positions)
    # Facing turns the shorter way around, at an even rate.
    angles = np.unwrap(np.arctan2(recording.forwards[..., 1], recording.forwards[..., 0]), axis=0)
    angles = _between(seconds, times, angles)
    forwards = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    before = np.searchsorted(times, seconds + 1e-9, side="right") - 1
    is_seeker = recording.is_seeker[before]
    observations = _look(positions, forwards, is_seeker, rules, layout)
    reaches = ray_distances(observations, rules).astype(np.float64)
    return Motion(
        seconds=seconds,
        positions=positions,
        forwards=forwards,
        is_seeker=is_seeker,
        seen=observations[..., VISIBLE] > 0.5,
        ray_ends=_ray_ends(positions, forwards, reaches, rules),
        tags=_tags(recording, times),
    )


def _between(seconds: np.ndarray, times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values (moments, ...) known at `times`, in between at `seconds`: (frames, ...)."""
    flat = values.reshape(len(times), -1)
    columns = [np.interp(seconds, times, column) for column in flat.T]
    return np.stack(columns, axis=1).reshape(len(seconds), *values.shape[1:])


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
    arenas = Arenas(len(positions), rules=rules, layout=[layout], threads=1)
    arenas.reset()
    vectors(arenas.agents, "x", "y", "z")[...] = positions
    vectors(arenas.agents, "forward_x", "forward_z")[...] = forwards
    arenas.arenas["seeker"] = np.argmax(is_seeker, axis=1)
    return arenas.restore(arenas.save())


def _ray_ends(
    positions: np.ndarray, forwards: np.ndarray, reaches: np.ndarray, rules: Rules
) -> np.ndarray:
    ray_cos, ray_sin = fan_of(rules)
    ahead, aside = forwards[..., :1], forwards[..., 1:]
    along = np.stack(
        [ahead * ray_cos - aside * ray_sin, ahead * ray_sin + aside * ray_cos], axis=-1
    )
    ends: np.ndarray = positions[..., None, ::2] + along * reaches[..., None]
    return ends


def _tags(recording: Recording, times: np.ndarray) -> list[tuple[float, float, float]]:
    """Where and when the role was handed over, or the match ended by a tag."""
    swapped = (recording.is_seeker[1:] != recording.is_seeker[:-1]).any(axis=1)
    moments = [int(moment) + 1 for moment in np.flatnonzero(swapped)]
    if recording.end == TAGGED:
        moments.append(len(times) - 1)
    middles = recording.positions.mean(axis=1)
    return [(float(times[m]), float(middles[m, 0]), float(middles[m, 2])) for m in moments]
