"""Matches between two players, for judging strength."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from estragon.tag.arenas import Arenas, Results
from estragon.tag.layout import Layout
from estragon.tag.match import GOING_ON
from estragon.tag.players import Player
from estragon.tag.rules import Rules

BATCH = 1024
"""Matches the embedded engine plays side by side."""


Team = tuple[Player, Player]
"""Who plays for an agent while it is "it", and who while it is not."""


class Engine(Protocol):
    """Whatever plays arenas: the embedded engine, or Godot."""

    count: int
    rules: Rules
    layouts: list[Layout]

    @property
    def seed(self) -> int:
        """Of all random draws."""
        ...

    @property
    def agents(self) -> np.ndarray:
        """The agents as they are now: (arenas, agents) of AGENT."""
        ...

    @property
    def is_seeker(self) -> np.ndarray:
        """Which agents are "it" now: (arenas, agents) bool."""
        ...

    @property
    def layout_index(self) -> np.ndarray:
        """Which of the layouts is played on: (arenas,) integers."""
        ...

    def step(self, actions: np.ndarray, *, restart: bool = True) -> Results:
        """Play one decision in every arena; begin anew, if asked to, where an episode ends."""
        ...


class Watcher(Protocol):
    """Whoever looks on while matches are played."""

    def begin(self, arenas: Engine, first: int, observations: np.ndarray) -> None:
        """Match number `first` begins in the first arena, the next ones in those after it."""
        ...

    def see(self, arenas: Engine, results: Results, playing: np.ndarray) -> None:
        """A decision was played; `playing` (arenas,) says where a match was going on before it."""
        ...


class Outcomes(NamedTuple):
    """How matches ended, one row a match."""

    winners: np.ndarray
    """(matches,) int8: 0 the agent that began as seeker, 1 the other, -1 a draw."""
    ticks: np.ndarray
    """(matches,) int64: how long each lasted."""
    rewards: np.ndarray
    """(matches, 2) float64: what each agent earned in all, the one that began as seeker first."""


def play_matches(
    seeker: Player,
    hider: Player,
    count: int,
    *,
    rules: Rules,
    layouts: str | Sequence[Layout],
    seed: int,
    batch: int = BATCH,
    tell: Callable[[int], None] = lambda _: None,
    watcher: Watcher | None = None,
) -> Outcomes:
    """Play matches number 0 to count - 1 of a seed on the embedded engine.

    Each match is the same in any batch. Under `transfer` rules a player acts for whoever has its
    role at the moment.
    """

    def begin(first: int) -> tuple[Arenas, np.ndarray]:
        size = min(batch, count - first)
        arenas = Arenas(size, rules=rules, layout=layouts, seed=seed, first_arena=first)
        return arenas, arenas.reset()

    return play_batches(seeker, hider, count, begin, tell, watcher)


def play_teams(
    first: Team,
    second: Team,
    count: int,
    *,
    rules: Rules,
    layouts: str | Sequence[Layout],
    seed: int,
) -> Outcomes:
    """The same, but each agent has players of its own for both roles, as `transfer` needs it.

    `first` plays for the agents that begin as seeker.
    """
    arenas = Arenas(count, rules=rules, layout=layouts, seed=seed)
    return _play(arenas, arenas.reset(), (first, second), count)


def play_batches(
    seeker: Player,
    hider: Player,
    count: int,
    begin: Callable[[int], tuple[Engine, np.ndarray]],
    tell: Callable[[int], None] = lambda _: None,
    watcher: Watcher | None = None,
) -> Outcomes:
    """Play matches number 0 to count - 1, a batch after the other.

    `begin(first)` begins match number `first` and those after it, one an arena, and gives the
    engine and the first observations. `tell` hears how many matches are played; a watcher sees
    every decision.
    """
    winners = np.zeros(count, dtype=np.int8)
    ticks = np.zeros(count, dtype=np.int64)
    rewards = np.zeros((count, 2))
    first = 0
    while first < count:
        arenas, observations = begin(first)
        if watcher is not None:
            watcher.begin(arenas, first, observations)
        some = slice(first, min(first + arenas.count, count))
        team = (seeker, hider)
        played = _play(arenas, observations, (team, team), some.stop - first, watcher)
        winners[some], ticks[some], rewards[some] = played
        first = some.stop
        tell(first)
    return Outcomes(winners, ticks, rewards)


def _play(
    arenas: Engine,
    observations: np.ndarray,
    teams: tuple[Team, Team],
    wanted: int,
    watcher: Watcher | None = None,
) -> Outcomes:
    """One match in each of the first `wanted` arenas; where it is over, what follows is ignored."""
    winners = np.full(arenas.count, -1, dtype=np.int8)
    ticks = np.zeros(arenas.count, dtype=np.int64)
    rewards = np.zeros((arenas.count, 2))
    playing = np.arange(arenas.count) < wanted
    actions = np.zeros((arenas.count, 2, 3), dtype=np.float32)
    while playing.any():
        is_seeker = arenas.is_seeker
        for agent, (seeker, hider) in enumerate(teams):
            for player, rows in ((seeker, is_seeker[:, agent]), (hider, ~is_seeker[:, agent])):
                if rows.any():
                    actions[rows, agent] = player.act(observations[rows, agent])
        results = arenas.step(actions, restart=False)
        if watcher is not None:
            watcher.see(arenas, results, playing)
        observations = results.observations
        rewards[playing] += results.rewards[playing]
        over = playing & (results.ends != GOING_ON)
        winners[over] = results.winners[over]
        ticks[over] = results.ticks[over]
        playing &= ~over
    return Outcomes(winners[:wanted], ticks[:wanted], rewards[:wanted])
