"""Rollouts from games that are played elsewhere, and the session that learns from them."""

import threading
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from estragon.selfplay.checkpoint import TagRun
from estragon.selfplay.config import PPOConfig, Task
from estragon.selfplay.policy import Policy, Weights
from estragon.selfplay.ppo import Batch, Moments
from estragon.selfplay.rollout import EpisodeStats
from estragon.selfplay.session import Session
from estragon.selfplay.trainer import Threads, Trainer
from estragon.tag.policy_files import load_policies

FOREVER_SEC = 10**9
APPROACH = "ppo-live"
CPU = torch.device("cpu")
LIVE_CONFIG = PPOConfig(
    arenas=64,
    horizon=128,
    minibatch=512,
    epochs=5,
    learning_rate=1e-3,
    final_learning_rate=5e-5,
    entropy=0.01,
    final_entropy=0.01,
    past=0.2,
    sparring=0.5,
    snapshot_every=10,
)
"""One game plays a few thousand decisions per second, not two hundred thousand: smaller updates
with more epochs learn more from each, and more of the arenas have a bot in them."""
WARM_START_LEARNING_RATE = 1e-4
"""For policies that are good already."""
WAIT_SEC = 0.5
"""How long `collect` waits for games before it returns."""
QUEUED_UPDATES = 4
"""Updates' worth of rows that may wait; older ones are dropped."""


class LiveRollout(NamedTuple):
    """A rollout of a game, ready to be learned from."""

    batches: list[Batch]
    """By role."""
    role_moments: list[Moments]
    """By role."""
    episodes: list[EpisodeStats]
    """Those that ended, one by one."""

    @property
    def rows(self) -> int:
        """Of both roles."""
        return sum(len(batch.features) for batch in self.batches)

    def batch(self, role: int) -> Batch:
        """The rows of one role."""
        return self.batches[role]

    def moments(self, role: int) -> Moments:
        """Sums over the observations of a role."""
        return self.role_moments[role]

    def take_episodes(self) -> list[EpisodeStats]:
        """The episodes that ended, one by one."""
        return self.episodes


class LiveSource:
    """A queue of rollouts that the server's thread delivers; the budget is seconds."""

    row_per_episode = True

    def __init__(self, task: Task, config: PPOConfig, seconds: int) -> None:
        """Prepare for `seconds`; an update takes as many rows as arenas × horizon."""
        self.games = "games"
        """Where the games are played, in words."""
        self.seconds = 0.0
        """Spent so far, in all sessions of the run, when `progress` was last asked for."""
        self.dropped_rows = 0
        """Of games that played faster than could be learned."""
        self.version = 0
        """Of the published policies; one more with every update."""
        self._task, self._rows, self._budget = task, config.arenas * config.horizon, seconds
        self._checked_at: float | None = None
        self._queue: deque[LiveRollout] = deque()
        self._arrived = threading.Condition()
        self._published: list[Weights] = []

    @property
    def shape(self) -> str:
        """Where the steps come from, in words."""
        return f"{self.games} × 2 agents × {self._task.rules.episode.step_tick_interval} ticks"

    def deliver(self, rollout: LiveRollout) -> None:
        """Queue a rollout."""
        with self._arrived:
            self._queue.append(rollout)
            while self._queued - self._queue[0].rows > QUEUED_UPDATES * self._rows:
                self.dropped_rows += self._queue.popleft().rows
            self._arrived.notify()

    def collect(self, trainer: Trainer) -> list[LiveRollout] | None:
        """All rollouts in the queue; None when there are not enough for an update yet."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: self._queued >= self._rows, WAIT_SEC):
                return None
            rollouts = list(self._queue)
            self._queue.clear()
            return rollouts

    def publish(self, policies: list[Policy]) -> None:
        """Make the policies available to the server's thread."""
        weights = [policy.copy_weights() for policy in policies]
        with self._arrived:
            self._published = weights
            self.version += 1

    def load_newest(self, policies: list[Policy]) -> int:
        """Load the published weights into `policies`; returns their version."""
        with self._arrived:
            version, weights = self.version, self._published
        for policy, own in zip(policies, weights, strict=True):
            policy.load_state_dict(own)
        return version

    def start_clock(self) -> None:
        """Count the time from now on."""
        self._checked_at = None

    def progress(self, agent_steps: int) -> float:
        """The share of the time that is over."""
        now = time.monotonic()
        self.seconds += now - (self._checked_at or now)
        self._checked_at = now
        return self.seconds / self._budget

    def spent(self, agent_steps: int) -> str:
        """How much of the budget is spent, in words."""
        of = f" of {_minutes(self._budget)}" if self._budget < FOREVER_SEC else ""
        return f"{_minutes(self.seconds)}{of} min, {agent_steps / 1e6:.2f} M steps"

    def seconds_left(self, seconds: float, agent_steps: int) -> float:
        """Until the budget is spent."""
        return max(0.0, self._budget - self.seconds)

    def figures(self) -> dict[str, float]:
        """None of its own."""
        return {}

    def save(self) -> dict[str, Any]:
        """The time spent; the queue is lost."""
        return {"seconds": self.seconds}

    def restore(self, saved: dict[str, Any]) -> None:
        """Load what `save` gave."""
        self.seconds = float(saved["seconds"])

    @property
    def _queued(self) -> int:
        return sum(rollout.rows for rollout in self._queue)


def start_live_session(
    root: Path, task: Task, config: PPOConfig, seconds: int, warm_start: Path | None
) -> Session:
    """Start a live run in a new directory."""
    start = None
    if warm_start is not None:
        start = load_policies(warm_start, task.rules)
        config = replace(config, learning_rate=WARM_START_LEARNING_RATE)
    folder = TagRun.timestamped(root, APPROACH)
    source = LiveSource(task, config, seconds)
    session = Session(folder, task, config, seconds, CPU, Threads(), source=source, start=start)
    session.save()
    return session


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
