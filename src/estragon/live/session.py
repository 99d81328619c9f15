"""A live training run, with everything it leaves on disk."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from estragon.live.trainer import LiveTrainer
from estragon.selfplay.checkpoint import TagRun
from estragon.selfplay.config import PPOConfig, Task
from estragon.selfplay.metrics import Board, row_of
from estragon.selfplay.self_play import SelfPlay, Update
from estragon.selfplay.session import Session
from estragon.selfplay.threads import Threads
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.policy_files import load_policies
from estragon.tag.rules import Role

FOR_EVER_SEC = 10**9
APPROACH = "ppo-live"
CONFIG = PPOConfig(
    arenas=64,
    horizon=128,
    minibatch=512,
    epochs=5,
    learning_rate=1e-3,
    past=0.2,
    sparring=0.5,
    snapshot_every=10,
)
"""One game plays a few thousand decisions a second, not two hundred thousand: smaller updates,
gone through more often, learn more from each, and more of the arenas have a bot in them."""
GENTLE_LEARNING_RATE = 1e-4
"""For policies that are good already."""


class LiveSession(Session):
    """A run whose games are played elsewhere; its budget is seconds."""

    trainer: LiveTrainer

    def __init__(
        self,
        folder: TagRun,
        task: Task,
        config: PPOConfig,
        budget: int,
        device: torch.device,
        threads: Threads,
        start: Mapping[Role, FrozenPolicy] | None = None,
    ) -> None:
        """Begin a run in an empty folder, with policies to go on from if there are any."""
        self._start = start
        self.games = "games"
        """What plays, in words."""
        super().__init__(folder, task, config, budget, device, threads)

    @property
    def shape(self) -> str:
        """Where the steps come from, in words."""
        return f"{self.games} × 2 agents × {self.task.rules.episode.step_tick_interval} ticks"

    @property
    def spent(self) -> str:
        """How much of the budget is gone, in words."""
        gone = f"{_minutes(self.trainer.seconds)} min"
        if self.budget < FOR_EVER_SEC:
            gone = f"{_minutes(self.trainer.seconds)} of {_minutes(self.budget)} min"
        return f"{gone}, {self.trainer.agent_steps / 1e6:.2f} M steps"

    @property
    def seconds_left(self) -> float:
        """Until the budget is spent."""
        return max(0.0, self.budget - self.trainer.seconds)

    def _make_trainer(self) -> SelfPlay:
        return LiveTrainer(self.task, self.config, self.budget, self.device, self._start)

    def _add_rows(self, update: Update, board: Board) -> None:
        """One row an episode."""
        trainer = self.trainer
        first = trainer.episodes - len(trainer.ended)
        for number, episode in enumerate(trainer.ended, first + 1):
            row = row_of(replace(update, episodes=episode), trainer)
            row |= {"episode": number, "episode_id": f"episode_{number:07d}"}
            row["agent_steps_per_s"] = round(self.agent_steps_per_s)
            self.metrics.add(row)
        board.add(row_of(update, trainer), trainer.updates)

    def _save_more(self) -> None:
        self.save_policies()


def start_live_session(
    root: Path, task: Task, config: PPOConfig, seconds: int, warm_start: Path | None
) -> LiveSession:
    """Begin a run in a folder of its own."""
    start = None
    if warm_start is not None:
        start = load_policies(warm_start, task.rules)
        config = replace(config, learning_rate=GENTLE_LEARNING_RATE)
    folder = TagRun.timestamped(root, APPROACH)
    device = torch.device("cpu")
    session = LiveSession(folder, task, config, seconds, device, Threads(1, 1), start)
    session.save()
    return session


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
