"""Actors that answer requests for actions, and the batcher that asks them once for many clients.

Nothing here needs torch. All calls come from the server's thread, one at a time.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from estragon.live.protocol import (
    MOST_SIZES,
    ActionRequest,
    Decision,
    Experience,
    Hello,
    check_actions,
)
from estragon.support.errors import UserError
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import ACTION_SIZE, AGENTS, ROLES, Role, Rules

JUMP_PROB = 0.125
T = TypeVar("T")
ClientDecision: TypeAlias = tuple[int, Decision]
Pending: TypeAlias = list[tuple[T, asyncio.Future[np.ndarray]]]


class Actor(Protocol):
    """Answers every client whose observations have one size."""

    learning: bool

    def describe(self) -> str:
        """What it is, in a few words."""

    def join(self, client: int, hello: Hello) -> None:
        """Prepare for a client that sends decisions; raises UserError where it does not fit."""

    def decide(self, asked: Sequence[ClientDecision]) -> list[np.ndarray]:
        """Actions (arenas, 2, 3) float32 for the decisions of these clients."""

    def act(self, requests: Sequence[ActionRequest]) -> np.ndarray:
        """Actions (requests, 3) float32."""

    def learn(self, experiences: Sequence[Experience]) -> int:
        """Record outcomes; returns how many of them could be used."""

    def leave(self, client: int) -> None:
        """Forget a client, whether it ever sent a request or not."""


class RandomActor:
    """Runs anywhere and jumps now and then; same seed, same actions."""

    learning = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def describe(self) -> str:
        """What it is, in a few words."""
        return "random actions"

    def join(self, client: int, hello: Hello) -> None:
        """Every client fits."""

    def decide(self, asked: Sequence[ClientDecision]) -> list[np.ndarray]:
        """Actions for all arenas."""
        counts = [len(decision.seekers) for _, decision in asked]
        actions = self.draw(AGENTS * sum(counts)).reshape(-1, AGENTS, ACTION_SIZE)
        return np.split(actions, np.cumsum(counts)[:-1])

    def act(self, requests: Sequence[ActionRequest]) -> np.ndarray:
        """Actions for all agents."""
        return self.draw(len(requests))

    def learn(self, experiences: Sequence[Experience]) -> int:
        """Accept and ignore outcomes."""
        return len(experiences)

    def leave(self, client: int) -> None:
        """Nothing to forget."""

    def draw(self, agents: int) -> np.ndarray:
        """That many actions, (agents, 3) float32."""
        actions = self._rng.random((agents, ACTION_SIZE), dtype=np.float32)
        actions[:, :2] = 2.0 * actions[:, :2] - 1.0
        actions[:, 2] = actions[:, 2] < JUMP_PROB
        return actions


class PolicyActor(RandomActor):
    """Plays trained policies deterministically; a role without a policy plays at random."""

    def __init__(self, policies: Mapping[Role, FrozenPolicy], rules: Rules, seed: int) -> None:
        super().__init__(seed)
        self._policies = policies
        self._is_seeker = rules.field("is_seeker").start

    def describe(self) -> str:
        """What it is, in a few words."""
        shown = [
            f"{role} of {self._policies[role].name} ({self._policies[role].trained_steps:,} steps)"
            if role in self._policies
            else f"{role} at random"
            for role in ROLES
        ]
        return ", ".join(shown)

    def decide(self, asked: Sequence[ClientDecision]) -> list[np.ndarray]:
        """Actions for all arenas, by who is "it"."""
        counts = [len(decision.seekers) for _, decision in asked]
        seekers = np.concatenate([decision.seekers for _, decision in asked])
        observations = np.concatenate([decision.observations for _, decision in asked])
        arenas = np.arange(len(seekers))
        actions = np.empty((len(seekers), AGENTS, ACTION_SIZE), dtype=np.float32)
        for role, agents in zip(ROLES, (seekers, 1 - seekers), strict=True):
            actions[arenas, agents] = self._play(role, observations[arenas, agents])
        return np.split(actions, np.cumsum(counts)[:-1])

    def act(self, requests: Sequence[ActionRequest]) -> np.ndarray:
        """Actions for all agents, by what their observations say they are."""
        observations = np.stack([request.observation for request in requests])
        seeking = observations[:, self._is_seeker] > 0.5
        actions = np.empty((len(requests), ACTION_SIZE), dtype=np.float32)
        for role, rows in zip(ROLES, (seeking, ~seeking), strict=True):
            if rows.any():
                actions[rows] = self._play(role, observations[rows])
        return actions

    def _play(self, role: Role, observations: np.ndarray) -> np.ndarray:
        if role in self._policies:
            return self._policies[role].act(observations)
        return self.draw(len(observations))


class Actors:
    """One actor for every observation size that a client has sent."""

    def __init__(self, make: Callable[[int], Actor], most: int = MOST_SIZES) -> None:
        self._make, self._most = make, most
        self._actors: dict[int, Actor] = {}

    def actor_for(self, size: int) -> Actor:
        """The actor for observations of this size; raises UserError where there are too many."""
        if size not in self._actors:
            if len(self._actors) >= self._most:
                raise UserError(f"too many observation sizes: {self._most} others are in use")
            self._actors[size] = self._make(size)
        return self._actors[size]

    def leave(self, client: int) -> None:
        """Forget a client."""
        for actor in self._actors.values():
            actor.leave(client)


class RequestBatcher:
    """Collects requests until the next turn of the loop, then asks each actor once.

    A client that is alone is answered at once.
    """

    def __init__(self, actors: Actors) -> None:
        self.clients = 0
        """How many are connected."""
        self._actors = actors
        self._decisions: dict[int, Pending[ClientDecision]] = {}
        self._requests: dict[int, Pending[Sequence[ActionRequest]]] = {}

    def decide(self, client: int, size: int, decision: Decision) -> asyncio.Future[np.ndarray]:
        """Actions (arenas, 2, 3) float32 for a decision."""
        return self._put(self._decisions, size, (client, decision))

    def act(self, size: int, requests: Sequence[ActionRequest]) -> asyncio.Future[np.ndarray]:
        """Actions (requests, 3) float32."""
        return self._put(self._requests, size, requests)

    def _put(self, batch: dict[int, Pending[T]], size: int, what: T) -> asyncio.Future[np.ndarray]:
        loop = asyncio.get_running_loop()
        is_first = not self._decisions and not self._requests
        answer: asyncio.Future[np.ndarray] = loop.create_future()
        batch.setdefault(size, []).append((what, answer))
        if is_first and self.clients == 1:
            self._answer()
        elif is_first:
            loop.call_soon(self._answer)
        return answer

    def _answer(self) -> None:
        decisions, self._decisions = self._decisions, {}
        requests, self._requests = self._requests, {}
        for size, asked in decisions.items():
            _settle(asked, partial(_decide, self._actors.actor_for(size)))
        for size, batches in requests.items():
            _settle(batches, partial(_act, self._actors.actor_for(size)))


def _settle(pending: Pending[T], answer: Callable[[list[T]], list[np.ndarray]]) -> None:
    """Answer all at once; if that fails one by one, so that one bad request fails alone."""
    try:
        answers = answer([what for what, _ in pending])
    except Exception as error:  # noqa: BLE001 - an actor's error, which the handler logs
        if len(pending) > 1:
            for one in pending:
                _settle([one], answer)
        elif not pending[0][1].done():
            pending[0][1].set_exception(error)
        return
    for (_, future), actions in zip(pending, answers, strict=True):
        if not future.done():
            future.set_result(actions)


def _decide(actor: Actor, asked: list[ClientDecision]) -> list[np.ndarray]:
    answers = actor.decide(asked)
    return [
        check_actions(actions, len(decision.seekers), AGENTS)
        for (_, decision), actions in zip(asked, answers, strict=True)
    ]


def _act(actor: Actor, batches: list[Sequence[ActionRequest]]) -> list[np.ndarray]:
    requests = [request for batch in batches for request in batch]
    actions = check_actions(actor.act(requests), len(requests))
    ends = np.cumsum([len(batch) for batch in batches])
    return np.split(actions, ends[:-1])
