"""Self-play on games that are played elsewhere: it waits for what they bring, and learns."""

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from estragon.selfplay.config import PPOConfig, Task
from estragon.selfplay.league import Weights
from estragon.selfplay.opponents import RivalPair
from estragon.selfplay.policy import Policy
from estragon.selfplay.ppo import Losses
from estragon.selfplay.rollout import Batch, Moments
from estragon.selfplay.self_play import SelfPlay, Update
from estragon.selfplay.tally import Episodes
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import ROLES, Role

WAIT_SEC = 0.5
"""How long an update waits for games before it lets others have a look."""
LEARNED_ONCE = 4
"""Updates' worth of rows that may lie waiting; older ones are forgotten."""


class Harvest(NamedTuple):
    """What a stretch of a game brought, ready to be learned from."""

    batches: list[Batch]
    """By role."""
    moments: list[Moments]
    """By role."""
    episodes: list[Episodes]
    """Those that ended, one by one."""

    @property
    def rows(self) -> int:
        """Of both roles."""
        return sum(len(batch.features) for batch in self.batches)


class LiveTrainer(SelfPlay):
    """Both learners and their league; whoever plays delivers, in another thread."""

    def __init__(
        self,
        task: Task,
        config: PPOConfig,
        seconds: float,
        device: torch.device,
        start: Mapping[Role, FrozenPolicy] | None = None,
    ) -> None:
        """Prepare to learn for so many `seconds`.

        Args:
            task: what is to be learned.
            config: how; an update takes as many rows as its arenas and horizon have.
            seconds: the budget.
            device: where the updates are computed.
            start: policies to go on from.
        """
        torch.set_num_threads(1)
        super().__init__(task, config, device)
        self.seconds = 0.0
        """Since the beginning, over all sittings, as of the last look at the clock."""
        self.ended: list[Episodes] = []
        """The episodes of the last update, one by one."""
        self.forgotten_rows = 0
        """Of games that played faster than could be learned."""
        self._budget = seconds
        self._looked_at: float | None = None
        self._updated_at = time.perf_counter()
        self._inbox: deque[Harvest] = deque()
        self._arrived = threading.Condition()
        if start:
            self._take_up(start)
        self._published: list[Weights] = []
        self.version = 0
        """Of the published policies; one more with every update."""
        self._publish()

    @property
    def rows_wanted(self) -> int:
        """How many an update is made of."""
        return self.config.arenas * self.config.horizon

    @property
    def progress(self) -> float:
        """The share of the time that is over."""
        now = time.monotonic()
        self.seconds += now - (self._looked_at or now)
        self._looked_at = now
        return self.seconds / self._budget

    def start_clock(self) -> None:
        """Count the time from now on; what took time before does not count."""
        self._looked_at = None

    def deliver(self, harvest: Harvest) -> None:
        """Take what a game brought."""
        with self._arrived:
            self._inbox.append(harvest)
            while self._waiting - self._inbox[0].rows > LEARNED_ONCE * self.rows_wanted:
                self.forgotten_rows += self._inbox.popleft().rows
            self._arrived.notify()

    def update(self) -> Update | None:
        """Learn from what has come; None when there is not enough of it yet."""
        with self._arrived:
            enough = self._arrived.wait_for(lambda: self._waiting >= self.rows_wanted, WAIT_SEC)
            if not enough:
                return None
            harvests = list(self._inbox)
            self._inbox.clear()
        number, rate = self.updates, self.learning_rate
        losses: dict[str, Losses] = {}
        for role in self.learning:
            batches = [harvest.batches[role] for harvest in harvests]
            if sum(len(batch.features) for batch in batches) > 1:
                moments = [harvest.moments[role] for harvest in harvests]
                losses[ROLES[role]] = self._learn(role, batches, moments, rate)
        self.ended = [episode for harvest in harvests for episode in harvest.episodes]
        episodes = sum(self.ended, Episodes())
        self._count(sum(harvest.rows for harvest in harvests), episodes)
        self._publish()
        before, self._updated_at = self._updated_at, time.perf_counter()
        seconds = self._updated_at - before
        return Update(number, self.agent_steps, seconds, episodes, losses, rate)

    def close(self) -> None:
        """Whoever plays was not started here."""

    def load_newest(self, policies: list[Policy]) -> int:
        """Bring `policies` up to what was learned last; which version that is."""
        with self._arrived:
            version, weights = self.version, self._published
        for policy, own in zip(policies, weights, strict=True):
            policy.load_state_dict(own)
        return version

    def spare_policies(self) -> list[Policy]:
        """Policies of their own for somebody who plays."""
        return self._spare_policies()

    def draw_rivals(self, spare: list[Policy], part: int) -> RivalPair:
        """Earlier selves for a game, loaded into the `spare` policies."""
        with self._arrived:
            return self._draw_rivals(spare, part)

    def save(self) -> dict[str, Any]:
        """Everything but what has not been learned from yet."""
        return super().save() | {"seconds": self.seconds}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        super().restore(saved)
        self.seconds = float(saved["seconds"])
        self._publish()

    @property
    def _waiting(self) -> int:
        return sum(harvest.rows for harvest in self._inbox)

    def _count(self, rows: int, episodes: Episodes) -> None:
        with self._arrived:
            super()._count(rows, episodes)

    def _publish(self) -> None:
        weights = [
            {name: value.detach().cpu().clone() for name, value in policy.state_dict().items()}
            for policy in self._policies()
        ]
        with self._arrived:
            self._published = weights
            self.version += 1

    def _take_up(self, start: Mapping[Role, FrozenPolicy]) -> None:
        for learner, role in zip(self.learners, ROLES, strict=True):
            if role in start:
                learner.take_up(Policy(start[role], self.task.rules))
        self.league.pairs.clear()
        self.league.seen = 0
        self.league.remember(self._policies())


def no_moments(size: int) -> Moments:
    """Of nothing."""
    return Moments(0, np.zeros(size), np.zeros(size))
