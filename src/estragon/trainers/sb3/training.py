"""A whole run of training, from the first game to the model on the disk."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common.vec_env import VecMonitor

from estragon import __version__
from estragon.support.errors import INTERRUPTED, UserError
from estragon.support.files import ensure_writable
from estragon.support.interrupts import STOP_SIGNALS, StopRequest, deferred_interrupts
from estragon.support.progress import Progress
from estragon.trainers.controller import Controller, RunRecord
from estragon.trainers.demos import read_demos
from estragon.trainers.metric_lines import Metrics
from estragon.trainers.run_folder import TrainerRun
from estragon.trainers.sb3.algorithms import choose
from estragon.trainers.sb3.cloning import clone
from estragon.trainers.sb3.device import choose_device, use_few_threads
from estragon.trainers.sb3.games import open_games, policies_of
from estragon.trainers.sb3.learner import Learner
from estragon.trainers.sb3.model_file import ModelFile
from estragon.trainers.sb3.watch import Watch, quiet_logger
from estragon.trainers.spaces import to_plain

if TYPE_CHECKING:
    from estragon.trainers.sb3.settings import Sb3Settings

TELL_EVERY_SEC = 10.0


def train(options: "Sb3Settings") -> int:
    """Train; 0 done or asked to stop, 1 something broke on the way, 130 interrupted."""
    source = None
    if options.resume_model_path is not None:
        source = ModelFile(options.resume_model_path, options.algo)
    algorithm = source.algorithm if source else choose(options.algo, options.policy_type)
    choose_device(options.device, options.policy_type)
    use_few_threads(options.policy_type)
    controller = Controller()
    controller.forget_stop()
    folder = TrainerRun.numbered(options.experiment_dir, options.experiment_name)
    ensure_writable(folder.model)
    try:
        with contextlib.closing(
            open_games(options, folder.game_logs, source.steps if source else 0)
        ) as games:
            if source is None:
                learner = Learner.new(options, algorithm, games)
            else:
                learner = Learner.resumed(options, source, games)
            _tell_start(options, learner, folder)
            if options.demos is not None:
                sees: Any = games.observation_space
                demos = read_demos(options.demos, sees, games.action_space)
                told = clone(learner, demos, options.demo_rounds, options.seed)
                print(f"demonstrations: {told}", file=sys.stderr, flush=True)
            return Run(options, learner, folder, controller, games).run()
    finally:
        with contextlib.suppress(OSError):
            folder.path.rmdir()  # only if nothing was begun


class _StoppedError(Exception):
    """Somebody asked to stop in the middle of an update."""


class Run:
    """One run of a learner."""

    def __init__(
        self,
        options: "Sb3Settings",
        learner: Learner,
        folder: TrainerRun,
        controller: Controller,
        games: VecMonitor,
    ) -> None:
        """Write down that it begins."""
        self._options, self._learner, self._folder = options, learner, folder
        self._controller = controller
        about = _facts(options, learner, folder, games)
        records = [RunRecord.begin(folder.manifest, options.experiment_name, about)]
        if controller.is_there:
            records.append(controller.begin_run(options.experiment_name, about))
        self._records = records
        self._metrics = Metrics(records)
        self._policies = policies_of(games)
        self._memory: Path | None = None
        self._status = "finished"

    def run(self) -> int:
        """Learn, and leave a model whatever happens."""
        model, options = self._learner.model, self._options
        model.set_logger(quiet_logger(str(self._folder.path)))
        with Progress(TELL_EVERY_SEC) as progress:
            with deferred_interrupts(progress.say, STOP_SIGNALS) as request:
                watch = Watch(
                    self._policies,
                    self._metrics,
                    progress,
                    in_rounds=not self._learner.algorithm.learns_from_replay,
                    checkpoint_every=options.save_checkpoint_frequency,
                    checkpoint=self._checkpoint,
                    is_over=lambda: self._is_over(interrupted=request.made),
                )
                with self._stops_within_an_update(request):
                    problem = self._learn(watch)
            model.logger.close()
        return self._end(watch, problem)

    @contextlib.contextmanager
    def _stops_within_an_update(self, request: StopRequest) -> Iterator[None]:
        """Updates of many passes may take minutes: they are left between two minibatches."""
        if self._learner.algorithm.learns_from_replay:
            yield  # those are short, and move several networks that belong together
            return

        def look(*_: object) -> None:
            if self._is_over(interrupted=request.made):
                raise _StoppedError

        hook = self._learner.model.policy.optimizer.register_step_post_hook(look)
        try:
            yield
        finally:
            hook.remove()

    def _learn(self, watch: Watch) -> UserError | None:
        """What went wrong, if it is something that people can see to."""
        try:
            self._learner.learn(self._options.timesteps, watch)
        except _StoppedError:
            watch.on_training_end()
        except UserError as error:
            return error
        except OSError as error:
            return UserError(f"{error.strerror or error}: {error.filename or 'while training'}")
        except BaseException as error:
            self._finish("failed", watch, error=f"{type(error).__name__}: {error}")
            with contextlib.suppress(UserError):
                self._learner.save(self._folder.model)
            raise
        return None

    def _end(self, watch: Watch, problem: UserError | None) -> int:
        written: dict[str, Any] = {}
        try:
            self._learner.save(self._folder.model)
            written["model"] = str(self._folder.model)
            if problem is None:
                written |= self._write_what_was_asked_for()
        except UserError as error:
            problem = problem or error
        for what, path in written.items():
            print(f"{what} saved to {path}")
        if problem is not None:
            self._finish("failed", watch, error=str(problem), **written)
            print(f"estragon: {' '.join(str(problem).split())}", file=sys.stderr)
            return 1
        self._finish(self._status, watch, **written)
        if self._status != "finished":
            print(f"{self._status}; {self._folder.model} goes on (--resume_model_path)")
        return INTERRUPTED if self._status == "interrupted" else 0

    def _write_what_was_asked_for(self) -> dict[str, str]:
        written: dict[str, str] = {}
        if (path := self._options.save_model_path) is not None:
            path = path if path.suffix else path.with_suffix(".zip")
            self._learner.save(path)
            written["a copy"] = str(path)
        if (path := self._options.onnx_export_path) is not None:
            from estragon.trainers.sb3.onnx_export import export

            path = path if path.suffix else path.with_suffix(".onnx")
            export(
                self._learner.model, self._learner.algorithm.name, path, scales=self._learner.scales
            )
            written["onnx"] = str(path)
        return written

    def _is_over(self, *, interrupted: bool) -> bool:
        if interrupted:
            self._status = "interrupted"
        elif self._controller.asks_to_stop():
            self._status = "stopped"
        return self._status != "finished"

    def _checkpoint(self, steps: int) -> bool:
        """Save one; what is remembered is kept with the latest alone, as it is large."""
        from estragon.trainers.sb3.replay import path_beside

        path = self._folder.checkpoint(steps)
        try:
            self._learner.save(path)
        except UserError as error:
            print(f"WARNING: no checkpoint at {steps} steps: {error}", file=sys.stderr, flush=True)
            return False
        if self._memory is not None:
            self._memory.unlink(missing_ok=True)
        self._memory = path_beside(path)
        return True

    def _finish(self, status: str, watch: Watch, **facts: Any) -> None:
        for record in self._records:
            with contextlib.suppress(UserError):
                record.end(
                    status,
                    timesteps=self._learner.model.num_timesteps,
                    episodes=watch.episodes_total,
                    last=self._metrics.last,
                    **facts,
                )


def _tell_start(options: "Sb3Settings", learner: Learner, folder: TrainerRun) -> None:
    algorithm, model = learner.algorithm, learner.model
    unused = sorted(set(options.hyperparameters.given()) - algorithm.takes)
    if unused:
        print(f"not used by {algorithm.name}: {', '.join(unused)}", file=sys.stderr)
    agents = model.n_envs
    went_on = f", going on at {model.num_timesteps:,} steps" if learner.is_resumed else ""
    print(
        f"{folder.path}: {algorithm.name} on {model.device}, {agents} agents in "
        f"{options.n_parallel} games, {options.timesteps:,} steps{went_on}",
        file=sys.stderr,
        flush=True,
    )
    round_steps = getattr(model, "n_steps", 0) * agents
    if not algorithm.learns_from_replay and round_steps > options.timesteps // 4:
        print(
            f"an update comes after {round_steps:,} steps (n_steps {round_steps // agents} of "
            f"{agents} agents): with a smaller n_steps it would learn more often",
            file=sys.stderr,
        )


def _facts(
    options: "Sb3Settings", learner: Learner, folder: TrainerRun, games: VecMonitor
) -> dict[str, Any]:
    asked = dataclasses.asdict(options)
    asked |= asked.pop("hyperparameters")
    return {
        "backend": "sb3",
        "algorithm": learner.algorithm.name,
        "folder": str(folder.path),
        "agents": games.num_envs,
        "policies": sorted(set(policies_of(games))),
        "observation_space": to_plain(games.observation_space),
        "action_space": to_plain(games.action_space),
        "options": {
            key: str(value) if isinstance(value, Path) else value for key, value in asked.items()
        },
        "versions": {
            "estragon": __version__,
            "stable_baselines3": stable_baselines3.__version__,
            "sb3_contrib": sb3_contrib.__version__,
            "torch": torch.__version__,
        },
    }
