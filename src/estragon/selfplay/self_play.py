"""Two roles that learn from each other, wherever they play.

What is learned from what was played depends on the seed, the config and the torch build alone:
every chance is drawn from a generator named after the seed, the update and its purpose.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from estragon.selfplay.config import LEAGUE, PPOConfig, Task
from estragon.selfplay.league import League, Weights
from estragon.selfplay.opponents import RivalPair
from estragon.selfplay.policy import Policy
from estragon.selfplay.ppo import Learner, Losses
from estragon.selfplay.rivals import PolicyRival
from estragon.selfplay.rollout import Batch, Moments
from estragon.selfplay.tally import Episodes
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import HIDER, ROLES, SEEKER

CHANCE_IN_PLAY, CHANCE_IN_RIVALS, CHANCE_IN_LEAGUE, CHANCE_IN_UPDATE = range(4)
"""What a random stream is for."""
LATE_PATIENCE = 8.0
"""Power of the patience that the learning rate is multiplied with at the end of a run."""
RECENT = 0.05
"""Weight of an update's episodes in what counts as lately."""


@dataclass(frozen=True)
class Update:
    """What one update brought."""

    number: int
    agent_steps: int
    """Learned from so far, all roles together."""
    seconds: float
    episodes: Episodes
    losses: dict[str, Losses]
    learning_rate: float


class SelfPlay(ABC):
    """Both learners, their league, and how far they are."""

    def __init__(self, task: Task, config: PPOConfig, device: torch.device) -> None:
        """Begin with policies that know nothing.

        Args:
            task: what is to be learned.
            config: how.
            device: where the updates are computed.
        """
        config.check()
        self.task, self.config = task, config
        self.updates = 0
        self.agent_steps = 0
        self.episodes = 0
        self.seeker_share = 0.5
        """How often the seeker has won lately."""
        self.learners = [
            Learner(
                FrozenPolicy.untrained(task.rules, role, _seed(task.seed, number), config.hidden),
                task.rules,
                config,
                device,
            )
            for number, role in enumerate(ROLES)
        ]
        self.league = League(config.remembered)
        self.league.remember(self._policies())
        self.learning = [SEEKER, HIDER] if task.role == "both" else [ROLES.index(task.role)]

    @property
    @abstractmethod
    def progress(self) -> float:
        """The share of the budget that is spent, 0 to 1."""

    @property
    def done(self) -> bool:
        """Whether the budget is spent."""
        return self.progress >= 1.0

    @abstractmethod
    def update(self) -> Update | None:
        """Learn from what was played; None when there is not enough of it yet."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything that was started."""

    def freeze(self) -> dict[str, FrozenPolicy]:
        """The learning roles as they are now."""
        share = self.agent_steps // len(self.learning)
        return {
            ROLES[role]: self.learners[role].policy.freeze(
                f"{ROLES[role]} after {self.agent_steps:,} steps", share
            )
            for role in self.learning
        }

    def save(self) -> dict[str, Any]:
        """Everything between two updates, as tensors and plain data."""
        return {
            "updates": self.updates,
            "agent_steps": self.agent_steps,
            "episodes": self.episodes,
            "seeker_share": self.seeker_share,
            "learners": [learner.save() for learner in self.learners],
            "league": [list(pair) for pair in self.league.pairs],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.updates = int(saved["updates"])
        self.agent_steps = int(saved["agent_steps"])
        self.episodes = int(saved["episodes"])
        self.seeker_share = float(saved["seeker_share"])
        for learner, state in zip(self.learners, saved["learners"], strict=True):
            learner.restore(state)
        self.league.pairs = [(seeker, hider) for seeker, hider in saved["league"]]
        self.league.seen = 1 + self.updates // self.config.snapshot_every

    def patience(self, role: int) -> float:
        """How much a role learns from its likes: less for one that wins too often.

        What it learns from bots is not weakened: it cannot help winning against a weak partner.
        """
        if self.task.opponent != LEAGUE:
            return 1.0
        lost = 1.0 - self.seeker_share if role == SEEKER else self.seeker_share
        return float(min(1.0, 2.0 * lost) ** self.config.balancing)

    @property
    def learning_rate(self) -> float:
        """Adam's step size now, but for a winner's patience."""
        start, end = self.config.learning_rate, self.config.final_learning_rate
        return start + min(1.0, self.progress) * (end - start)

    def _learn(
        self, role: int, batches: list[Batch], moments: list[Moments], learning_rate: float
    ) -> Losses:
        """Let one role learn from what was played."""
        random = self._random(CHANCE_IN_UPDATE, role)
        # Late, when nobody finds anything new any more, the winner waits altogether.
        late = LATE_PATIENCE * min(1.0, self.progress)
        rate = learning_rate * self.patience(role) ** late
        return self.learners[role].update(batches, moments, rate, random)

    def _count(self, rows: int, episodes: Episodes) -> None:
        """Count one more update, and remember it now and then."""
        self.updates += 1
        self.agent_steps += rows
        if self.updates % self.config.snapshot_every == 0:
            self.league.remember(self._policies())
        self.episodes += episodes.count
        if episodes.count:
            share = episodes.seeker_wins / episodes.count
            self.seeker_share += RECENT * (share - self.seeker_share)

    def _draw_rivals(self, spare: list[Policy], part: int) -> RivalPair:
        """Earlier selves, loaded into the `spare` policies."""
        weights = self.league.draw(self._random(CHANCE_IN_LEAGUE, part))
        random = self._random(CHANCE_IN_RIVALS, part)
        seeker, hider = (
            PolicyRival(_load(policy, own), random)
            for policy, own in zip(spare, weights, strict=True)
        )
        return RivalPair(seeker, hider)

    def _spare_policies(self) -> list[Policy]:
        """Policies to load earlier selves into."""
        return [
            Policy(learner.policy.freeze("rival", 0), self.task.rules) for learner in self.learners
        ]

    def _random(self, purpose: int, part: int) -> np.random.Generator:
        key = (self.task.seed, self.updates, purpose, part)
        return np.random.Generator(np.random.SFC64(key))

    def _policies(self) -> list[Policy]:
        return [learner.policy for learner in self.learners]


def _load(policy: Policy, weights: Weights) -> Policy:
    policy.load_state_dict(weights)
    return policy


def _seed(seed: int, role: int) -> int:
    return seed * len(ROLES) + role
