"""An SB3 model and the games it is trained in: create, resume, train, save, export."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import msgspec
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import DictReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

from estragon.support.errors import UserError
from estragon.trainers.curriculum import RunCurriculum
from estragon.trainers.metrics import Counters, Episodes
from estragon.trainers.run import Run, warn
from estragon.trainers.sb3 import model_file
from estragon.trainers.sb3.algorithms import ModelSpec, Sb3Algorithm, check_spaces
from estragon.trainers.sb3.model_file import Arrays, ModelFile
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.settings import choose_device, note
from estragon.trainers.spaces import describe, from_plain, to_plain

OFF_POLICY_ITERATION_STEPS = 1000
"""Off-policy algorithms have no rollouts: an iteration is at least this many steps."""
TRAIN = "train/"
DEFAULT_GAMMA = 0.99
CONTROLLER_NAMES = {
    "policy_gradient_loss": "policy_loss",
    "actor_loss": "policy_loss",
    "value_loss": "vf_loss",
    "critic_loss": "vf_loss",
}
"""SB3's name → the controller's; metrics have both."""


class RunCallback(BaseCallback):
    """Reports a run's iterations; called after every step of all agents and around rollouts.

    `policies` has the policy's name of every agent; a checkpoint is due every so many steps.
    """

    def __init__(
        self,
        run: Run,
        policies: Sequence[str],
        *,
        on_policy: bool,
        checkpoint_every: int | None,
        curriculum: RunCurriculum | None = None,
    ) -> None:
        super().__init__()
        self._curriculum = curriculum
        self._lessons = [curriculum.lesson if curriculum else 0] * len(policies)
        """Of the episode that each agent plays."""
        self._run, self._policies, self._on_policy = run, policies, on_policy
        self._every = checkpoint_every
        self._logged: dict[str, Any] = {}
        self._episodes: dict[str, Episodes] = {}
        self._reported_at = self._saved_at = 0

    def _on_training_start(self) -> None:
        self._reported_at = self._saved_at = self.num_timesteps

    def _on_rollout_start(self) -> None:
        self._logged |= self.logger.name_to_value  # of the last update, which SB3 soon drops
        if not self._on_policy:
            self._save_if_due()  # the replay buffer now has the last step, too
        elif self.num_timesteps > self._reported_at:
            self._end_iteration()

    def _on_step(self) -> bool:
        counters = self._run.counters
        counters.timesteps = counters.env_steps = self.num_timesteps
        ended = self.locals["dones"].nonzero()[0]
        for agent in ended:
            info = self.locals["infos"][agent]
            episodes = self._episodes.setdefault(self._policies[agent], Episodes())
            episodes.add(info["episode"]["r"], info["episode"]["l"], info)
        if self._curriculum is not None and len(ended):
            self._count_in_curriculum(self._curriculum, ended)
        if self._on_policy:
            self._save_if_due()
        elif self.num_timesteps - self._reported_at >= OFF_POLICY_ITERATION_STEPS:
            self._end_iteration()
        self._run.show_progress()
        return not self._run.stop_requested()

    def _count_in_curriculum(self, curriculum: RunCurriculum, ended: np.ndarray) -> None:
        before = curriculum.lesson  # the games have drawn the episodes that start now from it
        for agent in ended:
            info = self.locals["infos"][agent]
            curriculum.add(
                float(info["episode"]["r"]),
                info,
                lesson=self._lessons[agent],
                progress=self._run.progress,
                timesteps=self.num_timesteps,
            )
            self._lessons[agent] = before
        if curriculum.lesson != before:
            parameter_feed(self.training_env).set_lesson(curriculum.lesson)

    def _on_rollout_end(self) -> None:
        if self._curriculum is not None:  # SB3 writes its scalars next
            self.logger.record("curriculum/lesson", self._curriculum.lesson)
            told = self._curriculum.metric(Episodes.joined(self._episodes.values()))
            for name, value in told["parameters"].items():
                self.logger.record(f"parameters/{name}", value)

    def _on_training_end(self) -> None:
        self._logged |= self.logger.name_to_value
        self._save_if_due()
        if self.num_timesteps > self._reported_at:
            self._end_iteration()

    def _save_if_due(self) -> None:
        if self._every and self.num_timesteps - self._saved_at >= self._every:
            self._saved_at = self.num_timesteps
            self._run.save_checkpoint()

    def _end_iteration(self) -> None:
        self._run.counters.iteration += 1
        self._run.end_iteration(
            self._episodes,
            dict.fromkeys(self._policies, self._learner_stats()),
            trained=getattr(self.model, "_n_updates", 0) > 0,
        )
        self._reported_at, self._episodes = self.num_timesteps, {}

    def _learner_stats(self) -> dict[str, float]:
        stats = {
            key.removeprefix(TRAIN): float(value)
            for key, value in self._logged.items()
            if key.startswith(TRAIN) and isinstance(value, int | float)
        }
        stats |= {
            ours: stats[theirs] for theirs, ours in CONTROLLER_NAMES.items() if theirs in stats
        }
        if "entropy_loss" in stats:
            stats["entropy"] = -stats["entropy_loss"]
        return stats


class StdSchedule(BaseCallback):
    """Moves the standard deviation of continuous actions to a final value, instead of learning it.

    A policy that acts without noise at the end must not rely on noise, for example to cross a
    threshold now and then.
    """

    def __init__(self, first: float, last: float) -> None:
        super().__init__()
        self._first, self._last = first, last

    def _on_rollout_start(self) -> None:
        self._set(self.model._current_progress_remaining)  # noqa: SLF001

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._set(self.model._current_progress_remaining)  # noqa: SLF001

    def _set(self, left: float) -> None:
        policy: Any = self.model.policy
        policy.log_std.data.fill_(self._last + (self._first - self._last) * max(left, 0.0))


class _Events(TensorBoardOutputFormat):
    """TensorBoard's files; a full disk ends them, but not the training."""

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        if self._is_closed:
            return
        try:
            super().write(key_values, key_excluded, step)
        except OSError as error:
            self._is_closed = True
            warn(f"no more TensorBoard: {error}")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


def quiet_logger(folder: str | None) -> Logger:
    """A logger of SB3 that writes to TensorBoard only, or nowhere."""
    return Logger(folder, [_Events(folder)] if folder is not None else [])


class _StoppedError(Exception):
    """A stop was requested in the middle of an update."""


@dataclasses.dataclass
class Sb3Adapter:
    """A model and its games; takes part in a `Run`."""

    settings: Sb3Settings
    algorithm: Sb3Algorithm
    model: BaseAlgorithm
    spec: ModelSpec | None
    """None for a model that Estragon did not make: how to build it again is unknown."""
    normalizer: VecNormalize | None
    is_resumed: bool
    curriculum: RunCurriculum | None = None
    callbacks: tuple[BaseCallback, ...] = ()
    """Called after that of the run."""
    checkpoint_path: Callable[[int], Path] | None = None
    """From the number of steps, where a checkpoint is written; None: in the run directory."""
    resume_flag: str = "--resume_model_path"
    counters: Counters = dataclasses.field(init=False)
    _latest_replay: Path | None = dataclasses.field(default=None, init=False)

    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    def __post_init__(self) -> None:
        """Continue the counts of a resumed model."""
        steps = self.model.num_timesteps
        self.counters = Counters(timesteps=steps, env_steps=steps)

    @classmethod
    def new(cls, settings: Sb3Settings, algorithm: Sb3Algorithm, games: VecMonitor) -> Self:
        """An untrained model."""
        observations, actions = games.observation_space, games.action_space
        check_spaces(algorithm, observations, actions, settings.policy_type)
        given = settings.hyperparameters.given()
        known = algorithm.hyperparameters
        spec = ModelSpec(
            algo=algorithm.name,
            policy_type=settings.policy_type,
            layers=settings.policy_layers,
            activation=settings.activation,
            hyperparameters={key: given[key] for key in sorted(given) if key in known},
            linear_lr_schedule=settings.linear_lr_schedule,
            observation_space=to_plain(observations),
            action_space=to_plain(actions),
        )
        model, normalizer = _build(settings, spec, games)
        return cls(settings, algorithm, model, spec, normalizer, is_resumed=False)

    @classmethod
    def resumed(cls, settings: Sb3Settings, source: ModelFile, games: VecMonitor) -> Self:
        """The model of a file; hyperparameters given now take precedence over the file's."""
        if source.spec is None:
            return cls._unpickled(settings, source, games)
        saved = source.spec
        here = [describe(games.observation_space), describe(games.action_space)]
        there = [
            describe(from_plain(plain)) for plain in (saved.observation_space, saved.action_space)
        ]
        if there != here:
            raise UserError(
                f"{source.path} is of another game: its observations are {there[0]}, its actions "
                f"{there[1]}; those of this game are {here[0]}, and {here[1]}"
            )
        spec = msgspec.structs.replace(
            saved,
            hyperparameters=settings.hyperparameters.over(saved.hyperparameters).given(),
            linear_lr_schedule=settings.linear_lr_schedule or saved.linear_lr_schedule,
            observation_space=to_plain(games.observation_space),
            action_space=to_plain(games.action_space),
        )
        if settings.normalize and source.normalization is None:
            raise UserError(f"--normalize: {source.path} was trained without it")
        model, normalizer = _build(settings, spec, games, source)
        source.restore(model)
        learner = cls(settings, source.algorithm, model, spec, normalizer, is_resumed=True)
        if not settings.inference:
            learner._load_replay(model_file.replay_path(source.path))
        return learner

    @classmethod
    def _unpickled(cls, settings: Sb3Settings, source: ModelFile, games: VecMonitor) -> Self:
        given = settings.hyperparameters.given()
        known = source.algorithm.hyperparameters - {"action_noise"}
        changed = {key: given[key] for key in given if key in known}
        model = source.unpickle(games, _device(settings, settings.policy_type), changed)
        return cls(settings, source.algorithm, model, None, None, is_resumed=True)

    @property
    def env(self) -> VecEnv:
        """The games, as the model sees them."""
        return cast("VecEnv", self.model.get_env())

    @property
    def normalization(self) -> Arrays | None:
        """The running statistics of observations and rewards, if they are normalized."""
        return None if self.normalizer is None else model_file.get_normalization(self.normalizer)

    @property
    def supports_masks(self) -> bool:
        """Whether the algorithm uses action masks, and the games have them."""
        if self.algorithm.name != "maskable_ppo":
            return False
        from sb3_contrib.common.maskable.utils import is_masking_supported

        return is_masking_supported(self.env)

    def learn(self, steps: int, callback: BaseCallback) -> None:
        """Run SB3's loop for this many steps of all agents."""
        masks = self.algorithm.name == "maskable_ppo"
        more: dict[str, Any] = {"use_masking": self.supports_masks} if masks else {}
        self.model.learn(steps, callback, reset_num_timesteps=not self.is_resumed, **more)

    def train(self, run: Run) -> None:
        """Learn until all steps are done, or the run is asked to stop."""
        self.model.set_logger(quiet_logger(str(run.folder)))
        callback = RunCallback(
            run,
            policy_names(self.env),
            on_policy=not self.algorithm.is_off_policy,
            checkpoint_every=self.settings.save_checkpoint_frequency,
            curriculum=self.curriculum,
        )
        try:
            with self._stoppable_updates(run):
                callbacks = [callback, *self._schedules(), *self.callbacks]
                self.learn(self.settings.timesteps, CallbackList(callbacks))
        except _StoppedError:
            callback.on_training_end()
        finally:
            self.model.logger.close()

    def _schedules(self) -> list[BaseCallback]:
        given = self.spec.hyperparameters if self.spec else {}
        if "log_std_final" not in given or not isinstance(self.env.action_space, spaces.Box):
            return []
        return [StdSchedule(given.get("log_std_init", 0.0), given["log_std_final"])]

    @contextlib.contextmanager
    def _stoppable_updates(self, run: Run) -> Iterator[None]:
        """On-policy updates may take minutes: they can stop between two minibatches.

        Off-policy updates are short, and move several networks that belong together.
        """
        if self.algorithm.is_off_policy:
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

    def save_checkpoint(self, folder: Path) -> Path:
        """Write a checkpoint; only the latest keeps its replay buffer, which is large."""
        steps = self.model.num_timesteps
        path = folder / "checkpoints" / f"rl_model_{steps}_steps.zip"
        if self.checkpoint_path is not None:
            path = self.checkpoint_path(steps)
        self.write(path)
        if self._latest_replay is not None:
            self._latest_replay.unlink(missing_ok=True)
        self._latest_replay = model_file.replay_path(path)
        self.counters.checkpoints += 1
        return path

    def save(self, folder: Path) -> Path:
        """Write the model, with its replay buffer beside it."""
        path = folder / "model.zip"
        self.write(path, for_games=True)
        return path

    def export(self, saved: Path) -> dict[str, str]:
        """Write a copy of the model and its policy as ONNX, if asked for."""
        written: dict[str, str] = {}
        if (path := self.settings.save_model_path) is not None:
            path = path if path.suffix else path.with_suffix(".zip")
            self.write(path, for_games=True)
            written["a copy"] = str(path)
        if self.settings.onnx_export_path is not None:
            written["onnx"] = str(self.export_onnx(self.settings.onnx_export_path))
        return written

    def _onnx(self) -> bytes:
        from estragon.trainers.sb3.export import exported

        return exported(self.model, self.algorithm.name, normalization=self.normalization)

    def export_onnx(self, path: Path) -> Path:
        """Write the policy as ONNX; `.onnx` is added to a path without suffix."""
        from estragon.trainers.sb3.export import export

        path = path if path.suffix else path.with_suffix(".onnx")
        export(self.model, self.algorithm.name, path, normalization=self.normalization)
        return path

    def write(self, path: Path, *, for_games: bool = False) -> None:
        """Write the model to a file; for games, with its policy as ONNX in it, if that works."""
        policy = None
        if for_games:
            with contextlib.suppress(UserError, ModuleNotFoundError):
                policy = self._onnx()
        kept = None
        if self.curriculum is not None:
            kept = self.curriculum.save(parameter_feed(self.env).save())
        model_file.save_model(self.model, path, self.spec, self.normalization, kept, policy)

    def _load_replay(self, path: Path) -> None:
        buffer = getattr(self.model, "replay_buffer", None)
        if not isinstance(buffer, DictReplayBuffer):
            return
        if path.exists():
            model_file.load_replay(buffer, path)
        else:
            note(f"{path} not found: starting with an empty replay buffer")


def policy_names(env: VecEnv) -> list[str]:
    """The policy name of each agent."""
    return cast("list[str]", env.get_attr("agent_policy_names", [0])[0])


def parameter_feed(env: VecEnv) -> Any:
    """What draws the parameters of the games; None without parameters."""
    return env.get_attr("parameter_feed", [0])[0]


def _build(
    settings: Sb3Settings, spec: ModelSpec, games: VecMonitor, source: ModelFile | None = None
) -> tuple[BaseAlgorithm, VecNormalize | None]:
    statistics = source.normalization if source else None
    normalizer = None
    if settings.normalize or statistics is not None:
        gamma = spec.hyperparameters.get("gamma", DEFAULT_GAMMA)
        normalizer = model_file.normalized(games, gamma, statistics)
    seed = settings.seed + (source.steps if source else 0)
    device = _device(settings, spec.policy_type)
    return spec.build(normalizer or games, seed=seed, device=device), normalizer


def _device(settings: Sb3Settings, policy_type: str) -> str:
    return choose_device(settings.device, images=policy_type == "cnn")
