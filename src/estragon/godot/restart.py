"""How often a program may be started again before that is called a failure."""

import time
from collections import deque
from collections.abc import Callable

from estragon.godot.supervised import GodotError


class RestartBudget:
    """At most `restarts` within any `window_sec`; the next one is an error."""

    def __init__(
        self,
        restarts: int = 3,
        window_sec: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.restarts, self.window_sec = restarts, window_sec
        self._clock = clock
        self._spent: deque[float] = deque()

    def spend(self, reason: GodotError) -> None:
        """Take one restart, which `reason` made necessary; raises when there is none left."""
        now = self._clock()
        while self._spent and now - self._spent[0] >= self.window_sec:
            self._spent.popleft()
        if len(self._spent) >= self.restarts:
            raise GodotError(
                f"given up after {self.restarts} restarts within {self.window_sec:g} s; {reason}"
            ) from reason
        self._spent.append(now)
