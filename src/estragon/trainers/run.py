"""One training run, whichever library trains: limits, stop requests, metrics, results, exit code.

A library takes part as a `Learner`. Its `train` drives the library's own loop, and reports to the
`Run` after every iteration.
"""

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch

from estragon import __version__
from estragon.support.errors import INTERRUPTED, UserError
from estragon.support.files import ensure_writable
from estragon.support.interrupts import STOP_SIGNALS, StopRequest, deferred_interrupts
from estragon.support.progress import Progress
from estragon.support.runs import RunFolder
from estragon.trainers.controller import Controller, RunRecord
from estragon.trainers.curriculum import RunCurriculum
from estragon.trainers.metrics import Counters, Episodes, Metrics, Stats, iteration_metric
from estragon.trainers.settings import TrainerSettings, note

MANIFEST = "run.json"
"""The settings of a run, and how it ended."""
GAME_LOGS = "games"
"""The directory of the games' logs."""
PROGRESS_SEC = 10.0


@dataclasses.dataclass(frozen=True)
class StopLimits:
    """When a run is over, counted from its start; None: no limit."""

    timesteps: int | None = None
    seconds: float | None = None
    iterations: int | None = None
    reward: float | None = None


class TrainerAdapter(Protocol):
    """A library's algorithm and its games."""

    counters: Counters
    failures: ClassVar[tuple[type[Exception], ...]]
    """Exceptions that end a run with one line instead of a traceback, besides UserError."""

    @property
    def resume_flag(self) -> str:
        """The option that resumes what `save` writes."""
        ...

    def train(self, run: "Run") -> None:
        """Train until the run is over; call `run.end_iteration` after each iteration."""

    def save_checkpoint(self, folder: Path) -> Path:
        """Write a checkpoint, usually into the run directory."""

    def save(self, folder: Path) -> Path:
        """Write the final model or checkpoint into the run directory."""

    def export(self, saved: Path) -> dict[str, str]:
        """Write what else was asked for at the end; what it is → where it is."""


class Run:
    """One run of a learner."""

    def __init__(
        self,
        learner: TrainerAdapter,
        folder: Path,
        controller: Controller,
        name: str,
        *,
        limits: StopLimits,
        about: dict[str, Any],
        curriculum: RunCurriculum | None = None,
    ) -> None:
        """Write the manifest, and the controller's record if there is a controller."""
        self.folder, self.counters = folder, learner.counters
        self._learner, self._controller, self._limits = learner, controller, limits
        self._curriculum = curriculum
        self._records = [RunRecord(folder / MANIFEST, name, about)]
        if controller.exists:
            self._records.append(controller.begin_run(name, about))
        self._metrics = Metrics(self._records)
        self._first = dataclasses.replace(self.counters)
        self._env_steps_told = self.counters.env_steps
        self._started = self._told = time.monotonic()
        self._status = "finished"
        self._progress = Progress(PROGRESS_SEC)
        self._interrupt = StopRequest()

    def execute(self) -> int:
        """Train, and save the result whatever happens.

        Returns 0 when finished or asked to stop, 1 on a failure, 130 when interrupted.
        """
        problem: UserError | None = None
        with (
            self._progress as progress,
            deferred_interrupts(progress.say, STOP_SIGNALS) as self._interrupt,
        ):
            progress.step("training", announced=False)
            self._started = self._told = time.monotonic()
            try:
                self._learner.train(self)
            except UserError as error:
                problem = error
            except self._learner.failures as error:
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                problem = UserError(f"{type(error).__name__}: {lines[-1] if lines else ''}")
            except BaseException as error:
                self._end_records("failed", error=f"{type(error).__name__}: {error}")
                with contextlib.suppress(Exception):
                    self._learner.save(self.folder)
                raise
        return self._finish(problem)

    def stop_requested(self) -> bool:
        """Whether there was a Ctrl-C, or the controller's stop file exists."""
        if self._interrupt.made:
            self._status = "interrupted"
        elif self._controller.stop_requested():
            self._status = "stopped"
        return self._status != "finished"

    def is_over(self) -> bool:
        """Whether a stop was requested or a limit is reached."""
        limits, counters, first = self._limits, self.counters, self._first
        return self.stop_requested() or any(
            value is not None and limit is not None and value >= limit
            for value, limit in (
                (counters.timesteps - first.timesteps, limits.timesteps),
                (time.monotonic() - self._started, limits.seconds),
                (counters.iteration - first.iteration, limits.iterations),
                (self._metrics.last.get("episode_reward_mean"), limits.reward),
            )
        )

    @property
    def progress(self) -> float:
        """Share of the training that is over, with the steps of the runs that it resumes."""
        limits, counters, first = self._limits, self.counters, self._first
        shares = [0.0]
        if limits.timesteps is not None:
            shares.append(counters.timesteps / (first.timesteps + limits.timesteps))
        if limits.iterations is not None:
            shares.append(counters.iteration / (first.iteration + limits.iterations))
        if limits.seconds is not None:
            shares.append((time.monotonic() - self._started) / limits.seconds)
        return max(shares)

    def end_iteration(
        self,
        episodes: Mapping[str, Episodes],
        learner_stats: Mapping[str, Stats],
        *,
        trained: bool,
        checkpoint: bool = False,
    ) -> dict[str, Any]:
        """Count, save a checkpoint if one is due, and report an iteration; returns its metric.

        The arguments are those of `iteration_metric`.
        """
        now, counters = time.monotonic(), self.counters
        counters.episodes += sum(map(len, episodes.values()))
        if checkpoint:
            self.save_checkpoint()
        metric = iteration_metric(
            counters,
            episodes,
            learner_stats,
            env_steps=counters.env_steps - self._env_steps_told,
            seconds=now - self._told,
            total_seconds=now - self._started,
            trained=trained,
        )
        if self._curriculum is not None:
            metric |= self._curriculum.metric(Episodes.joined(episodes.values()))
        self._metrics.emit(metric)
        self._told, self._env_steps_told = now, counters.env_steps
        print(_iteration_line(self._metrics.last), flush=True)
        return self._metrics.last

    def show_progress(self) -> None:
        """Update the progress bar, against the limit of steps or of time."""
        done, seconds = self.counters.timesteps - self._first.timesteps, self._limits.seconds
        elapsed = time.monotonic() - self._started
        if self._limits.timesteps is not None:
            rate = f" steps, {done / max(elapsed, 1e-9):,.0f}/s"
            self._progress.update(done, self._limits.timesteps, rate)
        elif seconds is not None:
            self._progress.update(elapsed, seconds, " s")

    def save_checkpoint(self) -> None:
        """Save a checkpoint; a full disk is a warning."""
        try:
            path = self._learner.save_checkpoint(self.folder)
            for record in self._records:
                record.add_checkpoint(path)
        except UserError as error:
            warn(f"no checkpoint at {self.counters.timesteps} steps: {error}")

    def _finish(self, problem: UserError | None) -> int:
        written: dict[str, str] = {}
        try:
            saved = self._learner.save(self.folder)
            written["model" if saved.is_file() else "checkpoint"] = str(saved)
            if problem is None:
                written |= self._learner.export(saved)
        except UserError as error:
            problem = problem or error
        for what, path in written.items():
            print(f"{what} saved to {path}")
        if problem is not None:
            self._end_records("failed", error=str(problem), **written)
            note(f"estragon: {' '.join(str(problem).split())}")
            return 1
        self._end_records(self._status, **written)
        if self._status != "finished":
            print(f"{self._status}; resume with {self._learner.resume_flag} {saved}")
        return INTERRUPTED if self._status == "interrupted" else 0

    def _end_records(self, status: str, **facts: Any) -> None:
        if self._curriculum is not None:
            facts |= {"curriculum": self._curriculum.summary()}
        for record in self._records:
            with contextlib.suppress(UserError):
                record.end(
                    status,
                    timesteps=self.counters.timesteps,
                    episodes=self.counters.episodes,
                    last=self._metrics.last,
                    **facts,
                )


@contextlib.contextmanager
def new_run_folder(root: Path, name: str, controller: Controller) -> Iterator[Path]:
    """A new run directory; removed if no run starts in it and no game leaves a log."""
    controller.clear_stop()
    folder = RunFolder.numbered(root, name).path
    ensure_writable(folder / MANIFEST)
    try:
        yield folder
    finally:
        files = {path.name for path in folder.iterdir()}
        if not files & {MANIFEST, GAME_LOGS}:
            shutil.rmtree(folder, ignore_errors=True)


def describe_run(
    backend: str, settings: TrainerSettings, folder: Path, versions: dict[str, str]
) -> dict[str, Any]:
    """What the manifest of every run says."""
    options = dataclasses.asdict(settings)
    options |= options.pop("hyperparameters")
    return {
        "backend": backend,
        "folder": str(folder),
        "options": {k: str(v) if isinstance(v, Path) else v for k, v in options.items()},
        "versions": {"estragon": __version__, "torch": torch.__version__, **versions},
    }


def play(steps: int, step: Callable[[], int], controller: Controller) -> None:
    """Let trained policies play until `step`, which returns how many it made, made them all."""
    done = 0
    with Progress() as progress, deferred_interrupts(progress.say, STOP_SIGNALS) as interrupt:
        progress.step("playing", announced=False)
        while done < steps and not interrupt.made and not controller.stop_requested():
            done += step()
            progress.update(done, steps, " steps")


def one_line(error: Exception) -> str:
    """The message of a library's exception, without line breaks."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def warn(text: str) -> None:
    """Print a warning to standard error."""
    note(f"WARNING: {text}")


def _iteration_line(metric: dict[str, Any]) -> str:
    line = (
        f"iteration {metric['training_iteration']}: {metric['timesteps_total']:,} steps, "
        f"{metric['episodes_total']} episodes"
    )
    several = len(metric["policies"]) > 1
    for policy, each in metric["policies"].items():
        if each["completed_episodes"]:
            line += f", {policy} reward" if several else ", reward"
            line += f" {each['reward_mean']:.3f}, length {each['episode_len_mean']:.1f}"
    for key, value in metric["custom_metrics"].items():
        line += f", {key} {value:.3f}" if value is not None else ""
    line += f", lesson {metric['lesson_name']}" if "lesson_name" in metric else ""
    return f"{line}, {metric['env_throughput']:,.0f} steps/s"
