"""Where the time of a step goes, and how much memory the game takes, while a game is probed."""

import contextlib
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estragon.envs.games import Games

PINGS = 20
MEGABYTE = 2**20
GROWTH_MB = 32.0
"""More than this in one probe is suspicious."""


class Profile:
    """Measures steps from the first one on; what the caller does besides is left out.

    Python's share is the processor time of this process: choosing actions at random, encoding and
    decoding. The wire's share is a message that is answered without playing. The rest is the game.
    """

    def __init__(self, games: Games) -> None:
        self._games = games
        self._left_out_sec = self._left_out_cpu_sec = 0.0
        self.round_trip_sec = self._round_trip()
        self._memory_mb = self.game_memory_mb()
        self._begin, self._begin_cpu = time.perf_counter(), time.process_time()

    @contextlib.contextmanager
    def leave_out(self) -> Iterator[None]:
        """What happens in this block belongs to no step."""
        begin, begin_cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self._left_out_sec += time.perf_counter() - begin
            self._left_out_cpu_sec += time.process_time() - begin_cpu

    @property
    def seconds(self) -> float:
        """What the steps took so far."""
        return time.perf_counter() - self._begin - self._left_out_sec

    def summary(self, steps: int) -> dict[str, Any]:
        """The numbers, for people and for JSON; shares add up to 1."""
        seconds = self.seconds
        cpu = time.process_time() - self._begin_cpu - self._left_out_cpu_sec
        python = min(1.0, cpu / seconds)
        wire = min(1.0 - python, steps * self.round_trip_sec / seconds)
        return {
            "step_ms": round(1e3 * seconds / steps, 3) if steps else None,
            "time_in_game": round(1.0 - python - wire, 3),
            "time_on_wire": round(wire, 3),
            "time_in_python": round(python, 3),
            "game_memory_mb": self.game_memory_mb(),
            "game_memory_growth_mb": self.growth_mb(),
        }

    def warnings(self) -> list[str]:
        """What is suspicious about it."""
        growth = self.growth_mb()
        if growth is None or growth <= GROWTH_MB:
            return []
        grew = f"the game's memory grew by {growth:.0f} MB in {self.seconds:.0f} s"
        return [f"{grew}: does every episode free the nodes that it adds?"]

    def growth_mb(self) -> float | None:
        """How much more memory the games have now than at the beginning; None: unknown."""
        before, now = self._memory_mb, self.game_memory_mb()
        return None if before is None or now is None else round(now - before, 1)

    def game_memory_mb(self) -> float | None:
        """Resident memory of all games; None where that cannot be read (only on Linux it can)."""
        total = 0
        for game in self._games.games:
            if game.process is None:
                return None
            try:
                pages = int(Path(f"/proc/{game.process.pid}/statm").read_text().split()[1])
            except (OSError, IndexError, ValueError):
                return None
            total += pages * os.sysconf("SC_PAGE_SIZE")
        return round(total / MEGABYTE, 1)

    def _round_trip(self) -> float:
        """Seconds for a message to every game and its answers, in which nothing is played."""
        took = []
        for _ in range(PINGS):
            begin = time.perf_counter()
            self._games.call("get_done")
            took.append(time.perf_counter() - begin)
        return statistics.median(took)
