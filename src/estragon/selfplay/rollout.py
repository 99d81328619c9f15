"""Rollouts: the decisions of some arenas between two updates, and the episodes that ended in them.

Who steps the arenas is not its business: it is given observations, returns actions, and is given
their results.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from estragon.selfplay.config import PPOConfig
from estragon.selfplay.kernels import (
    COUNTS,
    FEW_ROWS,
    PRIVILEGED,
    PolicyArrays,
    act,
    add_moments,
    count_episodes,
    extract_features,
    extract_privileged,
    record_step,
    sample_actions,
)
from estragon.selfplay.league import ArenaSplit, OpponentPair
from estragon.selfplay.policy import Critic, Policy
from estragon.selfplay.ppo import Batch, Moments, compute_gae
from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas, Results
from estragon.tag.rules import AGENTS, GOING_ON, HIDER, SEEKER, TERMS, Rules

SAMPLED_EVERY = 8
"""Decisions between two that count for the normalisation."""


@dataclass(frozen=True)
class EpisodeStats:
    """Sums over episodes that ended."""

    count: int = 0
    decisions: int = 0
    ticks: int = 0
    seeker_wins: float = 0.0
    """A draw counts half."""
    tags: int = 0
    distance: float = 0.0
    """Metres between the agents, added up over decisions."""
    terms: tuple[tuple[float, ...], ...] = ((0.0,) * len(TERMS),) * AGENTS
    """Rewards by role and term."""

    def __add__(self, other: "EpisodeStats") -> "EpisodeStats":
        """Both together."""
        terms = np.add(self.terms, other.terms)
        return EpisodeStats(
            self.count + other.count,
            self.decisions + other.decisions,
            self.ticks + other.ticks,
            self.seeker_wins + other.seeker_wins,
            self.tags + other.tags,
            self.distance + other.distance,
            tuple(tuple(role) for role in terms.tolist()),
        )


class EpisodeCounter:
    """Counts episodes in the arenas where learners meet learners; in all, if there are none."""

    def __init__(self, split: ArenaSplit) -> None:
        """Start with every arena at the start of an episode."""
        self._first = split.first if split.both else 0
        rows = split.both or split.count
        self._running = {
            "terms": np.zeros((rows, AGENTS, len(TERMS))),
            "distance": np.zeros(rows),
            "decisions": np.zeros(rows),
        }
        self._ended = np.zeros((rows, COUNTS + AGENTS * len(TERMS)))
        self._sums = np.zeros(COUNTS + AGENTS * len(TERMS))
        self._count = 0
        self.wins: list[bool] = []
        """Whether the seeker won, by the episodes of `note_wins` since the last `take`."""

    def add(self, results: Results, seekers: np.ndarray) -> None:
        """Count one decision, played while `seekers` (arenas,) were "it"."""
        running = self._running["terms"], self._running["distance"], self._running["decisions"]
        self._count = count_episodes(
            results, seekers, self._first, *running, self._ended, self._sums
        )

    def note_wins(self, results: Results, counted: np.ndarray) -> None:
        """Note who won the episodes that ended just now, where they are `counted` (arenas,)."""
        span = slice(self._first, self._first + len(self._running["distance"]))
        over = (results.ends[span] != GOING_ON) & counted[span]
        self.wins += (results.winners[span][over] == SEEKER).tolist()

    def just_ended(self) -> list[EpisodeStats]:
        """The episodes that ended with the last decision, one by one."""
        return [_stats(episode) for episode in self._ended[: self._count]]

    def take(self) -> EpisodeStats:
        """The sums since the last call."""
        stats = _stats(self._sums)
        self._sums[:] = 0.0
        self.wins.clear()
        return stats

    def save(self) -> dict[str, np.ndarray]:
        """The running episodes, right after a `take`."""
        return {name: array.copy() for name, array in self._running.items()}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Load what `save` gave."""
        for name, own in self._running.items():
            shape, last = saved[name].shape, saved[name].shape[-1]
            if shape[:2] != own.shape[:2] or last > own.shape[-1]:
                raise UserError("saved episode counts: made with another number of arenas")
            own[...] = 0.0
            own[..., :last] = saved[name]  # a run older than a reward term lacks it


def _stats(numbers: np.ndarray) -> EpisodeStats:
    count, decisions, ticks, wins, tags, distance = numbers[:COUNTS].tolist()
    terms = tuple(tuple(role) for role in numbers[COUNTS:].reshape(AGENTS, -1).tolist())
    return EpisodeStats(int(count), int(decisions), int(ticks), wins, int(tags), distance, terms)


class Players(NamedTuple):
    """Who acts in the arenas."""

    policies: list[Policy]
    """Seeker and hider, as they are now."""
    opponents: Sequence[OpponentPair]
    """They play the agents that do not learn, each in an equal share of the arenas,"""
    bots: OpponentPair
    """except in the arenas set aside for bots."""
    rng: np.random.Generator
    arrays: Sequence[PolicyArrays | None] = (None, None)
    """The same policies for `kernels.act`, used where there are few arenas."""
    critics: Sequence[Critic] = ()
    """They correct the values of the policies; without them, these count."""


class Rollout:
    """The buffer of `horizon` decisions in all arenas, allocated once."""

    def __init__(self, rules: Rules, split: ArenaSplit, config: PPOConfig) -> None:
        """Allocate the buffer for arenas with these learners."""
        self.split = split
        self.episodes = EpisodeCounter(split)
        self.decisions = 0
        """Taken so far."""
        self._rules, self._config = rules, config
        self._learns = split.learns()
        count, steps, size = split.count, config.horizon, rules.observation.size
        self._features = np.empty((2, steps + 1, count, size), dtype=np.float32)
        self._privileged = np.zeros((2, steps + 1, count, PRIVILEGED), dtype=np.float32)
        self._has_critics = False
        self._actions = np.empty((2, steps, count, 2), dtype=np.int64)
        self._log_probs = np.empty((2, steps, count), dtype=np.float32)
        self._values = np.zeros((2, steps + 1, count), dtype=np.float32)
        self._rewards = np.empty((2, steps, count), dtype=np.float32)
        self._advantages = np.empty((2, steps, count), dtype=np.float32)
        self._ended = np.empty((steps, count), dtype=bool)
        self._swapped = np.empty((steps, count), dtype=bool)
        self._learning = np.empty((2, steps, count), dtype=bool)
        self._env_actions = np.zeros((count, 2, 3), dtype=np.float32)
        self._sums = np.zeros((2, 2, size))
        self._rows = np.arange(count)
        self._spans = self._learning_spans()
        self._seekers = np.zeros(count, dtype=np.int64)

    @property
    def full(self) -> bool:
        """Whether all decisions have been taken."""
        return self.decisions == self._config.horizon

    def begin(self) -> None:
        """Empty the buffer."""
        self.decisions = 0
        self._sums[...] = 0.0

    def begin_decision(self, seekers: np.ndarray) -> None:
        """Note who is "it"."""
        self._seekers[:] = seekers

    def observe(self, role: int, observations: np.ndarray, policy: Policy) -> np.ndarray:
        """Record the features of a role: (rows, observation size)."""
        t, span = self.decisions, self._spans[role]
        features: np.ndarray = self._features[role, t, span]
        mean, scale = policy.mean.numpy(), policy.scale.numpy()
        agents = self._agents(role)[span]
        extract_features(observations[span], agents, mean, scale, features)
        extract_privileged(observations[span], agents, self._privileged[role, t, span])
        if not self.full:
            self._add_moments(role, features, mean, scale)
        return features

    def sample(
        self,
        role: int,
        observations: np.ndarray,
        policy: Policy,
        outputs: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        """Sample and record the actions of a role, given the outputs of its policy."""
        t, span, agents = self.decisions, self._spans[role], self._agents(role)
        self._values[role, t, span] = outputs[:, -1]
        self._learning[role, t] = self._learns[self._rows, agents]
        sample_actions(
            outputs,
            rng.random((len(outputs), 2), dtype=np.float32),
            policy.moves.numpy(),
            observations[span],
            agents[span],
            self._actions[role, t, span],
            self._log_probs[role, t, span],
            self._env_actions[span],
        )

    def act_few(
        self, role: int, observations: np.ndarray, policy: PolicyArrays, rng: np.random.Generator
    ) -> None:
        """`observe` and `sample` at once, in numba."""
        t, span, agents = self.decisions, self._spans[role], self._agents(role)
        features = self._features[role, t, span]
        self._learning[role, t] = self._learns[self._rows, agents]
        act(
            observations[span],
            agents[span],
            policy,
            rng.random((len(features), 2), dtype=np.float32),
            features,
            self._values[role, t, span],
            self._actions[role, t, span],
            self._log_probs[role, t, span],
            self._env_actions[span],
        )
        self._add_moments(role, features, policy.mean, policy.scale)

    def complete(self, observations: np.ndarray, players: Players) -> np.ndarray:
        """All actions, with those of the agents that do not learn."""
        for number, opponents in enumerate(players.opponents):
            where = self.split.against_opponents(number, len(players.opponents))
            self._play_opponents(observations, opponents, where)
        self._play_opponents(observations, players.bots, self.split.against_bots())
        return self._env_actions

    def record(self, results: Results, seekers_after: np.ndarray) -> None:
        """Record the results of the last decision, and who is "it" now."""
        t = self.decisions
        record_step(
            results,
            self._seekers,
            seekers_after,
            self._config.reward_scale,
            self._rewards[:, t],
            self._ended[t],
            self._swapped[t],
        )
        self.episodes.add(results, self._seekers)
        self.decisions += 1

    @torch.no_grad()
    def finish(
        self,
        observations: np.ndarray,
        seekers: np.ndarray,
        policies: list[Policy],
        critics: Sequence[Critic] = (),
    ) -> None:
        """Compute the advantages of a full buffer, bootstrapping from the observations now."""
        self.begin_decision(seekers)
        self._has_critics = bool(critics)
        for role in (SEEKER, HIDER):
            span = self._spans[role]
            features = self.observe(role, observations, policies[role])
            outputs = policies[role].outputs(torch.from_numpy(features)).numpy()
            self._values[role, self.decisions, span] = outputs[:, -1]
            if critics:
                inputs = self._features[role, :, span], self._privileged[role, :, span]
                self._values[role, :, span] += critics[role](*map(torch.from_numpy, inputs)).numpy()
        compute_gae(
            self._rewards,
            self._values,
            self._ended,
            self._swapped,
            self._config.gamma,
            self._config.gae_lambda,
            self._advantages,
        )

    def batch(self, role: int) -> Batch:
        """The rows of one role in a finished rollout."""
        mask = self._learning[role]
        return Batch(
            self._features[role, :-1][mask],
            self._actions[role][mask],
            self._log_probs[role][mask],
            self._advantages[role][mask],
            self._values[role, :-1][mask],
            self._privileged[role, :-1][mask][:, : PRIVILEGED * self._has_critics],
        )

    def moments(self, role: int) -> Moments:
        """Sums over the observations of a role."""
        span = self._rows[self._spans[role]]
        rows = len(range(0, self._config.horizon, SAMPLED_EVERY)) * len(span)
        return Moments(rows, self._sums[role, 0], self._sums[role, 1])

    def take_episodes(self) -> list[EpisodeStats]:
        """The episodes that ended since the last call, as one sum."""
        return [self.episodes.take()]

    def _add_moments(
        self, role: int, features: np.ndarray, mean: np.ndarray, scale: np.ndarray
    ) -> None:
        if self.decisions % SAMPLED_EVERY == 0:
            add_moments(features, mean, scale, self._sums[role, 0], self._sums[role, 1])

    def _agents(self, role: int) -> np.ndarray:
        """Which agent of every arena plays a role."""
        return self._seekers if role == SEEKER else 1 - self._seekers

    def _learning_spans(self) -> list[slice]:
        """The arenas in which a role may be played by a learner, seeker first."""
        if not self._rules.rule_set.tag_ends_episode:
            return [slice(0, self.split.count)] * 2
        return [slice(0, self.split.first + self.split.both), slice(self.split.first, None)]

    def _play_opponents(
        self, observations: np.ndarray, opponents: OpponentPair, where: list[tuple[int, slice]]
    ) -> None:
        """Overwrite the actions of agents that do not learn."""
        for agent, group in where:
            if group.start == group.stop:
                continue
            is_seeker = self._seekers[group] == agent
            for opponent, chosen in ((opponents.seeker, is_seeker), (opponents.hider, ~is_seeker)):
                if opponent is None or not chosen.any():
                    continue
                rows = group if chosen.all() else self._rows[group][chosen]
                seen = np.ascontiguousarray(observations[rows, agent])
                self._env_actions[rows, agent] = opponent.act(seen)


class ActRequest(NamedTuple):
    """The arenas of one rollout wait for their actions."""

    rollout: Rollout
    observations: np.ndarray
    """(arenas, 2, observation size) float32."""
    seekers: np.ndarray
    """(arenas,) int64, who is "it"."""
    players: Players
    """Requests that are answered together have the same policies."""


@torch.no_grad()
def act_together(requests: list[ActRequest]) -> list[np.ndarray]:
    """Actions (arenas, 2, 3) for each rollout, from one forward pass of each policy.

    They are overwritten by the next ones.
    """
    for request in requests:
        request.rollout.begin_decision(request.seekers)
    arrays = requests[0].players.arrays
    many = sum(len(request.seekers) for request in requests) > FEW_ROWS
    for role in (SEEKER, HIDER):
        own = arrays[role]
        if own is not None and not many:
            for rollout, observations, _, players in requests:
                rollout.act_few(role, observations, own, players.rng)
            continue
        policy = requests[0].players.policies[role]
        features = [
            rollout.observe(role, observations, policy) for rollout, observations, *_ in requests
        ]
        together = features[0] if len(features) == 1 else np.concatenate(features)
        outputs: np.ndarray = policy.outputs(torch.from_numpy(together)).numpy()
        first = 0
        for (rollout, observations, _, players), rows in zip(
            requests, map(len, features), strict=True
        ):
            rollout.sample(role, observations, policy, outputs[first : first + rows], players.rng)
            first += rows
    return [
        rollout.complete(observations, players) for rollout, observations, _, players in requests
    ]


def play(arenas: Arenas, rollout: Rollout, players: Players) -> None:
    """Play `horizon` decisions in arenas of the embedded engine."""
    seekers: np.ndarray = arenas.arenas["seeker"]
    rollout.begin()
    while not rollout.full:
        request = ActRequest(rollout, arenas.observations, seekers, players)
        results = arenas.step(act_together([request])[0])
        rollout.record(results, seekers)
        if arenas.variation is not None:
            rollout.episodes.note_wins(results, arenas.lessons == arenas.lesson)
    rollout.finish(arenas.observations, seekers, players.policies, players.critics)
