"""How much time and memory games need while they are played, divided into segments.

Processor time of the game, not the clock: that is the same whatever else the machine does. It still
depends on the machine, so a fixed piece of work is timed in between, to compare with.
"""

import statistics
import time
from collections.abc import Callable, Sequence

from estragon.godot.process import cpu_sec, memory_mb
from estragon.judge.evaluation_file import Segment

SEGMENTS = 24
CALIBRATE_EVERY_SEC = 0.25
CALIBRATION_LOOPS = 20_000


class Meter:
    """Call `step` after every step of the games."""

    def __init__(self, find_pids: Callable[[], Sequence[int]]) -> None:
        """Measure the games with these process ids; a game that crashed has another one."""
        self._find_pids = find_pids
        self._wall: list[float] = []
        self._cpu: list[float] = []
        self._memory: list[float | None] = []
        self._calibration: list[float | None] = []
        self._calibrated_at = -CALIBRATE_EVERY_SEC
        self._begin()

    def step(self) -> None:
        """A step has ended, and the next begins."""
        cpu = cpu_sec(self._pids)
        self._wall.append(time.perf_counter() - self._started)
        if cpu is not None and self._started_cpu is not None:
            self._cpu.append(cpu - self._started_cpu)
        self._begin()

    def _begin(self) -> None:
        self._pids = self._find_pids()
        now = time.perf_counter()
        due = now - self._calibrated_at >= CALIBRATE_EVERY_SEC
        self._calibration.append(_calibrate() if due else None)
        self._memory.append(memory_mb(self._pids))
        if due:
            self._calibrated_at = now
        self._started_cpu = cpu_sec(self._pids)
        self._started = time.perf_counter()

    def segments(self) -> list[Segment]:
        """Equal numbers of steps; what is left over belongs to the last."""
        steps = len(self._wall)
        count = min(SEGMENTS, steps)
        has_cpu = len(self._cpu) == steps
        everywhere = [each for each in self._calibration if each is not None]
        found: list[Segment] = []
        for number in range(count):
            first, last = number * steps // count, (number + 1) * steps // count
            wall = self._wall[first:last]
            cpu = self._cpu[first:last] if has_cpu else []
            own = [each for each in self._calibration[first : last + 1] if each is not None]
            found.append(
                Segment(
                    steps=last - first,
                    step_ms=1e3 * statistics.fmean(wall),
                    step_cpu_ms=1e3 * statistics.fmean(cpu) if cpu else None,
                    slowest_step_cpu_ms=1e3 * max(cpu) if cpu else None,
                    memory_mb=self._memory[last],
                    calibration_ms=1e3 * statistics.median(own or everywhere),
                )
            )
        return found


def _calibrate() -> float:
    """Processor time of the fixed piece of work."""
    begin = time.thread_time()
    total = 0
    for number in range(CALIBRATION_LOOPS):
        total += number & 7
    return time.thread_time() - begin
