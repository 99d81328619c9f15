"""Sides that take turns, a few steps each: what slows the machine down meets all of them alike."""

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from estragon.envs.gymnasium_env import GodotEnv


class Side(Protocol):
    """Somebody who plays."""

    agents: int

    def play(self, steps: int) -> float:
        """Play so many steps of all agents; the seconds that it took."""
        ...


class Ours:
    """One of our environments."""

    def __init__(self, env: GodotEnv) -> None:
        env.reset(seed=0)
        self.agents = env.num_envs
        self._env = env
        self._actions = itertools.cycle([env.action_space.sample() for _ in range(16)])

    def play(self, steps: int) -> float:
        """Play so many steps of all agents; the seconds that it took."""
        start = time.perf_counter()
        for _ in range(steps):
            self._env.step(next(self._actions))
        return time.perf_counter() - start


Opened = Callable[[], contextlib.AbstractContextManager[Side]]

WARM_UP_STEPS = 20
TURN_SEC = 0.2
"""About as long as a turn is."""


class Turns:
    """What every side did in every round."""

    def __init__(self, rates: Mapping[str, list[float]]) -> None:
        self._rates = rates

    def rate(self, name: str) -> float:
        """Agent-steps a second, in the middle of the rounds."""
        return statistics.median(self._rates[name])

    def ratio(self, above: str, below: str) -> float:
        """How many times as fast, in the middle of the rounds."""
        pairs = zip(self._rates[above], self._rates[below], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


def take_turns(sides: Mapping[str, Opened], seconds: float) -> Turns:
    """Let all sides play for so many seconds each, in turns; at least once."""
    with contextlib.ExitStack() as stack:
        opened = {name: stack.enter_context(open_side()) for name, open_side in sides.items()}
        steps = {
            name: max(1, round(TURN_SEC / side.play(WARM_UP_STEPS) * WARM_UP_STEPS))
            for name, side in opened.items()
        }
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for _ in _rounds(seconds * len(sides)):
            for name, side in opened.items():
                taken = side.play(steps[name])
                rates[name].append(steps[name] * side.agents / taken)
    return Turns(rates)


def _rounds(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    while time.monotonic() - start < seconds:
        yield
