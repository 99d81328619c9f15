"""A client that sends decisions: its arenas, and what is remembered until it can be learned."""

import numpy as np

from estragon.live.brain import Decision, Hello, Outcome
from estragon.live.episodes import EpisodeBook
from estragon.live.trainer import Harvest
from estragon.selfplay.config import PPOConfig, Task
from estragon.selfplay.kernels import Numbers
from estragon.selfplay.opponents import RivalPair, Sides, sides_of
from estragon.selfplay.policy import Policy
from estragon.selfplay.rollout import Moments, Players, Question, Rollout
from estragon.selfplay.tally import Episodes
from estragon.tag.arenas import Results
from estragon.tag.rules import AGENTS, HIDER, SEEKER, TERMS


class Seat:
    """One connection's arenas, in lockstep with its game."""

    def __init__(
        self, hello: Hello, task: Task, config: PPOConfig, policies: list[Policy], seed: int
    ) -> None:
        """Prepare for what `hello` announces."""
        self._learns = hello.training
        self._sides = _sides_of(hello, task, config)
        self._rollout = Rollout(task.rules, self._sides, config)
        self._book = EpisodeBook(self._sides)
        self._ended: list[Episodes] = []
        self._policies = policies
        self._asked: int | None = None
        """The number of the decision that was asked for last."""
        arenas, size = hello.arenas, task.rules.observation.size
        self._observations = np.zeros((arenas, AGENTS, size), dtype=np.float32)
        self._seekers = np.zeros(arenas, dtype=np.int64)
        self._decided_as = np.zeros(arenas, dtype=np.int64)
        self._results = Results(
            observations=self._observations,
            rewards=np.zeros((arenas, AGENTS), dtype=np.float32),
            terms=np.zeros((arenas, AGENTS, len(TERMS)), dtype=np.float32),
            ends=np.zeros(arenas, dtype=np.int8),
            winners=np.zeros(arenas, dtype=np.int8),
            ticks=np.zeros(arenas, dtype=np.int64),
            distances=np.zeros(arenas),
            final_observations=self._observations,
        )
        self._random = np.random.default_rng((task.seed, seed))

    @property
    def full(self) -> bool:
        """Whether there is something to learn from."""
        return self._rollout.full

    def see(self, decision: Decision) -> None:
        """Take note of what the last decision brought, and of what agents see now."""
        if decision.seq == self._asked:
            return  # asked again, because somebody else's question could not be answered
        self._decided_as[:] = self._seekers
        self._seekers[:] = decision.seekers
        if decision.outcome is not None and self._asked is not None and self._learns:
            self._note(decision.outcome)
        self._observations[...] = decision.observations
        self._asked = decision.seq

    def harvest(self, patience: list[float]) -> Harvest:
        """What the last stretch brought; begins the next one.

        Args:
            patience: of each role: how much counts what it did against its likes.
        """
        rollout = self._rollout
        rollout.close(self._observations, self._seekers, self._policies)
        batches = [rollout.batch(role, patience[role]) for role in (SEEKER, HIDER)]
        moments = [_kept(rollout.moments(role)) for role in (SEEKER, HIDER)]
        ended, self._ended = self._ended, []
        rollout.tally.take()
        rollout.begin()
        return Harvest(batches, moments, ended)

    def question(self, numbers: list[Numbers], rivals: RivalPair, bots: RivalPair) -> Question:
        """What its arenas want to know."""
        players = Players(self._policies, rivals, bots, self._random, numbers)
        return Question(self._rollout, self._observations, self._seekers, players)

    def _note(self, outcome: Outcome) -> None:
        results = self._results
        for name in ("rewards", "terms", "ends", "winners", "ticks", "distances"):
            getattr(results, name)[...] = getattr(outcome, name)
        self._rollout.record(results, self._seekers)
        self._ended += self._book.add(results, self._decided_as)


def _sides_of(hello: Hello, task: Task, config: PPOConfig) -> Sides:
    """Who learns where: with both agents ours some meet earlier selves and bots."""
    if all(hello.controlled):
        return sides_of(hello.arenas, task.role, task.opponent, config.past, config.sparring)
    first, second = (hello.arenas * own for own in hello.controlled)
    return Sides(first, 0, second)


def _kept(moments: Moments) -> Moments:
    return Moments(moments.rows, moments.sums.copy(), moments.squares.copy())
