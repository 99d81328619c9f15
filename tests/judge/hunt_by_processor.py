"""`estragon judge hunt` with a clock that counts processor time, so that a busy machine is fair.

Counted is this process and the games that it has started, divided by the cores of the machine that
the proof is about: what a clock shows where these do nothing else, and have no rest.
"""

import os
import resource
import sys
import threading
import time
from pathlib import Path

from estragon.cli import main
from estragon.judge.hunt import hunt, shorten, worker

CORES = 2
REFRESH_SEC = 0.5
TICK_SEC = 1.0 / os.sysconf("SC_CLK_TCK")


class ProcessorClock:
    """Takes the place of the module `time`."""

    sleep = staticmethod(time.sleep)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at, self._seconds = -1.0, 0.0

    def monotonic(self) -> float:
        """Processor time of this process, of its games, and of those that have ended."""
        with self._lock:
            now = time.monotonic()
            if now - self._read_at > REFRESH_SEC:
                ended = resource.getrusage(resource.RUSAGE_CHILDREN)
                used = time.process_time() + ended.ru_utime + ended.ru_stime + _used_below()
                self._read_at, self._seconds = now, max(self._seconds, used / CORES)
            return self._seconds


def _used_below() -> float:
    """Processor time of all processes below this one that run, and of those that they had."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # it has just ended
        pid = int(file.parent.name)
        parents[pid] = int(fields[1])
        used[pid] = TICK_SEC * sum(map(int, fields[11:15]))
    below, found = [os.getpid()], 0.0
    while below:
        children = [pid for pid, parent in parents.items() if parent in below]
        found += sum(used[pid] for pid in children)
        below = children
    return found


if __name__ == "__main__":
    clock = ProcessorClock()
    for module in (hunt, shorten, worker):
        module.time = clock  # type: ignore[attr-defined]
    sys.exit(main(["judge", "hunt", *sys.argv[1:]]))
