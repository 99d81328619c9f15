"""Where requests of all clients meet: what lies there at one moment is answered at once."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from estragon.live.brain import Ask, Brain, Decision
from estragon.live.frames import check_actions
from estragon.live.limits import MOST_SIZES
from estragon.support.errors import UserError
from estragon.tag.rules import AGENTS

T = TypeVar("T")
Asked: TypeAlias = tuple[int, Decision]
Pending: TypeAlias = list[tuple[T, asyncio.Future[np.ndarray]]]


class Brains:
    """One brain for every observation size that somebody has asked with."""

    def __init__(self, make: Callable[[int], Brain], most: int = MOST_SIZES) -> None:
        self._make, self._most = make, most
        self._brains: dict[int, Brain] = {}

    def brain_for(self, size: int) -> Brain:
        """The brain for observations of this size; raises UserError where there are too many."""
        if size not in self._brains:
            if len(self._brains) >= self._most:
                raise UserError(f"observations of {self._most} other sizes are answered already")
            self._brains[size] = self._make(size)
        return self._brains[size]

    def leave(self, client: int) -> None:
        """A client is gone."""
        for brain in self._brains.values():
            brain.leave(client)


class Desk:
    """Collects requests, and answers them in the next turn of the loop, one call for each brain.

    A client that is alone is answered at once.
    """

    def __init__(self, brains: Brains) -> None:
        self.clients = 0
        """How many there are."""
        self._brains = brains
        self._decisions: dict[int, Pending[Asked]] = {}
        self._asks: dict[int, Pending[Sequence[Ask]]] = {}

    def decide(self, client: int, size: int, decision: Decision) -> asyncio.Future[np.ndarray]:
        """Actions (arenas, 2, 3) float32 for a decision."""
        return self._put(self._decisions, size, (client, decision))

    def act(self, size: int, asks: Sequence[Ask]) -> asyncio.Future[np.ndarray]:
        """Actions (asks, 3) float32."""
        return self._put(self._asks, size, asks)

    def _put(self, pile: dict[int, Pending[T]], size: int, what: T) -> asyncio.Future[np.ndarray]:
        loop = asyncio.get_running_loop()
        is_first = not self._decisions and not self._asks
        answer: asyncio.Future[np.ndarray] = loop.create_future()
        pile.setdefault(size, []).append((what, answer))
        if is_first and self.clients == 1:
            self._answer()
        elif is_first:
            loop.call_soon(self._answer)
        return answer

    def _answer(self) -> None:
        decisions, self._decisions = self._decisions, {}
        asks, self._asks = self._asks, {}
        for size, asked in decisions.items():
            _settle(asked, partial(_decide, self._brains.brain_for(size)))
        for size, batches in asks.items():
            _settle(batches, partial(_act, self._brains.brain_for(size)))


def _settle(pending: Pending[T], answer: Callable[[list[T]], list[np.ndarray]]) -> None:
    """Answer all at once; if that fails one by one, so that it fails for nobody else."""
    try:
        answers = answer([what for what, _ in pending])
    except Exception as error:  # noqa: BLE001 - a brain's mistake, which the handler logs
        if len(pending) > 1:
            for one in pending:
                _settle([one], answer)
        elif not pending[0][1].done():
            pending[0][1].set_exception(error)
        return
    for (_, future), actions in zip(pending, answers, strict=True):
        if not future.done():
            future.set_result(actions)


def _decide(brain: Brain, asked: list[Asked]) -> list[np.ndarray]:
    answers = brain.decide(asked)
    return [
        check_actions(actions, len(decision.seekers), AGENTS)
        for (_, decision), actions in zip(asked, answers, strict=True)
    ]


def _act(brain: Brain, batches: list[Sequence[Ask]]) -> list[np.ndarray]:
    asks = [ask for batch in batches for ask in batch]
    actions = check_actions(brain.act(asks), len(asks))
    ends = np.cumsum([len(batch) for batch in batches])
    return np.split(actions, ends[:-1])
