"""One match played and kept, decision by decision; drawing it is another matter."""

from typing import NamedTuple

import numpy as np

from estragon.tag.arenas import Arenas
from estragon.tag.layout import Layout
from estragon.tag.match import GOING_ON
from estragon.tag.observation import RAYS, VISIBLE
from estragon.tag.players import Player
from estragon.tag.rules import AGENTS, RAY_CHANNELS, Rules
from estragon.tag.state import vectors


class Recording(NamedTuple):
    """A match: one row a moment, the first before any decision, then one after each."""

    ticks: np.ndarray
    """(moments,) int64: ticks since the match began."""
    positions: np.ndarray
    """(moments, agents, 3) float64: centres of the cubes, m."""
    forwards: np.ndarray
    """(moments, agents, 2) float64: x and z of where they face."""
    is_seeker: np.ndarray
    """(moments, agents) bool: who is "it"."""
    observations: np.ndarray
    """(moments, agents, observation size) float32: what they were told."""
    end: int
    """TAGGED or TIMED_OUT."""
    winner: int
    """The agent that won, -1 for a draw."""

    @property
    def seen(self) -> np.ndarray:
        """Who sees its opponent: (moments, agents) bool."""
        seen: np.ndarray = self.observations[..., VISIBLE] > 0.5
        return seen

    def ray_distances(self, rules: Rules) -> np.ndarray:
        """How far every ray of the fan reaches: (moments, agents, rays) float32, m."""
        return ray_distances(self.observations, rules)

    def seconds(self, rules: Rules) -> float:
        """How long the match lasted."""
        return float(self.ticks[-1]) / rules.physics.ticks_per_second


def ray_distances(observations: np.ndarray, rules: Rules) -> np.ndarray:
    """The reach of every ray in observations (..., observation size): (..., rays), m."""
    reaches: np.ndarray = observations[..., RAYS::RAY_CHANNELS] * rules.eyes.range_m
    return reaches


def record_match(
    seeker: Player, hider: Player, *, rules: Rules, layout: Layout, seed: int
) -> Recording:
    """Play match number 0 of a seed to its end; each player acts for whoever has its role."""
    arenas = Arenas(1, rules=rules, layout=[layout], seed=seed, threads=1)
    observations = arenas.reset()
    moments = [_moment(arenas)]
    actions = np.zeros((1, AGENTS, 3), dtype=np.float32)
    while True:
        it = int(arenas.arenas["seeker"][0])
        actions[:, it] = seeker.act(observations[:, it].copy())
        actions[:, 1 - it] = hider.act(observations[:, 1 - it].copy())
        results = arenas.step(actions, restart=False)
        moments.append(_moment(arenas))
        if results.ends[0] != GOING_ON:
            break
    columns = zip(*moments, strict=True)
    ticks, positions, forwards, is_seeker, told = (np.stack(column) for column in columns)
    return Recording(
        ticks=ticks,
        positions=positions,
        forwards=forwards,
        is_seeker=is_seeker,
        observations=told,
        end=int(results.ends[0]),
        winner=int(results.winners[0]),
    )


def _moment(arenas: Arenas) -> tuple[np.ndarray, ...]:
    """The first arena as it is now, in the order of a recording's first fields."""
    return (
        arenas.arenas["tick"][0].copy(),
        vectors(arenas.agents, "x", "y", "z")[0].copy(),
        vectors(arenas.agents, "forward_x", "forward_z")[0].copy(),
        arenas.is_seeker[0].copy(),
        arenas.observations[0].copy(),
    )
