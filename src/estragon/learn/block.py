"""Some of the arenas, played by one thread from one update to the next, and what came of it."""

from typing import NamedTuple

import numpy as np
import torch

from estragon.learn.kernels import add_moments, choose, estimate_advantages, prepare, record
from estragon.learn.opponents import RivalPair, Sides
from estragon.learn.policy import Policy
from estragon.learn.recipe import Recipe
from estragon.learn.tally import Tally
from estragon.tag.arenas import Arenas
from estragon.tag.roles import HIDER, SEEKER

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


class Block:
    """Arenas that advance `horizon` decisions at a time; all memory is set aside once."""

    def __init__(self, arenas: Arenas, sides: Sides, recipe: Recipe) -> None:
        """Play these arenas."""
        self.arenas = arenas
        self.sides = sides
        self.tally = Tally(sides)
        self._recipe = recipe
        self._learns = sides.learns()
        self._spars = sides.spars()
        count, steps, size = arenas.count, recipe.horizon, arenas.rules.observation.size
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

    @torch.no_grad()
    def play(
        self,
        policies: list[Policy],
        rivals: RivalPair,
        bots: RivalPair,
        random: np.random.Generator,
    ) -> None:
        """Play `horizon` decisions in every arena.

        Args:
            policies: seeker and hider, as they are now.
            rivals: whoever plays the agents that do not learn,
            bots: and whoever does so in the arenas set aside for sparring.
            random: the source of every chance in this block and update.
        """
        steps = self._recipe.horizon
        self._sums[...] = 0.0
        for t in range(steps + 1):
            seekers = self.arenas.arenas["seeker"].copy()
            for role, agents in ((SEEKER, seekers), (HIDER, 1 - seekers)):
                scores = self._look(t, role, agents, policies[role])
                if t < steps:
                    self._decide(t, role, agents, policies[role], scores, random)
            if t == steps:
                break
            self._play_rivals(seekers, rivals, self.sides.against_rivals())
            self._play_rivals(seekers, bots, self.sides.against_bots())
            results = self.arenas.step(self._actions)
            record(
                results,
                seekers,
                self.arenas.arenas["seeker"],
                self._recipe.reward_scale,
                self._rewards[:, t],
                self._ended[t],
                self._swapped[t],
            )
            self.tally.add(results, seekers)
        estimate_advantages(
            self._rewards,
            self._values,
            self._ended,
            self._swapped,
            self._recipe.discount,
            self._recipe.smoothing,
            self._advantages,
        )

    def batch(self, role: int, patience: float) -> Batch:
        """What one role can learn from the last play.

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
        """What the observations of a role were like in the last play."""
        span = self._rows[self._spans[role]]
        seen = len(range(0, self._recipe.horizon, SAMPLED_EVERY)) * len(span)
        return Moments(seen, self._sums[role, 0], self._sums[role, 1])

    def _look(self, t: int, role: int, agents: np.ndarray, policy: Policy) -> np.ndarray:
        span = self._spans[role]
        features = self._features[role, t, span]
        mean, scale = policy.mean.numpy(), policy.scale.numpy()
        prepare(self.arenas.observations[span], agents[span], mean, scale, features)
        if t < self._recipe.horizon and t % SAMPLED_EVERY == 0:
            add_moments(features, mean, scale, self._sums[role, 0], self._sums[role, 1])
        scores: np.ndarray = policy.score(torch.from_numpy(features)).numpy()
        self._values[role, t, span] = scores[:, -1]
        return scores

    def _decide(
        self,
        t: int,
        role: int,
        agents: np.ndarray,
        policy: Policy,
        scores: np.ndarray,
        random: np.random.Generator,
    ) -> None:
        span = self._spans[role]
        self._mine[role, t] = self._learns[self._rows, agents]
        choose(
            scores,
            random.random((len(scores), 2), dtype=np.float32),
            policy.moves.numpy(),
            self.arenas.observations[span],
            agents[span],
            self._picks[role, t, span],
            self._log_chances[role, t, span],
            self._actions[span],
        )

    def _learning_spans(self) -> list[slice]:
        """The arenas in which a role may be played by a learner, seeker first."""
        if not self.arenas.rules.rule_set.tag_ends_episode:
            return [slice(0, self.sides.count)] * 2
        return [slice(0, self.sides.first + self.sides.both), slice(self.sides.first, None)]

    def _play_rivals(
        self, seekers: np.ndarray, rivals: RivalPair, where: list[tuple[int, slice]]
    ) -> None:
        """Overwrite the actions of agents that do not learn."""
        for agent, group in where:
            is_seeker = seekers[group] == agent
            for rival, chosen in ((rivals.seeker, is_seeker), (rivals.hider, ~is_seeker)):
                if chosen.all():
                    rows: slice | np.ndarray = group
                elif chosen.any():
                    rows = self._rows[group][chosen]
                else:
                    continue
                if rival is not None and len(chosen):
                    seen = np.ascontiguousarray(self.arenas.observations[rows, agent])
                    self._actions[rows, agent] = rival.act(seen)
