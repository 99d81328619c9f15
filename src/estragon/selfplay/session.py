"""One training run from its first update to its last, with everything it leaves on disk."""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol, Self, cast

import torch

from estragon.selfplay.checkpoint import (
    NOT_A_CHECKPOINT,
    TagRun,
    damaged,
    load_checkpoint,
    plain_task,
    save_checkpoint,
    task_from,
)
from estragon.selfplay.config import LEAGUE, PPOConfig, Task
from estragon.selfplay.ladder import PAIRINGS, Ladder, Score, Stage
from estragon.selfplay.metrics import COLUMNS, Board, Cell, Table, row_of
from estragon.selfplay.self_play import SelfPlay, Update
from estragon.selfplay.threads import Threads
from estragon.selfplay.trainer import Trainer
from estragon.support.errors import UserError
from estragon.support.files import write_json, write_whole
from estragon.support.interrupts import StopRequest
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.policy_files import load_policy, save_policies
from estragon.tag.rules import Role, Rules

STAGES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Shares of the budget at which a run is judged and its policies are kept."""
CHECKPOINT_EVERY_SEC = 10.0
MEASURES = ("win_rate", "reward", "seconds")
STRENGTH_COLUMNS = (
    "updates",
    "agent_steps",
    *(f"{role}_vs_{bot}_{measure}" for role, bot in PAIRINGS for measure in MEASURES),
    "seeker_elo",
    "hider_elo",
)


class Watcher(Protocol):
    """Whoever shows the run to a person."""

    def updated(self, update: Update, session: "Session") -> None:
        """Another update is done."""
        ...

    def judging(self, what: str) -> None:
        """A stage is being judged."""
        ...

    def judged(self, stage: Stage, scores: dict[str, Score], session: "Session") -> None:
        """A stage was judged."""
        ...


class Session:
    """A run: its trainer, its ladder, its tables and its folder.

    Its budget is agent-steps.
    """

    def __init__(
        self,
        folder: TagRun,
        task: Task,
        config: PPOConfig,
        budget: int,
        device: torch.device,
        threads: Threads,
    ) -> None:
        """Begin a run in an empty folder."""
        self.folder, self.task, self.config, self.budget = folder, task, config, budget
        self.device, self.threads = device, threads
        self.trainer = self._make_trainer()
        self.ladder = Ladder(task.rules, task.layouts)
        self.metrics = Table(folder.metrics, COLUMNS)
        self.strength = Table(folder.strength, STRENGTH_COLUMNS)
        self.scores: list[dict[str, Score]] = []
        self.seconds = 0.0
        """Spent on updates so far, over all sittings."""
        self._saved_at = time.monotonic()

    @classmethod
    def resume(cls, folder: TagRun, device: torch.device | None) -> Self:
        """Take up a run where its last checkpoint left it."""
        saved = load_checkpoint(folder.state)
        try:
            task = task_from(saved["task"])
            kept = folder.path / Path(task.opponent).name
            if task.opponent != LEAGUE and kept.is_file():
                task = replace(task, opponent=str(kept))  # wherever the folder is by now
            config = PPOConfig(**saved["recipe"])
            chosen = device or torch.device(saved["device"])
            if chosen.type == "cuda" and not torch.cuda.is_available():
                raise UserError(f"{folder.state}: was trained on cuda; torch sees no CUDA here")
            session = cls(
                folder, task, config, int(saved["budget"]), chosen, Threads(*saved["threads"])
            )
            session.trainer.restore(saved["trainer"])
            session.metrics.restore(int(saved["metrics_rows"]))
            session.strength.restore(int(saved["strength_rows"]))
            stages = [session._stage_from(stage) for stage in saved["stages"]]
            session.ladder.restore(stages, saved["played"])
            session.scores = [
                {name: Score(*score) for name, score in scores.items()}
                for scores in saved["scores"]
            ]
            session.seconds = float(saved["seconds"])
        except NOT_A_CHECKPOINT as error:
            raise damaged(folder.state) from error
        folder.clear_leftovers()
        return session

    def run(
        self, watcher: Watcher, stop: StopRequest, begin: Callable[[], None] = lambda: None
    ) -> bool:
        """Train to the end of the budget; False when stopped before.

        Args:
            watcher: is told what happens.
            stop: asked between updates.
            begin: called when the beginners are judged and training begins.
        """
        board = Board(self.folder.tensorboard, self.trainer.updates)
        try:
            self._judge_what_is_due(watcher, board)
            begin()
            while not self.trainer.done and not stop.made:
                if update := self.trainer.update():
                    self.seconds += update.seconds
                    self._add_rows(update, board)
                    watcher.updated(update, self)
                self._judge_what_is_due(watcher, board)
                if time.monotonic() - self._saved_at > CHECKPOINT_EVERY_SEC:
                    self.save()
                    self._save_more()
            self.save()
            self.save_policies()
        finally:
            board.close()
            self.trainer.close()
        return self.trainer.done

    @property
    def agent_steps_per_s(self) -> float:
        """Learning agent-steps a second, over the whole run."""
        return self.trainer.agent_steps / max(self.seconds, 1e-9)

    @property
    def shape(self) -> str:
        """Where the steps come from, in words."""
        repeat = self.task.rules.episode.step_tick_interval
        return f"{self.config.arenas} arenas × 2 agents × {repeat} ticks"

    @property
    def spent(self) -> str:
        """How much of the budget is gone, in words."""
        return f"{self.trainer.agent_steps / 1e6:.1f} of {self.budget / 1e6:.1f} M steps"

    @property
    def seconds_left(self) -> float:
        """About, going by the whole run so far."""
        done = self.trainer.progress
        return self.seconds * (1.0 - done) / done if 0.0 < done < 1.0 else 0.0

    def save(self) -> None:
        """Bring the whole run to the disk; the checkpoint last, so that it never runs ahead."""
        logs = self.folder.root / "trainer" / "logs"
        self.metrics.save(logs / "metrics.csv")
        self.strength.save()
        save_checkpoint(
            self.folder.state,
            {
                "task": plain_task(self.task),
                "recipe": asdict(self.config),
                "budget": self.budget,
                "device": str(self.device),
                "threads": list(self.threads),
                "trainer": self.trainer.save(),
                "metrics_rows": len(self.metrics),
                "strength_rows": len(self.strength),
                "stages": [
                    [stage.name, stage.updates, stage.agent_steps, list(stage.policies)]
                    for stage in self.ladder.stages
                ],
                "played": self.ladder.save(),
                "scores": [
                    {name: list(asdict(score).values()) for name, score in scores.items()}
                    for scores in self.scores
                ],
                "seconds": self.seconds,
            },
        )
        self._saved_at = time.monotonic()

    def save_policies(self) -> None:
        """Write the policies as they are now where players look for them."""
        policies = self.trainer.freeze()
        _save_both(self.folder.policy("policy"), policies, self.task.rules)
        for role, policy in policies.items():
            _save_both(self.folder.policy(f"policy_{role}"), {role: policy}, self.task.rules)
        self.folder.mark_latest()

    def write_metadata(self, about: dict[str, Any]) -> None:
        """Say what the run was asked to do, for people and tools."""
        write_json(
            self.folder.metadata,
            {
                "run_id": self.folder.run_id,
                "approach": self.folder.path.parent.name,
                "rules": self.task.rules.rules,
                "rewards": self.task.rules.rewards,
                "role": self.task.role,
                "opponent": self.task.opponent,
                "seed": self.task.seed,
                "budget": self.budget,
                "recipe": asdict(self.config),
                "device": str(self.device),
                "workers": self.threads.workers,
                "torch_threads": self.threads.torch_threads,
                **about,
            },
        )

    def _save_more(self) -> None:
        """What else is kept as the run goes on."""

    def _make_trainer(self) -> SelfPlay:
        return Trainer(self.task, self.config, self.budget, self.device, *self.threads)

    def _add_rows(self, update: Update, board: Board) -> None:
        """Note what an update brought."""
        row = row_of(update, self.trainer)
        row["agent_steps_per_s"] = round(self.agent_steps_per_s)
        self.metrics.add(row)
        board.add(row, self.trainer.updates)

    def _judge_what_is_due(self, watcher: Watcher, board: Board) -> None:
        """Judge the stage that the run has just reached, if it has reached one."""
        reached = sum(self.trainer.progress >= share for share in STAGES)
        name = f"{100 * STAGES[reached - 1]:.0f}%"
        updates = self.trainer.updates
        if self.ladder.stages and (
            self.ladder.stages[-1].name == name or self.ladder.stages[-1].updates == updates
        ):
            return
        policies = self.trainer.freeze()
        stage = Stage(name, updates, self.trainer.agent_steps, policies)
        for role, policy in policies.items():
            path = self.folder.checkpoint(role, updates)
            _save_both(path, {role: policy}, self.task.rules)
        scores = self.ladder.add(stage, watcher.judging)
        self.scores.append(scores)
        row: dict[str, Cell] = {"updates": updates, "agent_steps": stage.agent_steps}
        for name, score in scores.items():
            row |= {f"{name}_{measure}": getattr(score, measure) for measure in MEASURES}
        seeker_elo, hider_elo = self.ladder.elo()
        row["seeker_elo"] = seeker_elo[-1] if "seeker" in policies else None
        row["hider_elo"] = hider_elo[-1] if "hider" in policies else None
        self.strength.add(row)
        board.add({f"strength_{name}": value for name, value in row.items()}, updates)
        if cross_play := self.ladder.cross_play():
            write_json(self.folder.cross_play, cross_play)
        self.save()
        self.save_policies()
        watcher.judged(stage, scores, self)

    def _stage_from(self, saved: list[Any]) -> Stage:
        name, updates, agent_steps, roles = saved
        policies = {
            role: load_policy(self.folder.checkpoint(role, updates), self.task.rules, role)
            for role in roles
        }
        return Stage(name, updates, agent_steps, policies)


def start_session(
    root: Path,
    task: Task,
    config: PPOConfig,
    steps: int,
    device: torch.device,
    choose_threads: Callable[[Task, PPOConfig], Threads],
) -> Session:
    """Begin a run in a folder of its own, once everything about it is known to make sense."""
    config.check()
    if not 1 <= steps <= 10**12:
        raise UserError(f"--steps: expected 1 to {10**12}, got {steps}")
    threads = choose_threads(task, config)
    kind = "league" if task.opponent == LEAGUE else f"{task.role}-against-a-fixed-opponent"
    folder = TagRun.timestamped(root, f"ppo-{kind}")
    if task.opponent != LEAGUE and not task.opponent.startswith("bot:"):
        # the run may well write its own policies over that file
        kept = folder.path / f"opponent{Path(task.opponent).suffix}"
        write_whole(kept, Path(task.opponent).read_bytes())
        task = replace(task, opponent=str(kept))
    session = Session(folder, task, config, steps, device, threads)
    session.save()
    return session


def _save_both(path: Path, policies: dict[str, FrozenPolicy], rules: Rules) -> None:
    for suffix in (".pt", ".npz"):
        save_policies(path.with_suffix(suffix), cast("dict[Role, FrozenPolicy]", policies), rules)
