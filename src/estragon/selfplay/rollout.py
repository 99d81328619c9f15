"""A stretch of decisions in some arenas, from one update to the next, and what came of it.

Where the arenas are is not its business: it is told what agents see, says what they do, and is told
what that brought.
"""

from typing import NamedTuple

import numpy as np
import torch

from estragon.selfplay.config import PPOConfig
from estragon.selfplay.kernels import (
    FEW_ROWS,
    Numbers,
    add_moments,
    choose,
    decide_few,
    estimate_advantages,
    prepare,
    record,
)
from estragon.selfplay.opponents import RivalPair, Sides
from estragon.selfplay.policy import Policy
from estragon.selfplay.tally import Tally
from estragon.tag.arenas import Results
from estragon.tag.rules import HIDER, SEEKER, Rules

SAMPLED_EVERY = 8
"""Decisions between two that count for the normalisation."""


class Batch(NamedTuple):
    """What a role learns from; one row a decision of a learning agent."""

    features: np.ndarray
    """(rows, observation size) float32."""
    picks: np.ndarray
    """(rows, 2) int64: move and jump."""
    log_chances: np.ndarray
    advantages: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    """(rows,) float32: how much each row counts for the policy."""


class Moments(NamedTuple):
    """Sums over turned observations, for the normalisation."""

    rows: int
    sums: np.ndarray
    squares: np.ndarray


class Players(NamedTuple):
    """Whoever acts in the arenas, and the source of every chance."""

    policies: list[Policy]
    """Seeker and hider, as they are now."""
    rivals: RivalPair
    """Whoever plays the agents that do not learn,"""
    bots: RivalPair
    """and whoever does so in the arenas set aside for sparring."""
    random: np.random.Generator
    numbers: list[Numbers] | None = None
    """The policies once more, for when there are so few arenas that torch does not pay."""


class Rollout:
    """`horizon` decisions of all arenas; all memory is set aside once."""

    def __init__(self, rules: Rules, sides: Sides, config: PPOConfig) -> None:
        """For arenas with these sides learning."""
        self.sides = sides
        self.tally = Tally(sides)
        self.decisions = 0
        """Taken so far."""
        self._rules, self._config = rules, config
        self._learns = sides.learns()
        self._spars = sides.spars()
        count, steps, size = sides.count, config.horizon, rules.observation.size
        self._features = np.empty((2, steps + 1, count, size), dtype=np.float32)
        self._picks = np.empty((2, steps, count, 2), dtype=np.int64)
        self._log_chances = np.empty((2, steps, count), dtype=np.float32)
        self._values = np.zeros((2, steps + 1, count), dtype=np.float32)
        self._rewards = np.empty((2, steps, count), dtype=np.float32)
        self._advantages = np.empty((2, steps, count), dtype=np.float32)
        self._ended = np.empty((steps, count), dtype=bool)
        self._swapped = np.empty((steps, count), dtype=bool)
        self._mine = np.empty((2, steps, count), dtype=bool)
        self._actions = np.zeros((count, 2, 3), dtype=np.float32)
        self._sums = np.zeros((2, 2, size))
        self._rows = np.arange(count)
        self._spans = self._learning_spans()
        self._seekers = np.zeros(count, dtype=np.int64)

    @property
    def full(self) -> bool:
        """Whether all decisions have been taken."""
        return self.decisions == self._config.horizon

    def begin(self) -> None:
        """Forget the stretch before."""
        self.decisions = 0
        self._sums[...] = 0.0

    def decide(self, observations: np.ndarray, seekers: np.ndarray, players: Players) -> np.ndarray:
        """Actions (arenas, 2, 3) for what the agents see; overwritten by the next ones.

        Args:
            observations: (arenas, 2, observation size) float32.
            seekers: (arenas,) int64, who is "it".
            players: whoever acts.
        """
        return decide_together([Question(self, observations, seekers, players)])[0]

    def begin_decision(self, seekers: np.ndarray) -> None:
        """Take note of who is "it"."""
        self._seekers[:] = seekers

    def look(self, role: int, observations: np.ndarray, policy: Policy) -> np.ndarray:
        """What a role sees now, as its policy wants it: (rows, observation size)."""
        t, span = self.decisions, self._spans[role]
        features: np.ndarray = self._features[role, t, span]
        mean, scale = policy.mean.numpy(), policy.scale.numpy()
        prepare(observations[span], self._agents(role)[span], mean, scale, features)
        if not self.full:
            self._sample(role, features, mean, scale)
        return features

    def choose(
        self,
        role: int,
        observations: np.ndarray,
        policy: Policy,
        scores: np.ndarray,
        random: np.random.Generator,
    ) -> None:
        """Draw what a role does, by its policy's scores, and note everything about it."""
        t, span, agents = self.decisions, self._spans[role], self._agents(role)
        self._value(role, scores)
        self._mine[role, t] = self._learns[self._rows, agents]
        choose(
            scores,
            random.random((len(scores), 2), dtype=np.float32),
            policy.moves.numpy(),
            observations[span],
            agents[span],
            self._picks[role, t, span],
            self._log_chances[role, t, span],
            self._actions[span],
        )

    def decide_few(
        self, role: int, observations: np.ndarray, numbers: Numbers, random: np.random.Generator
    ) -> None:
        """`look` and `choose` at once."""
        t, span, agents = self.decisions, self._spans[role], self._agents(role)
        features = self._features[role, t, span]
        self._mine[role, t] = self._learns[self._rows, agents]
        decide_few(
            observations[span],
            agents[span],
            numbers,
            random.random((len(features), 2), dtype=np.float32),
            features,
            self._values[role, t, span],
            self._picks[role, t, span],
            self._log_chances[role, t, span],
            self._actions[span],
        )
        self._sample(role, features, numbers.mean, numbers.scale)

    def complete(self, observations: np.ndarray, players: Players) -> np.ndarray:
        """All actions, with those of agents that do not learn."""
        self._play_rivals(observations, players.rivals, self.sides.against_rivals())
        self._play_rivals(observations, players.bots, self.sides.against_bots())
        return self._actions

    def record(self, results: Results, seekers_after: np.ndarray) -> None:
        """Note what the last decision brought, and who is "it" now."""
        t = self.decisions
        record(
            results,
            self._seekers,
            seekers_after,
            self._config.reward_scale,
            self._rewards[:, t],
            self._ended[t],
            self._swapped[t],
        )
        self.tally.add(results, self._seekers)
        self.decisions += 1

    @torch.no_grad()
    def close(self, observations: np.ndarray, seekers: np.ndarray, policies: list[Policy]) -> None:
        """End a full stretch with what the agents see now: how well did each decision do?"""
        self.begin_decision(seekers)
        for role in (SEEKER, HIDER):
            features = self.look(role, observations, policies[role])
            self._value(role, policies[role].score(torch.from_numpy(features)).numpy())
        estimate_advantages(
            self._rewards,
            self._values,
            self._ended,
            self._swapped,
            self._config.discount,
            self._config.smoothing,
            self._advantages,
        )

    def batch(self, role: int, patience: float) -> Batch:
        """What one role can learn from a stretch that is closed.

        Args:
            role: who learns.
            patience: how much counts what it did outside the arenas set aside for sparring.
        """
        mine = self._mine[role]
        weights = np.where(self._spars, np.float32(1.0), np.float32(patience))
        features = self._features[role, :-1]
        return Batch(
            features[mine],
            self._picks[role][mine],
            self._log_chances[role][mine],
            self._advantages[role][mine],
            self._values[role, :-1][mine],
            np.broadcast_to(weights, mine.shape)[mine],
        )

    def moments(self, role: int) -> Moments:
        """What the observations of a role were like."""
        span = self._rows[self._spans[role]]
        seen = len(range(0, self._config.horizon, SAMPLED_EVERY)) * len(span)
        return Moments(seen, self._sums[role, 0], self._sums[role, 1])

    def _sample(self, role: int, features: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> None:
        if self.decisions % SAMPLED_EVERY == 0:
            add_moments(features, mean, scale, self._sums[role, 0], self._sums[role, 1])

    def _agents(self, role: int) -> np.ndarray:
        """Which agent of every arena plays a role."""
        return self._seekers if role == SEEKER else 1 - self._seekers

    def _value(self, role: int, scores: np.ndarray) -> None:
        self._values[role, self.decisions, self._spans[role]] = scores[:, -1]

    def _learning_spans(self) -> list[slice]:
        """The arenas in which a role may be played by a learner, seeker first."""
        if not self._rules.rule_set.tag_ends_episode:
            return [slice(0, self.sides.count)] * 2
        return [slice(0, self.sides.first + self.sides.both), slice(self.sides.first, None)]

    def _play_rivals(
        self, observations: np.ndarray, rivals: RivalPair, where: list[tuple[int, slice]]
    ) -> None:
        """Overwrite the actions of agents that do not learn."""
        for agent, group in where:
            if group.start == group.stop:
                continue
            is_seeker = self._seekers[group] == agent
            for rival, chosen in ((rivals.seeker, is_seeker), (rivals.hider, ~is_seeker)):
                if rival is None or not chosen.any():
                    continue
                rows = group if chosen.all() else self._rows[group][chosen]
                seen = np.ascontiguousarray(observations[rows, agent])
                self._actions[rows, agent] = rival.act(seen)


class Question(NamedTuple):
    """What the arenas of one rollout want to know."""

    rollout: Rollout
    observations: np.ndarray
    """(arenas, 2, observation size) float32."""
    seekers: np.ndarray
    """(arenas,) int64, who is "it"."""
    players: Players
    """All questions asked together have the same policies."""


@torch.no_grad()
def decide_together(questions: list[Question]) -> list[np.ndarray]:
    """Actions (arenas, 2, 3) for each rollout, from one look into each policy."""
    for ask in questions:
        ask.rollout.begin_decision(ask.seekers)
    numbers = questions[0].players.numbers
    if sum(len(ask.seekers) for ask in questions) > FEW_ROWS:
        numbers = None
    for role in (SEEKER, HIDER):
        if numbers is not None:
            for ask in questions:
                ask.rollout.decide_few(role, ask.observations, numbers[role], ask.players.random)
            continue
        policy = questions[0].players.policies[role]
        features = [ask.rollout.look(role, ask.observations, policy) for ask in questions]
        together = features[0] if len(features) == 1 else np.concatenate(features)
        scores: np.ndarray = policy.score(torch.from_numpy(together)).numpy()
        first = 0
        for ask, rows in zip(questions, map(len, features), strict=True):
            own, first = scores[first : first + rows], first + rows
            ask.rollout.choose(role, ask.observations, policy, own, ask.players.random)
    return [ask.rollout.complete(ask.observations, ask.players) for ask in questions]
