"""An SB3 model and the games it is trained in: create, resume, train, save, export."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import DictReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

from estragon.support.errors import UserError
from estragon.support.runs import RunFolder
from estragon.trainers.run import Counters, Run
from estragon.trainers.sb3 import replay
from estragon.trainers.sb3.algorithms import Algorithm, Plan, check_spaces
from estragon.trainers.sb3.callback import RunCallback, quiet_logger
from estragon.trainers.sb3.games import policies_of
from estragon.trainers.sb3.model_file import About, ModelFile, save
from estragon.trainers.sb3.scales import read_scales, scaled, write_scales
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.settings import choose_device
from estragon.trainers.spaces import describe, from_plain, to_plain

DEFAULT_GAMMA = 0.99


class _StoppedError(Exception):
    """A stop was requested in the middle of an update."""


@dataclasses.dataclass
class Learner:
    """A model and its games; takes part in a `Run`."""

    settings: Sb3Settings
    algorithm: Algorithm
    model: BaseAlgorithm
    about: About | None
    """None for a model that Estragon did not make: how to build it again is unknown."""
    scaling: VecNormalize | None
    is_resumed: bool
    counters: Counters = dataclasses.field(init=False)
    _replay: Path | None = dataclasses.field(default=None, init=False)

    resume_flag: ClassVar[str] = "--resume_model_path"
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    def __post_init__(self) -> None:
        """Continue the counts of a resumed model."""
        steps = self.model.num_timesteps
        self.counters = Counters(timesteps=steps, env_steps=steps)

    @classmethod
    def new(cls, settings: Sb3Settings, algorithm: Algorithm, games: VecMonitor) -> Self:
        """An untrained model."""
        sees, does = games.observation_space, games.action_space
        check_spaces(algorithm, sees, does, settings.policy_type)
        given = settings.hyperparameters.given()
        about = About(
            algo=algorithm.name,
            policy_type=settings.policy_type,
            layers=settings.policy_layers,
            hyperparameters={key: given[key] for key in sorted(given) if key in algorithm.takes},
            linear_lr_schedule=settings.linear_lr_schedule,
            sees=to_plain(sees),
            does=to_plain(does),
        )
        scaling = scaled(games, given.get("gamma", DEFAULT_GAMMA)) if settings.normalize else None
        model = _build(about, scaling or games, settings, algorithm)
        return cls(settings, algorithm, model, about, scaling, is_resumed=False)

    @classmethod
    def resumed(cls, settings: Sb3Settings, source: ModelFile, games: VecMonitor) -> Self:
        """The model of a file; hyper-parameters given now take precedence over the file's."""
        if source.about is None:
            return cls._foreign(settings, source, games)
        sees, does = games.observation_space, games.action_space
        before = source.about
        learned = [describe(from_plain(plain)) for plain in (before.sees, before.does)]
        if learned != [describe(sees), describe(does)]:
            raise UserError(
                f"{source.path} is of another game: it sees {learned[0]} and does {learned[1]}; "
                f"here it would see {describe(sees)} and do {describe(does)}"
            )
        about = About(
            algo=before.algo,
            policy_type=before.policy_type,
            layers=before.layers,
            hyperparameters=settings.hyperparameters.over(before.hyperparameters).given(),
            linear_lr_schedule=settings.linear_lr_schedule or before.linear_lr_schedule,
            sees=to_plain(sees),
            does=to_plain(does),
        )
        scaling = None
        if source.scales is not None:
            scaling = scaled(games, about.hyperparameters.get("gamma", DEFAULT_GAMMA))
            write_scales(scaling, source.scales)
        elif settings.normalize:
            raise UserError(f"--normalize: {source.path} was trained without")
        model = _build(about, scaling or games, settings, source.algorithm, source.steps)
        source.restore(model)
        learner = cls(settings, source.algorithm, model, about, scaling, is_resumed=True)
        if not settings.inference:
            learner._load_replay(replay.path_beside(source.path))
        return learner

    @classmethod
    def _foreign(cls, settings: Sb3Settings, source: ModelFile, games: VecMonitor) -> Self:
        given = settings.hyperparameters.given()
        changed = {key: given[key] for key in given if key in source.algorithm.takes}
        changed.pop("action_noise", None)
        device = choose_device(settings.device, images=settings.policy_type == "cnn")
        model = source.unpickle(games, device, changed)
        return cls(settings, source.algorithm, model, None, None, is_resumed=True)

    @property
    def env(self) -> VecEnv:
        """The games, as the model sees them."""
        env = self.model.get_env()
        if env is None:
            raise ValueError("a learner has games")
        return env

    @property
    def scales(self) -> "dict[str, np.ndarray] | None":
        """The normalization of observations, if there is one."""
        return None if self.scaling is None else read_scales(self.scaling)

    def learn(self, steps: int, callback: BaseCallback) -> None:
        """Run SB3's loop for this many steps of all agents."""
        more: dict[str, Any] = {}
        if self.algorithm.name == "maskable_ppo":
            from sb3_contrib.common.maskable.utils import is_masking_supported

            more["use_masking"] = is_masking_supported(self.env)
        self.model.learn(steps, callback, reset_num_timesteps=not self.is_resumed, **more)

    def train(self, run: Run) -> None:
        """Learn until all steps are done, or the run is asked to stop."""
        self.model.set_logger(quiet_logger(str(run.folder.path)))
        callback = RunCallback(
            run,
            policies_of(self.env),
            on_policy=not self.algorithm.learns_from_replay,
            checkpoint_every=self.settings.save_checkpoint_frequency,
        )
        try:
            with self._stoppable_updates(run):
                self.learn(self.settings.timesteps, callback)
        except _StoppedError:
            callback.on_training_end()
        finally:
            self.model.logger.close()

    @contextlib.contextmanager
    def _stoppable_updates(self, run: Run) -> Iterator[None]:
        """On-policy updates may take minutes: they can stop between two minibatches.

        Off-policy updates are short, and move several networks that belong together.
        """
        if self.algorithm.learns_from_replay:
            yield
            return

        def stop_if_requested(*_: object) -> None:
            if run.stop_requested():
                raise _StoppedError

        hook = self.model.policy.optimizer.register_step_post_hook(stop_if_requested)
        try:
            yield
        finally:
            hook.remove()

    def save_checkpoint(self, folder: RunFolder) -> None:
        """Write a checkpoint; only the latest keeps its replay buffer, which is large."""
        steps = self.model.num_timesteps
        path = folder.path / "checkpoints" / f"rl_model_{steps}_steps.zip"
        self._write(path)
        if self._replay is not None:
            self._replay.unlink(missing_ok=True)
        self._replay = replay.path_beside(path)
        self.counters.checkpoints += 1

    def save(self, folder: RunFolder) -> Path:
        """Write the model, with its replay buffer beside it."""
        path = folder.path / "model.zip"
        self._write(path)
        return path

    def export(self, saved: Path) -> dict[str, str]:
        """Write a copy of the model and its policy as ONNX, if asked for."""
        written: dict[str, str] = {}
        if (path := self.settings.save_model_path) is not None:
            path = path if path.suffix else path.with_suffix(".zip")
            self._write(path)
            written["a copy"] = str(path)
        if (path := self.settings.onnx_export_path) is not None:
            from estragon.trainers.sb3.onnx_export import export

            path = path if path.suffix else path.with_suffix(".onnx")
            export(self.model, self.algorithm.name, path, scales=self.scales)
            written["onnx"] = str(path)
        return written

    def _write(self, path: Path) -> None:
        buffer = getattr(self.model, "replay_buffer", None)
        if isinstance(buffer, DictReplayBuffer):
            replay.save_replay(buffer, replay.path_beside(path))
        save(self.model, path, self.about, self.scales)

    def _load_replay(self, path: Path) -> None:
        buffer = getattr(self.model, "replay_buffer", None)
        if not isinstance(buffer, DictReplayBuffer):
            return
        if path.exists():
            replay.load_replay(buffer, path)
        else:
            print(f"{path} not found: starting with an empty replay buffer", file=sys.stderr)


def _build(
    about: About, env: VecEnv, settings: Sb3Settings, algorithm: Algorithm, steps_before: int = 0
) -> BaseAlgorithm:
    plan = Plan(
        algorithm,
        settings.hyperparameters.over(about.hyperparameters),
        about.policy_type,
        about.layers,
        about.linear_lr_schedule,
        settings.seed + steps_before,
        choose_device(settings.device, images=about.policy_type == "cnn"),
    )
    return plan.model_for(env)
