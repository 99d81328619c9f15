"""The loop of self-play learning: play, learn, remember, again.

What is learned depends on the seed, the recipe and the torch build alone: every chance is drawn
from a generator named after the seed, the update and its purpose, and every torch call runs on one
thread, whichever worker makes it. So a run that goes on from a checkpoint takes the same course.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from estragon.learn.block import Block
from estragon.learn.league import League, Weights
from estragon.learn.opponents import (
    LEAGUE,
    RivalPair,
    RoleChoice,
    fixed_rivals,
    sides_of,
    sparring_partners,
)
from estragon.learn.policy import Policy
from estragon.learn.ppo import Learner, Losses
from estragon.learn.recipe import BLOCKS, Recipe
from estragon.learn.rivals import PolicyRival
from estragon.learn.rollout import Players
from estragon.learn.tally import Episodes
from estragon.tag.arenas import Arenas
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import Layout
from estragon.tag.roles import HIDER, ROLES, SEEKER
from estragon.tag.rules import Rules

CHANCE_IN_PLAY, CHANCE_IN_RIVALS, CHANCE_IN_LEAGUE, CHANCE_IN_UPDATE = range(4)
"""What a random stream is for."""
LATE_PATIENCE = 2.0
"""Power of the patience that the learning rate is multiplied with at the end of a run."""
RECENT = 0.05
"""Weight of an update's episodes in what counts as lately."""


@dataclass(frozen=True)
class Task:
    """What is to be learned."""

    rules: Rules
    layouts: list[Layout]
    seed: int
    role: RoleChoice
    opponent: str
    """`league`, `bot:NAME` or a policy file."""


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


class Trainer:
    """Both learners, their arenas and their league."""

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        steps: int,
        device: torch.device,
        workers: int = BLOCKS,
        torch_threads: int = 1,
    ) -> None:
        """Prepare a run of `steps` learning agent-steps.

        Args:
            task: what is to be learned.
            recipe: how.
            steps: the budget, both roles together.
            device: where the updates are computed.
            workers: threads that play and learn side by side; changes no bit.
            torch_threads: threads inside each torch call; what is learned depends on it.
        """
        recipe.check()
        torch.set_num_threads(torch_threads)  # here, where policies are judged
        self.task, self.recipe, self.steps = task, recipe, steps
        self.updates = 0
        self.agent_steps = 0
        self.episodes = 0
        self.seeker_share = 0.5
        """How often the seeker has won lately."""
        self._workers = ThreadPoolExecutor(
            workers,
            thread_name_prefix="learn",
            initializer=torch.set_num_threads,
            initargs=(torch_threads,),
        )
        self.learners = [
            Learner(
                FrozenPolicy.untrained(task.rules, role, _seed(task.seed, number), recipe.hidden),
                task.rules,
                recipe,
                device,
            )
            for number, role in enumerate(ROLES)
        ]
        self.league = League(recipe.remembered)
        self.league.remember(self._policies())
        count = recipe.arenas // BLOCKS
        sides = sides_of(count, task.role, task.opponent, recipe.past, recipe.sparring)
        self.blocks = []
        for block in range(BLOCKS):
            arenas = Arenas(
                count,
                rules=task.rules,
                layout=task.layouts,
                seed=task.seed,
                first_arena=block * count,
                threads=1,
            )
            arenas.reset()
            self.blocks.append(Block(arenas, sides, recipe))
        self._rivals = (
            None
            if task.opponent == LEAGUE
            else _in_torch(fixed_rivals(task.opponent, task.role, task.rules), task.rules)
        )
        self._bots = sparring_partners(task.rules)
        learning = [SEEKER, HIDER] if task.role == "both" else [ROLES.index(task.role)]
        self.learning = learning
        self._spare = [self._spare_policies() for _ in range(BLOCKS)]

    @property
    def done(self) -> bool:
        """Whether the budget is spent."""
        return self.agent_steps >= self.steps

    def update(self) -> Update:
        """Play, learn, remember: one turn of the loop."""
        start = time.perf_counter()
        number = self.updates
        list(self._workers.map(self._play, range(BLOCKS)))
        rate = self._learning_rate()
        learned = list(self._workers.map(lambda role: self._learn(role, rate), self.learning))
        self.updates += 1
        self.agent_steps += sum(rows for rows, _ in learned)
        if self.updates % self.recipe.snapshot_every == 0:
            self.league.remember(self._policies())
        episodes = Episodes()
        for block in self.blocks:
            episodes += block.rollout.tally.take()
        self.episodes += episodes.count
        if episodes.count:
            share = episodes.seeker_wins / episodes.count
            self.seeker_share += RECENT * (share - self.seeker_share)
        return Update(
            number,
            self.agent_steps,
            time.perf_counter() - start,
            episodes,
            {ROLES[role]: losses for role, (_, losses) in zip(self.learning, learned, strict=True)},
            rate,
        )

    def freeze(self) -> dict[str, FrozenPolicy]:
        """The learning roles as they are now."""
        share = self.agent_steps // len(self.learning)
        return {
            ROLES[role]: self.learners[role].policy.freeze(
                f"{ROLES[role]} after {self.agent_steps:,} steps", share
            )
            for role in self.learning
        }

    def close(self) -> None:
        """Let the threads go."""
        self._workers.shutdown()

    def save(self) -> dict[str, Any]:
        """The whole run between two updates, as tensors and plain data."""
        return {
            "updates": self.updates,
            "agent_steps": self.agent_steps,
            "episodes": self.episodes,
            "seeker_share": self.seeker_share,
            "learners": [learner.save() for learner in self.learners],
            "league": [list(pair) for pair in self.league.pairs],
            "arenas": [_tensors(block.arenas.save()) for block in self.blocks],
            "tallies": [_tensors(block.rollout.tally.save()) for block in self.blocks],
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
        self.league.seen = 1 + self.updates // self.recipe.snapshot_every
        for block, arenas, tally in zip(
            self.blocks, saved["arenas"], saved["tallies"], strict=True
        ):
            block.arenas.restore(_arrays(arenas))
            block.rollout.tally.restore(_arrays(tally))

    def _play(self, block: int) -> None:
        rivals = self._rivals or self._draw_rivals(block)
        policies = [learner.actor for learner in self.learners]
        random = self._random(CHANCE_IN_PLAY, block)
        self.blocks[block].play(Players(policies, rivals, self._bots, random))

    def _learn(self, role: int, learning_rate: float) -> tuple[int, Losses]:
        patience = self._patience(role)
        batches = [block.rollout.batch(role, patience) for block in self.blocks]
        moments = [block.rollout.moments(role) for block in self.blocks]
        random = self._random(CHANCE_IN_UPDATE, role)
        # Late, when nobody finds anything new any more, the winner waits altogether.
        rate = learning_rate * patience ** (LATE_PATIENCE * self._progress)
        losses = self.learners[role].update(batches, moments, rate, random)
        return sum(len(batch.features) for batch in batches), losses

    def _learning_rate(self) -> float:
        start, end = self.recipe.learning_rate, self.recipe.final_learning_rate
        return start + self._progress * (end - start)

    @property
    def _progress(self) -> float:
        """The share of the budget that is spent."""
        return min(1.0, self.agent_steps / self.steps)

    def _patience(self, role: int) -> float:
        """How much a role learns from its likes: less for one that wins too often.

        What it learns from bots is not weakened: it cannot help winning against a weak partner.
        """
        if self.task.opponent != LEAGUE:
            return 1.0
        lost = 1.0 - self.seeker_share if role == SEEKER else self.seeker_share
        return float(min(1.0, 2.0 * lost) ** self.recipe.balancing)

    def _draw_rivals(self, block: int) -> RivalPair:
        weights = self.league.draw(self._random(CHANCE_IN_LEAGUE, block))
        random = self._random(CHANCE_IN_RIVALS, block)
        seeker, hider = (
            PolicyRival(_load(policy, own), random)
            for policy, own in zip(self._spare[block], weights, strict=True)
        )
        return RivalPair(seeker, hider)

    def _random(self, purpose: int, part: int) -> np.random.Generator:
        key = (self.task.seed, self.updates, purpose, part)
        return np.random.Generator(np.random.SFC64(key))

    def _policies(self) -> list[Policy]:
        return [learner.policy for learner in self.learners]

    def _spare_policies(self) -> list[Policy]:
        """Policies to load earlier selves into."""
        return [
            Policy(learner.policy.freeze("rival", 0), self.task.rules) for learner in self.learners
        ]


def _in_torch(pair: RivalPair, rules: Rules) -> RivalPair:
    """Policies of a file play in torch, on the thread that asks, as everything does here."""
    seeker, hider = (
        PolicyRival(Policy(rival, rules), None) if isinstance(rival, FrozenPolicy) else rival
        for rival in pair
    )
    return RivalPair(seeker, hider)


def _load(policy: Policy, weights: Weights) -> Policy:
    policy.load_state_dict(weights)
    return policy


def _seed(seed: int, role: int) -> int:
    return seed * len(ROLES) + role


def _tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _arrays(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
