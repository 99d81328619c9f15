"""Where each role spends its time: seconds on every spot of the arena, counted as they play."""

import numpy as np

from estragon.tag.arenas import Results
from estragon.tag.matches import AnyArenas
from estragon.tag.rules import HIDER, ROLES, SEEKER, Rules
from estragon.tag.state import vectors

CELLS_PER_M = 4


class Places:
    """Adds up where agents were; also a watcher of matches.

    Args:
        width_m: the arena along x.
        depth_m: and along z.
        agent_m: the side of an agent.
        ticks_per_second: how long a tick lasts.
    """

    def __init__(
        self, width_m: float, depth_m: float, agent_m: float, ticks_per_second: int
    ) -> None:
        self.width_m, self.depth_m, self.agent_m = width_m, depth_m, agent_m
        self.matches = 0
        self._tick_sec = 1.0 / ticks_per_second
        cells = (round(depth_m * CELLS_PER_M), round(width_m * CELLS_PER_M))
        self._seconds = np.zeros((len(ROLES), *cells))
        self._ticks = np.zeros(0, dtype=np.int64)

    @classmethod
    def under(cls, rules: Rules) -> "Places":
        """For matches by these rules."""
        arena = rules.arena
        return cls(arena.width_m, arena.depth_m, rules.agent.size_m, rules.physics.ticks_per_second)

    def add(self, role: int, x: np.ndarray, z: np.ndarray, ticks: np.ndarray) -> None:
        """An agent in this role was at each of these places for so many ticks."""
        rows, columns = self._seconds.shape[1:]
        row = np.clip(((z + self.depth_m / 2.0) * CELLS_PER_M).astype(int), 0, rows - 1)
        column = np.clip(((x + self.width_m / 2.0) * CELLS_PER_M).astype(int), 0, columns - 1)
        np.add.at(self._seconds[role], (row, column), ticks * self._tick_sec)

    def seconds(self, role: int) -> np.ndarray:
        """How long an agent in this role covered each spot in a match: (along z, along x), s.

        An agent covers a square with its own side; of one with a side of 1 m these are the seconds
        per square metre.
        """
        side = max(1, round(self.agent_m * CELLS_PER_M))
        covered = np.cumsum(np.cumsum(np.pad(self._seconds[role], side), axis=0), axis=1)
        sums = covered[side:, side:] - covered[:-side, side:]
        sums = sums - covered[side:, :-side] + covered[:-side, :-side]
        first = side // 2
        rows, columns = self._seconds.shape[1:]
        middle: np.ndarray = sums[first : first + rows, first : first + columns]
        return middle / max(1, self.matches)

    def begin(self, arenas: AnyArenas, first: int, observations: np.ndarray) -> None:
        """Matches begin, one an arena."""
        self._ticks = np.zeros(arenas.count, dtype=np.int64)
        self.matches += arenas.count

    def see(self, arenas: AnyArenas, results: Results, playing: np.ndarray) -> None:
        """A decision was played: its ticks count where the agents are now."""
        passed = np.where(playing, results.ticks - self._ticks, 0)
        self._ticks[...] = results.ticks
        at = vectors(arenas.agents, "x", "y", "z")
        is_seeker = arenas.is_seeker
        for agent in range(is_seeker.shape[1]):
            for role, rows in ((SEEKER, is_seeker[:, agent]), (HIDER, ~is_seeker[:, agent])):
                self.add(role, at[rows, agent, 0], at[rows, agent, 2], passed[rows])
