"""Matches that carry ids, from godot/tests/planted.tscn, and a actor that checks every one of them.

The first number of an observation is its id: looks, arena and agent. The reward of a decision is a
function of the id it was asked with and of the action it was answered with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from estragon.live.protocol import ActionRequest, Decision, Experience, Hello

SCENE = "res://tests/planted.tscn"
IDS_PER_LOOK = 64
REMAINDER = 1009


def ids_of(observations: np.ndarray) -> np.ndarray:
    """The planted ids of observations (..., size): (...) int64."""
    ids = observations[..., 0].astype(np.int64)
    assert (ids == observations[..., 0]).all(), "no whole number was planted"
    return ids


def planted_rewards(ids: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """What decisions with these ids (...) and actions (..., 3) bring: (...) float32."""
    actions = actions.astype(np.float64)
    rewards = ids % REMAINDER + actions[..., 0] + 2.0 * actions[..., 1] + 4.0 * actions[..., 2]
    return np.asarray(rewards, dtype=np.float32)


def agents_of(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The arenas and agents that ids belong to."""
    return ids % IDS_PER_LOOK // 2, ids % 2


@dataclass
class PlantedBrain:
    """Plays at random, and checks that what it is told belongs to what it answered."""

    seed: int = 0
    learning: bool = True
    decisions: int = 0
    outcomes: int = 0
    ends: int = 0
    sessions: int = 0
    seen: set[int] = field(default_factory=set)
    """All ids there were."""
    mistakes: list[str] = field(default_factory=list)
    looks: np.ndarray | None = None
    """(arenas,): of the last decision."""

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._asked: dict[int, tuple[int, np.ndarray, np.ndarray]] = {}
        """By client: seq, ids and actions of the last decision."""

    def describe(self) -> str:
        return "checking ids"

    def join(self, client: int, hello: Hello) -> None:
        self.sessions += 1

    def leave(self, client: int) -> None:
        self._asked.pop(client, None)

    def act(self, asks: Sequence[ActionRequest]) -> np.ndarray:
        raise AssertionError("nobody should ask in JSON")

    def learn(self, experiences: Sequence[Experience]) -> int:
        raise AssertionError("nobody should tell in JSON")

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        return [self._decide(client, decision) for client, decision in asked]

    def _decide(self, client: int, decision: Decision) -> np.ndarray:
        ids = ids_of(decision.observations)
        looks = ids[:, 0] // IDS_PER_LOOK
        arenas, agents = agents_of(ids)
        shape = ids.shape
        self._check(decision.seq, "arenas", arenas, np.arange(len(ids))[:, None].repeat(2, 1))
        self._check(decision.seq, "agents", agents, np.broadcast_to([0, 1], shape))
        if decision.outcome is not None:
            self._check_outcome(client, decision, looks)
        self._check(decision.seq, "new ids", [i in self.seen for i in ids.flat], [False] * ids.size)
        self.seen.update(ids.flat)
        self.looks = looks
        actions = self._random.uniform(-1.0, 1.0, (*shape, 3)).astype(np.float32)
        self._asked[client] = decision.seq, ids, actions
        self.decisions += ids.size
        return actions

    def _check_outcome(self, client: int, decision: Decision, looks: np.ndarray) -> None:
        outcome, seq = decision.outcome, decision.seq
        assert outcome is not None
        before, ids, actions = self._asked[client]
        self._check(seq, "seq", before + 1, seq)
        self._check(seq, "rewards", outcome.rewards, planted_rewards(ids, actions))
        self._check(seq, "terms", outcome.terms.sum(2).astype(np.float32), outcome.rewards)
        ended = outcome.ends != 0
        last = ids[ended] + IDS_PER_LOOK
        self._check(seq, "last", ids_of(outcome.last), last)
        self._check(seq, "looks", looks, ids[:, 0] // IDS_PER_LOOK + 1 + ended)
        self.seen.update(last.flat)
        self.outcomes += ids.size
        self.ends += int(ended.sum())

    def _check(self, seq: int, what: str, actual: object, expected: object) -> None:
        if not np.array_equal(np.asarray(actual), np.asarray(expected)):
            self.mistakes.append(f"decision {seq}: {what}: {actual} instead of {expected}")
