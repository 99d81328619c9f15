"""One training run from its first update to its last, with everything it leaves on disk."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from estragon import __version__
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
from estragon.selfplay.evaluation import (
    ARGMAX,
    MODES,
    PAIRINGS,
    PANEL,
    SAMPLED,
    BestResponse,
    Score,
    Stage,
    StageEvaluator,
    train_best_response,
)
from estragon.selfplay.metrics import COLUMNS, Board, Cell, MetricsTable, row_of, rows_by_episode
from estragon.selfplay.trainer import EmbeddedSource, RolloutSource, Threads, Trainer, Update
from estragon.support.errors import UserError
from estragon.support.files import write_json, write_whole
from estragon.support.interrupts import StopRequest
from estragon.support.progress import Progress
from estragon.support.runs import LOGS
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.policy_files import load_policy, save_policies
from estragon.tag.rules import ROLES, Role, Rules

STAGES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Shares of the budget at which a run is evaluated and its policies are kept."""
CHECKPOINT_EVERY_SEC = 10.0
MEASURES = ("win_rate", "reward", "seconds", "sampled_win_rate")
STRENGTH_COLUMNS = (
    "updates",
    "agent_steps",
    *(
        f"{role}_vs_{opponent}_{measure}"
        for role, opponent in (*PAIRINGS, *((role, PANEL) for role in ROLES))
        for measure in MEASURES
    ),
    "seeker_elo",
    "hider_elo",
)


class SessionCallback(Protocol):
    """Shows the run to a person."""

    def on_update(self, update: Update) -> None:
        """Called after an update."""

    def on_evaluation(self, what: str) -> None:
        """Called before each part of the evaluation of a stage."""

    def on_stage(self, stage: Stage, scores: dict[str, Score]) -> None:
        """Called when a stage has been evaluated."""


class Session:
    """A run: its trainer, its evaluation, its tables and its directory."""

    def __init__(
        self,
        folder: TagRun,
        task: Task,
        config: PPOConfig,
        budget: int,
        device: torch.device,
        threads: Threads,
        *,
        source: RolloutSource,
        start: Mapping[Role, FrozenPolicy] | None = None,
    ) -> None:
        """Start a run in an empty directory; `source` says what the `budget` is counted in."""
        self.folder, self.task, self.config, self.budget = folder, task, config, budget
        self.device, self.threads, self.source = device, threads, source
        self.trainer = Trainer(task, config, source, device, threads, start)
        modes = (ARGMAX,) if source.row_per_episode else MODES  # live, games wait meanwhile
        self.evaluator = StageEvaluator(task.rules, task.layouts, modes=modes)
        self.metrics = MetricsTable(folder.metrics, (*COLUMNS, *source.figures()))
        self.strength = MetricsTable(folder.strength, STRENGTH_COLUMNS)
        self.scores: list[dict[str, Score]] = []
        self.seconds = 0.0
        """Spent on updates so far, in all sessions of the run."""
        self._saved_at = time.monotonic()

    @classmethod
    def resume(
        cls,
        folder: TagRun,
        make_source: Callable[[Task, PPOConfig, int], RolloutSource] = EmbeddedSource,
        device: torch.device | None = None,
    ) -> "Session":
        """Continue a run from its last checkpoint."""
        saved = load_checkpoint(folder.state)
        try:
            task = task_from(saved["task"])
            kept = folder.path / Path(task.opponent).name
            if task.opponent != LEAGUE and kept.is_file():
                task = replace(task, opponent=str(kept))  # the directory may have been moved
            config, budget = PPOConfig.from_saved(saved["recipe"]), int(saved["budget"])
            device = device or torch.device(saved["device"])
            if device.type == "cuda" and not torch.cuda.is_available():
                raise UserError(
                    f"{folder.state}: was trained on cuda, and CUDA is not available here"
                )
            threads = Threads(*saved["threads"])
            source = make_source(task, config, budget)
            session = cls(folder, task, config, budget, device, threads, source=source)
            session.trainer.restore(saved["trainer"])
            session.metrics.restore(int(saved["metrics_rows"]))
            session.strength.restore(int(saved["strength_rows"]))
            stages = [session._stage_from(stage) for stage in saved["stages"]]
            session.evaluator.restore(stages, saved["played"])
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
        self, callback: SessionCallback, stop: StopRequest, begin: Callable[[], None] = lambda: None
    ) -> bool:
        """Train to the end of the budget; False when stopped before.

        Args:
            callback: is told what happens.
            stop: asked between updates.
            begin: called when the untrained policies are evaluated and training starts.
        """
        board = Board(self.folder.tensorboard, self.trainer.updates)
        try:
            self._evaluate_if_due(callback, board)
            begin()
            while not self.trainer.done and not stop.made:
                if update := self.trainer.update():
                    self.seconds += update.seconds
                    self._add_rows(update, board)
                    callback.on_update(update)
                self._evaluate_if_due(callback, board)
                if time.monotonic() - self._saved_at > CHECKPOINT_EVERY_SEC:
                    self.save()
                    self.save_policies()
            self.save()
            self.save_policies()
        finally:
            board.close()
            self.trainer.close()
        return self.trainer.done

    @property
    def agent_steps_per_s(self) -> float:
        """Learning agent-steps per second, over the whole run."""
        return self.trainer.agent_steps / max(self.seconds, 1e-9)

    def describe(self) -> str:
        """The run in one line."""
        steps, threads = self.trainer.agent_steps, self.threads
        resumed = f", resumed at {steps:,} steps" if steps else ""
        return (
            f"run {self.folder.run_id}: {self.task.role} against {self.task.opponent}, "
            f"seed {self.task.seed}, {self.budget:,} steps on {self.device} "
            f"({threads.workers} workers × {threads.torch_threads} torch threads){resumed}"
        )

    @property
    def spent(self) -> str:
        """How much of the budget is spent, in words."""
        return self.source.spent(self.trainer.agent_steps)

    @property
    def seconds_left(self) -> float:
        """An estimate."""
        return self.source.seconds_left(self.seconds, self.trainer.agent_steps)

    def save(self) -> None:
        """Write everything; the checkpoint last, so that it is never ahead of the tables."""
        self.metrics.save(self.folder.root / LOGS / "metrics.csv")
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
                    for stage in self.evaluator.stages
                ],
                "played": self.evaluator.save(),
                "scores": [
                    {name: list(asdict(score).values()) for name, score in scores.items()}
                    for scores in self.scores
                ],
                "seconds": self.seconds,
            },
        )
        self._saved_at = time.monotonic()

    def kept_stages(self) -> dict[Role, Stage]:
        """By role, the stage whose policy a finished run keeps; empty where that is the last."""
        if not self.trainer.done or len(self.trainer.learning) < len(ROLES):
            return {}
        return self.evaluator.strongest() if SAMPLED in self.evaluator.modes else {}

    def policies(self) -> dict[Role, FrozenPolicy]:
        """As they are now; of a finished run, those it keeps."""
        kept = {role: stage.policies[role] for role, stage in self.kept_stages().items()}
        return self.trainer.freeze() | kept

    def save_policies(self) -> None:
        """Write the policies to the output directory."""
        policies = self.policies()
        _save_both(self.folder.policy("policy"), policies, self.task.rules)
        for role, policy in policies.items():
            _save_both(self.folder.policy(f"policy_{role}"), {role: policy}, self.task.rules)
        self.folder.mark_latest()

    def write_metadata(self, about: dict[str, Any]) -> None:
        """Write the settings of the run and the versions it uses, with more `about` it."""
        write_json(
            self.folder.metadata,
            {
                "run_id": self.folder.run_id,
                "pid": os.getpid(),
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
                "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "estragon": __version__,
                "python": platform.python_version(),
                "torch": torch.__version__,
                "numpy": np.__version__,
                "machine": platform.machine(),
                **about,
            },
        )

    def write_summary(self, probe_steps: int, progress: Progress) -> list[BestResponse]:
        """Write `summary.json`, with the exploitability of the finished policies.

        Args:
            probe_steps: the best response to each policy learns for so long; 0 leaves it out.
            progress: shows what takes long.
        """
        responses = []
        if probe_steps and self.task.rules.rule_set.tag_ends_episode:
            policies = self.policies()
            for role in policies:
                progress.step(f"best response to the {role}", f"{probe_steps:,} steps")
                file = self.folder.policy(f"policy_{role}")
                responses.append(
                    train_best_response(role, file, policies, self.task, self.config, probe_steps)
                )
        write_json(
            self.folder.path / "summary.json",
            {
                "agent_steps": self.trainer.agent_steps,
                "seconds": round(self.seconds, 3),
                "agent_steps_per_s": round(self.agent_steps_per_s),
                **self.source.figures(),
                "kept": {role: stage.name for role, stage in self.kept_stages().items()},
                "scores": {name: asdict(score) for name, score in self.scores[-1].items()},
                "probes": [
                    asdict(response)
                    | {"gain": response.gain, "gain_ci95": list(response.gain_interval)}
                    for response in responses
                ],
            },
        )
        return responses

    def _add_rows(self, update: Update, board: Board) -> None:
        speed = {"agent_steps_per_s": round(self.agent_steps_per_s)}
        row = row_of(update, self.trainer) | speed | self.source.figures()
        board.add(row, self.trainer.updates)
        if self.source.row_per_episode:
            for episode in rows_by_episode(update, self.trainer):
                self.metrics.add(episode | speed)
        else:
            self.metrics.add(row)

    def _evaluate_if_due(self, callback: SessionCallback, board: Board) -> None:
        """Evaluate the stage that the run has just reached, if it has reached one."""
        reached = sum(self.trainer.progress >= share for share in STAGES)
        name = f"{100 * STAGES[reached - 1]:.0f}%"
        updates = self.trainer.updates
        if self.evaluator.stages and (
            self.evaluator.stages[-1].name == name or self.evaluator.stages[-1].updates == updates
        ):
            return
        policies = self.trainer.freeze()
        stage = Stage(name, updates, self.trainer.agent_steps, policies)
        for role, policy in policies.items():
            path = self.folder.checkpoint(role, updates)
            _save_both(path, {role: policy}, self.task.rules)
        scores = self.evaluator.add(stage, callback.on_evaluation)
        self.scores.append(scores)
        row: dict[str, Cell] = {"updates": updates, "agent_steps": stage.agent_steps}
        for name, score in scores.items():
            row |= {f"{name}_{measure}": getattr(score, measure) for measure in MEASURES}
        seeker_elo, hider_elo = self.evaluator.elo()
        row["seeker_elo"] = seeker_elo[-1] if "seeker" in policies else None
        row["hider_elo"] = hider_elo[-1] if "hider" in policies else None
        self.strength.add(row)
        board.add({f"strength_{name}": value for name, value in row.items()}, updates)
        if cross_play := self.evaluator.cross_play():
            write_json(self.folder.cross_play, cross_play)
        self.save()
        self.save_policies()
        callback.on_stage(stage, scores)

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
) -> Session:
    """Start a run on the embedded engine in a new directory, once its settings are checked."""
    config.check()
    if not 1 <= steps <= 10**12:
        raise UserError(f"--steps: expected 1 to {10**12}, got {steps}")
    kind = "league" if task.opponent == LEAGUE else f"{task.role}-against-a-fixed-opponent"
    folder = TagRun.timestamped(root, f"ppo-{kind}")
    if task.opponent != LEAGUE and not task.opponent.startswith("bot:"):
        # the run may write its own policies over that file
        kept = folder.path / f"opponent{Path(task.opponent).suffix}"
        write_whole(kept, Path(task.opponent).read_bytes())
        task = replace(task, opponent=str(kept))
    source = EmbeddedSource(task, config, steps)
    threads = Threads.of_this_machine()
    session = Session(folder, task, config, steps, device, threads, source=source)
    session.save()
    return session


def _save_both(path: Path, policies: dict[Role, FrozenPolicy], rules: Rules) -> None:
    for suffix in (".pt", ".npz"):
        save_policies(path.with_suffix(suffix), policies, rules)
