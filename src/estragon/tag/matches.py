"""Matches between two players on the embedded engine, for judging strength."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from estragon.tag.arenas import Arenas
from estragon.tag.layout import Layout
from estragon.tag.match import GOING_ON
from estragon.tag.players import Player
from estragon.tag.rules import Rules

BATCH = 1024
"""Matches played side by side."""


class Outcomes(NamedTuple):
    """How matches ended, one row a match."""

    winners: np.ndarray
    """(matches,) int8: 0 the agent that began as seeker, 1 the other, -1 a draw."""
    ticks: np.ndarray
    """(matches,) int64: how long each lasted."""


def play_matches(
    seeker: Player,
    hider: Player,
    count: int,
    *,
    rules: Rules,
    layouts: str | Sequence[Layout],
    seed: int,
    batch: int = BATCH,
) -> Outcomes:
    """Play matches number 0 to count - 1 of a seed; each is the same in any batch.

    Under `transfer` rules a player acts for whoever has its role at the moment.
    """
    winners = np.zeros(count, dtype=np.int8)
    ticks = np.zeros(count, dtype=np.int64)
    for first in range(0, count, batch):
        some = slice(first, min(first + batch, count))
        arenas = Arenas(
            some.stop - first, rules=rules, layout=layouts, seed=seed, first_arena=first
        )
        winners[some], ticks[some] = _play(arenas, seeker, hider)
    return Outcomes(winners, ticks)


def _play(arenas: Arenas, seeker: Player, hider: Player) -> Outcomes:
    """One match in every arena."""
    rules = arenas.rules
    size = rules.observation.size
    winners = np.full(arenas.count, -1, dtype=np.int8)
    ticks = np.zeros(arenas.count, dtype=np.int64)
    playing = np.ones(arenas.count, dtype=bool)
    actions = np.zeros((arenas.count, 2, 3), dtype=np.float32)
    observations = arenas.reset()
    while playing.any():
        roles = arenas.is_seeker
        actions[roles] = seeker.act(observations[roles].reshape(-1, size))
        actions[~roles] = hider.act(observations[~roles].reshape(-1, size))
        results = arenas.step(actions)
        observations = results.observations
        over = playing & (results.ends != GOING_ON)
        winners[over] = results.winners[over]
        ticks[over] = results.ticks[over]
        playing &= ~over
    return Outcomes(winners, ticks)
