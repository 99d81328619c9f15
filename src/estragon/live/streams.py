"""Agents of clients that speak JSON: each is a stream of decisions, kept until it is learned."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from estragon.live.brain import Ask, Experience
from estragon.live.json_episodes import JsonEpisodes
from estragon.live.trainer import Harvest, LiveTrainer, no_moments
from estragon.selfplay.config import PPOConfig
from estragon.selfplay.kernels import Numbers, decide_few
from estragon.selfplay.policy import Policy
from estragon.selfplay.rollout import Batch, Moments
from estragon.selfplay.tally import Episodes
from estragon.tag.rules import HIDER, OBS, ROLES, SEEKER

REMEMBERED = 32
"""Decisions of an agent whose outcome may still be told."""
STRETCH = 128
"""Decisions of an agent that are learned from together."""
SAME = 1e-5
"""Actions that differ by no more than this are the same, told in fewer digits."""
MOST_NUMBERS = 2**27
"""Kept for all agents of a brain together; of more agents than that allows, the first are
forgotten."""


class Choice(NamedTuple):
    """One decision, and how it came about."""

    seq: int | None
    role: int
    observation: np.ndarray
    features: np.ndarray
    picks: np.ndarray
    log_chance: float
    value: float
    action: np.ndarray


class Step(NamedTuple):
    """A decision with its outcome."""

    choice: Choice
    reward: float
    done: bool
    next_observation: np.ndarray | None


class Stream:
    """One agent: what it chose lately, and what it has to learn from."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.recent: deque[Choice] = deque(maxlen=REMEMBERED)
        self.steps: list[Step] = []
        self.role = SEEKER

    def recall(self, experience: Experience) -> Choice | None:
        """The decision that an outcome belongs to, if it is known."""
        choice: Choice
        for choice in reversed(self.recent):
            if experience.seq is not None:
                if choice.seq == experience.seq:
                    return choice
            elif (
                experience.observation is not None
                and experience.action is not None
                and np.array_equal(choice.observation, experience.observation)
                and abs(choice.action - experience.action).max() <= SAME
            ):
                return choice
        return None


class Streams:
    """All such agents of one brain."""

    def __init__(
        self, policies: list[Policy], numbers: list[Numbers], trainer: LiveTrainer
    ) -> None:
        """Answer with `policies`, whose `numbers` are kept up to date; deliver to `trainer`."""
        self._policies, self._numbers, self._trainer = policies, numbers, trainer
        self._rules = trainer.task.rules
        self._is_seeker = self._rules.field("is_seeker").start if self._rules.has_heading else None
        self._streams: dict[tuple[int, str], Stream] = {}
        each = 2 * (REMEMBERED + STRETCH + 1) * self._rules.observation.size
        self._most = max(1, MOST_NUMBERS // each)
        self._episodes = JsonEpisodes(self._rules.physics.ticks_per_second)
        self._random = np.random.default_rng((trainer.task.seed, len(ROLES)))

    def act(self, asks: Sequence[Ask]) -> np.ndarray:
        """Actions (asks, 3) float32."""
        streams = [self._stream(ask.client, ask.agent) for ask in asks]
        rows_of: tuple[list[int], list[int]] = ([], [])
        for row, (ask, stream) in enumerate(zip(asks, streams, strict=True)):
            rows_of[self._role(ask.observation, stream)].append(row)
        actions = np.empty((len(asks), 3), dtype=np.float32)
        for role, rows in enumerate(rows_of):
            if not rows:
                continue
            observations = np.array([asks[row].observation for row in rows])
            choices = self._choose(role, observations, [asks[row].seq for row in rows])
            for row, choice in zip(rows, choices, strict=True):
                streams[row].recent.append(choice)
                actions[row] = choice.action
        return actions

    def learn(self, experiences: Sequence[Experience]) -> int:
        """Take note of outcomes; how many of them could be used."""
        used: dict[tuple[int, str], Stream] = {}
        count = 0
        for experience in experiences:
            stream = self._stream(experience.client, experience.agent)
            if experience.role is not None:
                stream.role = ROLES.index(experience.role)
            choice = stream.recall(experience) or self._reconstruct(experience, stream)
            if choice is None:
                continue
            count += 1
            used[experience.client, experience.agent] = stream
            step = Step(choice, experience.reward, experience.done, experience.next_observation)
            stream.steps.append(step)
            self._episodes.add(experience, choice.role)
        ended = self._episodes.take_ended()
        due = [stream for stream in used.values() if ended or len(stream.steps) > STRETCH]
        for number, stream in enumerate(due):
            self._deliver(stream, ended if number == 0 else [])
        return count

    def leave(self, client: int) -> None:
        """A client is gone."""
        for key in [key for key in self._streams if key[0] == client]:
            del self._streams[key]
        self._episodes.leave(client)

    def _stream(self, client: int, agent: str) -> Stream:
        key = client, agent
        if key not in self._streams:
            while len(self._streams) >= self._most:
                del self._streams[next(iter(self._streams))]  # whoever came first
            self._streams[key] = Stream()
        return self._streams[key]

    def _role(self, observation: np.ndarray, stream: Stream) -> int:
        if self._is_seeker is None:
            return stream.role
        return SEEKER if observation[self._is_seeker] > 0.5 else HIDER

    @torch.no_grad()
    def _scores(self, role: int, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a policy makes of observations, and its scores."""
        policy = self._policies[role]
        features = policy.features(torch.from_numpy(observations))
        return features.numpy(), policy.score(features).numpy()

    def _choose(
        self, role: int, observations: np.ndarray, seqs: Sequence[int | None]
    ) -> list[Choice]:
        count = len(observations)
        features = np.empty_like(observations)
        values = np.empty(count, dtype=np.float32)
        picks = np.empty((count, 2), dtype=np.int64)
        log_chances = np.empty(count, dtype=np.float32)
        actions = np.empty((count, 1, 3), dtype=np.float32)
        chances = self._random.random((count, 2), dtype=np.float32)
        decide_few(
            observations[:, None],
            np.zeros(count, dtype=np.int64),
            self._numbers[role],
            chances,
            features,
            values,
            picks,
            log_chances,
            actions,
        )
        return [
            Choice(
                seqs[row],
                role,
                observations[row],
                features[row],
                picks[row],
                float(log_chances[row]),
                float(values[row]),
                actions[row, 0],
            )
            for row in range(count)
        ]

    def _reconstruct(self, experience: Experience, stream: Stream) -> Choice | None:
        """A decision that nobody remembers: what would the policy have thought of it?"""
        if experience.observation is None or experience.action is None:
            return None
        observations = experience.observation[None].astype(np.float32)
        role = self._role(observations[0], stream)
        features, scores = self._scores(role, observations)
        moves = self._policies[role].moves.numpy()
        heading = (
            observations[0, OBS.forward : OBS.forward + 2]
            if self._rules.has_heading
            else (1.0, 0.0)
        )
        x, z, jump = experience.action
        own = np.array([x * heading[0] + z * heading[1], z * heading[0] - x * heading[1]])
        move = int(np.square(moves - own).sum(axis=1).argmin())
        jumps = bool(jump > 0.5)
        choices = len(moves)
        logits = scores[0, :choices].astype(np.float64)
        log_move = logits[move] - np.logaddexp.reduce(logits)
        log_jump = -np.logaddexp(0.0, -scores[0, choices] if jumps else scores[0, choices])
        return Choice(
            None,
            role,
            observations[0],
            features[0],
            np.array([move, jumps], dtype=np.int64),
            float(log_move + log_jump),
            float(scores[0, -1]),
            experience.action,
        )

    def _deliver(self, stream: Stream, ended: list[Episodes]) -> None:
        """Hand over a stretch, but for its last step where nothing is known of what follows."""
        steps, ahead = stream.steps, self._value_ahead(stream.steps[-1])
        if ahead is None:
            *steps, last = steps
            stream.steps, ahead = [last], last.choice.value
        else:
            stream.steps = []
        if steps:
            advantages = _advantages(steps, ahead, self._trainer.config)
            batches, moments = [], []
            for role in (SEEKER, HIDER):
                rows = [row for row, step in enumerate(steps) if step.choice.role == role]
                own = [steps[row].choice for row in rows]
                batches.append(_batch(own, advantages[rows], self._rules.observation.size))
                moments.append(self._moments(role, batches[-1].features))
            self._trainer.deliver(Harvest(batches, moments, ended))

    def _value_ahead(self, step: Step) -> float | None:
        """What is to be expected after a step; None where nobody can tell yet."""
        if step.done:
            return 0.0
        if step.next_observation is None:
            return None
        observations = step.next_observation[None].astype(np.float32)
        if observations.shape[1] != self._rules.observation.size:
            return None
        return float(self._scores(step.choice.role, observations)[1][0, -1])

    def _moments(self, role: int, features: np.ndarray) -> Moments:
        if not len(features):
            return no_moments(self._rules.observation.size)
        policy = self._policies[role]
        turned = features.astype(np.float64) * policy.scale.numpy() + policy.mean.numpy()
        return Moments(len(turned), turned.sum(axis=0), np.square(turned).sum(axis=0))


def _advantages(steps: list[Step], ahead: float, config: PPOConfig) -> np.ndarray:
    """Generalised advantage estimation along one agent's steps."""
    advantages = np.empty(len(steps), dtype=np.float32)
    value, advantage = ahead, 0.0
    for row in range(len(steps) - 1, -1, -1):
        step = steps[row]
        goes_on = 0.0 if step.done else 1.0
        surprise = config.reward_scale * step.reward - step.choice.value
        surprise += goes_on * config.discount * value
        advantage = surprise + goes_on * config.discount * config.smoothing * advantage
        advantages[row] = advantage
        value = step.choice.value
    return advantages


def _batch(choices: list[Choice], advantages: np.ndarray, size: int) -> Batch:
    return Batch(
        np.array([choice.features for choice in choices], dtype=np.float32).reshape(-1, size),
        np.array([choice.picks for choice in choices], dtype=np.int64).reshape(-1, 2),
        np.array([choice.log_chance for choice in choices], dtype=np.float32),
        advantages,
        np.array([choice.value for choice in choices], dtype=np.float32),
        np.ones(len(choices), dtype=np.float32),
    )
