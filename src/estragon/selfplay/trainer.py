"""Self-play on the embedded engine: play, learn, remember, again.

Every torch call runs on one thread, whichever worker makes it. So a run that goes on from a
checkpoint takes the same course.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from estragon.selfplay.block import Block
from estragon.selfplay.config import BLOCKS, LEAGUE, PPOConfig, Task
from estragon.selfplay.opponents import RivalPair, fixed_rivals, sides_of, sparring_partners
from estragon.selfplay.policy import Policy
from estragon.selfplay.ppo import Losses
from estragon.selfplay.rivals import PolicyRival
from estragon.selfplay.rollout import Players
from estragon.selfplay.self_play import CHANCE_IN_PLAY, SelfPlay, Update
from estragon.selfplay.tally import Episodes
from estragon.tag.arenas import Arenas
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import ROLES, Rules


class Trainer(SelfPlay):
    """Both learners, their league and the embedded arenas they play in."""

    def __init__(
        self,
        task: Task,
        config: PPOConfig,
        steps: int,
        device: torch.device,
        workers: int = BLOCKS,
        torch_threads: int = 1,
    ) -> None:
        """Prepare a run of `steps` learning agent-steps.

        Args:
            task: what is to be learned.
            config: how.
            steps: the budget, both roles together.
            device: where the updates are computed.
            workers: threads that play and learn side by side; changes no bit.
            torch_threads: threads inside each torch call; what is learned depends on it.
        """
        torch.set_num_threads(torch_threads)  # here, where policies are judged
        super().__init__(task, config, device)
        self.steps = steps
        self._workers = ThreadPoolExecutor(
            workers,
            thread_name_prefix="learn",
            initializer=torch.set_num_threads,
            initargs=(torch_threads,),
        )
        count = config.arenas // BLOCKS
        sides = sides_of(count, task.role, task.opponent, config.past, config.sparring)
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
            self.blocks.append(Block(arenas, sides, config))
        self._rivals = (
            None
            if task.opponent == LEAGUE
            else _in_torch(fixed_rivals(task.opponent, task.role, task.rules), task.rules)
        )
        self._bots = sparring_partners(task.rules)
        self._spare = [self._spare_policies() for _ in range(BLOCKS)]

    @property
    def progress(self) -> float:
        """The share of the steps that were learned from."""
        return self.agent_steps / self.steps

    def update(self) -> Update:
        """Play, learn, remember: one turn of the loop."""
        start = time.perf_counter()
        number, rate = self.updates, self.learning_rate
        list(self._workers.map(self._play, range(BLOCKS)))
        learned = list(self._workers.map(lambda role: self._study(role, rate), self.learning))
        episodes = Episodes()
        for block in self.blocks:
            episodes += block.rollout.tally.take()
        self._count(sum(rows for rows, _ in learned), episodes)
        return Update(
            number,
            self.agent_steps,
            time.perf_counter() - start,
            episodes,
            {ROLES[role]: losses for role, (_, losses) in zip(self.learning, learned, strict=True)},
            rate,
        )

    def close(self) -> None:
        """Let the threads go."""
        self._workers.shutdown()

    def save(self) -> dict[str, Any]:
        """The whole run between two updates, as tensors and plain data."""
        return super().save() | {
            "arenas": [_tensors(block.arenas.save()) for block in self.blocks],
            "tallies": [_tensors(block.rollout.tally.save()) for block in self.blocks],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        super().restore(saved)
        for block, arenas, tally in zip(
            self.blocks, saved["arenas"], saved["tallies"], strict=True
        ):
            block.arenas.restore(_arrays(arenas))
            block.rollout.tally.restore(_arrays(tally))

    def _play(self, block: int) -> None:
        rivals = self._rivals or self._draw_rivals(self._spare[block], block)
        policies = [learner.actor for learner in self.learners]
        random = self._random(CHANCE_IN_PLAY, block)
        self.blocks[block].play(Players(policies, rivals, self._bots, random))

    def _study(self, role: int, learning_rate: float) -> tuple[int, Losses]:
        patience = self.patience(role)
        batches = [block.rollout.batch(role, patience) for block in self.blocks]
        moments = [block.rollout.moments(role) for block in self.blocks]
        losses = self._learn(role, batches, moments, learning_rate)
        return sum(len(batch.features) for batch in batches), losses


def _in_torch(pair: RivalPair, rules: Rules) -> RivalPair:
    """Policies of a file play in torch, on the thread that asks, as everything does here."""
    seeker, hider = (
        PolicyRival(Policy(rival, rules), None) if isinstance(rival, FrozenPolicy) else rival
        for rival in pair
    )
    return RivalPair(seeker, hider)


def _tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _arrays(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
