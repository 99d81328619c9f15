"""Agents of clients that speak JSON: their decisions are kept until they can be learned from."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from estragon.live.protocol import ActionRequest, Experience
from estragon.live.source import LiveRollout, LiveSource
from estragon.selfplay.config import PPOConfig, Task
from estragon.selfplay.kernels import add_moments
from estragon.selfplay.policy import PolicyPlayer
from estragon.selfplay.ppo import Batch, Moments, compute_gae
from estragon.selfplay.rollout import EpisodeStats
from estragon.tag.rules import HIDER, OBS, ROLES, SEEKER, TERMS

RECENT_CHOICES = 32
"""Decisions of an agent whose outcome may still be reported."""
ROLLOUT_STEPS = 128
"""Decisions of an agent that are learned from together."""
SAME_ACTION = 1e-5
"""Actions that differ by no more than this are the same, written with fewer digits."""
MOST_NUMBERS = 2**27
"""Kept for all agents together; of more agents than that allows, the oldest are dropped."""


class Choice(NamedTuple):
    """One decision of an agent."""

    seq: int | None
    role: int
    observation: np.ndarray
    features: np.ndarray
    action: np.ndarray
    """(2,) int64: move and jump."""
    log_prob: float
    value: float
    env_action: np.ndarray
    """(3,) float32."""


class JsonStep(NamedTuple):
    """A decision with its outcome."""

    choice: Choice
    reward: float
    done: bool
    next_observation: np.ndarray | None


class AgentBuffer:
    """One agent: its recent decisions, and its steps to learn from."""

    def __init__(self) -> None:
        self.recent: deque[Choice] = deque(maxlen=RECENT_CHOICES)
        self.steps: list[JsonStep] = []
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
                and abs(choice.env_action - experience.action).max() <= SAME_ACTION
            ):
                return choice
        return None


class JsonAgents:
    """All JSON agents of one observation size."""

    def __init__(
        self, players: list[PolicyPlayer], task: Task, config: PPOConfig, source: LiveSource
    ) -> None:
        """Act with `players`, which are kept up to date; deliver to `source`."""
        self._players, self._config, self._source = players, config, source
        self._rules = rules = task.rules
        self._is_seeker = rules.field("is_seeker").start if rules.has_heading else None
        self._buffers: dict[tuple[int, str], AgentBuffer] = {}
        each = 2 * (RECENT_CHOICES + ROLLOUT_STEPS + 1) * rules.observation.size
        self._most = max(1, MOST_NUMBERS // each)
        self._episodes = JsonEpisodes(rules.physics.ticks_per_second)

    def act(self, requests: Sequence[ActionRequest]) -> np.ndarray:
        """Actions (requests, 3) float32."""
        buffers = [self._buffer(request.client, request.agent) for request in requests]
        rows_of: tuple[list[int], list[int]] = ([], [])
        for row, (request, buffer) in enumerate(zip(requests, buffers, strict=True)):
            rows_of[self._role(request.observation, buffer)].append(row)
        env_actions = np.empty((len(requests), 3), dtype=np.float32)
        for role, rows in enumerate(rows_of):
            if not rows:
                continue
            observations = np.array([requests[row].observation for row in rows])
            sample = self._players[role].sample(observations)
            env_actions[rows] = sample.env_actions
            for number, row in enumerate(rows):
                choice = Choice(
                    requests[row].seq,
                    role,
                    observations[number],
                    sample.features[number],
                    sample.actions[number],
                    float(sample.log_probs[number]),
                    float(sample.values[number]),
                    sample.env_actions[number],
                )
                buffers[row].recent.append(choice)
        return env_actions

    def learn(self, experiences: Sequence[Experience]) -> int:
        """Record outcomes; returns how many of them could be used."""
        used: dict[tuple[int, str], AgentBuffer] = {}
        count = 0
        for experience in experiences:
            buffer = self._buffer(experience.client, experience.agent)
            if experience.role is not None:
                buffer.role = ROLES.index(experience.role)
            choice = buffer.recall(experience) or self._reconstruct(experience, buffer)
            if choice is None:
                continue
            count += 1
            used[experience.client, experience.agent] = buffer
            step = JsonStep(choice, experience.reward, experience.done, experience.next_observation)
            buffer.steps.append(step)
            self._episodes.add(experience, choice.role)
        ended = self._episodes.take_ended()
        due = [buffer for buffer in used.values() if ended or len(buffer.steps) > ROLLOUT_STEPS]
        for number, buffer in enumerate(due):
            self._deliver(buffer, ended if number == 0 else [])
        return count

    def leave(self, client: int) -> None:
        """Forget a client."""
        for key in [key for key in self._buffers if key[0] == client]:
            del self._buffers[key]
        self._episodes.leave(client)

    def _buffer(self, client: int, agent: str) -> AgentBuffer:
        key = client, agent
        if key not in self._buffers:
            while len(self._buffers) >= self._most:
                del self._buffers[next(iter(self._buffers))]  # the oldest
            self._buffers[key] = AgentBuffer()
        return self._buffers[key]

    def _role(self, observation: np.ndarray, buffer: AgentBuffer) -> int:
        if self._is_seeker is None:
            return buffer.role
        return SEEKER if observation[self._is_seeker] > 0.5 else HIDER

    @torch.no_grad()
    def _forward(self, role: int, observation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The features and outputs of a policy for one observation."""
        policy = self._players[role].policy
        features = policy.features(torch.from_numpy(observation[None].astype(np.float32)))
        return features[0].numpy(), policy.outputs(features)[0].numpy()

    def _reconstruct(self, experience: Experience, buffer: AgentBuffer) -> Choice | None:
        """A decision that is not remembered: its probability under the policy as it is now."""
        observation, env_action = experience.observation, experience.action
        if observation is None or env_action is None:
            return None
        role = self._role(observation, buffer)
        features, outputs = self._forward(role, observation)
        moves = self._players[role].policy.moves.numpy()
        heading = (
            observation[OBS.forward : OBS.forward + 2] if self._rules.has_heading else (1.0, 0.0)
        )
        x, z, jump = env_action
        own = np.array([x * heading[0] + z * heading[1], z * heading[0] - x * heading[1]])
        move = int(np.square(moves - own).sum(axis=1).argmin())
        jumps = bool(jump > 0.5)
        logits = outputs[: len(moves)].astype(np.float64)
        jump_logit = outputs[len(moves)]
        log_move = logits[move] - np.logaddexp.reduce(logits)
        log_jump = -np.logaddexp(0.0, -jump_logit if jumps else jump_logit)
        return Choice(
            None,
            role,
            observation,
            features,
            np.array([move, jumps], dtype=np.int64),
            float(log_move + log_jump),
            float(outputs[-1]),
            env_action,
        )

    def _deliver(self, buffer: AgentBuffer, ended: list[EpisodeStats]) -> None:
        """Deliver a rollout, without its last step where what follows is not known yet."""
        steps, following = buffer.steps, self._following_value(buffer.steps[-1])
        if following is None:
            *steps, last = steps
            buffer.steps, following = [last], last.choice.value
        else:
            buffer.steps = []
        if steps:
            advantages = _advantages(steps, following, self._config)
            batches, moments = [], []
            for role in (SEEKER, HIDER):
                rows = [row for row, step in enumerate(steps) if step.choice.role == role]
                own = [steps[row].choice for row in rows]
                batches.append(_batch(own, advantages[rows], self._rules.observation.size))
                moments.append(self._moments(role, batches[-1].features))
            self._source.deliver(LiveRollout(batches, moments, ended))

    def _following_value(self, step: JsonStep) -> float | None:
        """The value after a step; None where it is not known yet."""
        if step.done:
            return 0.0
        seen = step.next_observation
        if seen is None or len(seen) != self._rules.observation.size:
            return None
        return float(self._forward(step.choice.role, seen)[1][-1])

    def _moments(self, role: int, features: np.ndarray) -> Moments:
        policy = self._players[role].policy
        sums, squares = np.zeros((2, features.shape[1]))
        add_moments(features, policy.mean.numpy(), policy.scale.numpy(), sums, squares)
        return Moments(len(features), sums, squares)


def _advantages(steps: list[JsonStep], following: float, config: PPOConfig) -> np.ndarray:
    """Advantages (steps,) along one agent's steps, whichever roles it had."""
    count = len(steps)
    roles, rows = np.array([step.choice.role for step in steps]), np.arange(count)
    rewards, advantages = np.zeros((2, 2, count, 1), dtype=np.float32)
    values = np.zeros((2, count + 1, 1), dtype=np.float32)
    rewards[roles, rows, 0] = [config.reward_scale * step.reward for step in steps]
    values[roles, rows, 0] = [step.choice.value for step in steps]
    values[roles[-1], -1] = following
    ended = np.array([[step.done] for step in steps])
    swapped = np.zeros((count, 1), dtype=bool)
    swapped[:-1, 0] = roles[1:] != roles[:-1]
    compute_gae(rewards, values, ended, swapped, config.gamma, config.gae_lambda, advantages)
    along: np.ndarray = advantages[roles, rows, 0]
    return along


def _batch(choices: list[Choice], advantages: np.ndarray, size: int) -> Batch:
    return Batch(
        np.array([choice.features for choice in choices], dtype=np.float32).reshape(-1, size),
        np.array([choice.action for choice in choices], dtype=np.int64).reshape(-1, 2),
        np.array([choice.log_prob for choice in choices], dtype=np.float32),
        advantages,
        np.array([choice.value for choice in choices], dtype=np.float32),
        np.empty((len(choices), 0), dtype=np.float32),
    )


@dataclass
class RunningEpisode:
    """An episode of one client that is not over for all of its agents."""

    rewards: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """By role."""
    steps: dict[str, int] = field(default_factory=dict)
    """By agent."""
    distance: float = 0.0
    done: set[str] = field(default_factory=set)
    info: dict[str, Any] = field(default_factory=dict)
    """Of the last agent that was done."""


class JsonEpisodes:
    """Merges what the agents of each client report about the same episode."""

    def __init__(self, ticks_per_second: int) -> None:
        self._ticks_per_second = ticks_per_second
        self._running: dict[int, RunningEpisode] = {}

    def add(self, experience: Experience, role: int) -> None:
        """Count one step of an agent."""
        running = self._running.setdefault(experience.client, RunningEpisode())
        running.rewards[role] += experience.reward
        running.steps[experience.agent] = running.steps.get(experience.agent, 0) + 1
        running.distance += _number(experience.info.get("distance_to_other"))
        if experience.done:
            running.done.add(experience.agent)
            running.info = experience.info

    def take_ended(self) -> list[EpisodeStats]:
        """The episodes that are over for all of their agents."""
        ended = [
            client
            for client, running in self._running.items()
            if running.done >= running.steps.keys()
        ]
        return [self._stats(self._running.pop(client)) for client in ended]

    def leave(self, client: int) -> None:
        """Forget a client."""
        self._running.pop(client, None)

    def _stats(self, running: RunningEpisode) -> EpisodeStats:
        info = running.info
        tagged = info.get("terminal_reason") == "tag"
        decisions, steps = max(running.steps.values()), sum(running.steps.values())
        return EpisodeStats(
            count=1,
            decisions=decisions,
            ticks=round(_number(info.get("time_elapsed")) * self._ticks_per_second),
            seeker_wins={"seeker": 1.0, "hider": 0.0}.get(str(info.get("winner")), float(tagged)),
            tags=int(tagged),
            distance=running.distance * decisions / steps,
            terms=tuple((reward, *[0.0] * (len(TERMS) - 1)) for reward in running.rewards),
        )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e9 else 0.0
