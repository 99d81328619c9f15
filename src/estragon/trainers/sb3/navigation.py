"""VR navigation with Stable-Baselines3: a configuration of `spacetime` as a run of the trainer."""

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from estragon.godot.user_data import resolve
from estragon.spacetime.config import RLConfig
from estragon.spacetime.rewards import RewardCalculator
from estragon.spacetime.vec_rewards import NavigationRewards
from estragon.support import paths
from estragon.support.parameters import Plan
from estragon.trainers.metrics import Episodes
from estragon.trainers.sb3.evaluating import (
    EvaluationCallback,
    RandomModel,
    frozen,
    play_episodes,
)
from estragon.trainers.sb3.learner import Sb3Adapter
from estragon.trainers.sb3.model_file import ModelFile
from estragon.trainers.sb3.scene_callbacks import PerformanceMetricsCallback, SceneReloadCallback
from estragon.trainers.sb3.settings import Sb3Hyperparameters, Sb3Settings
from estragon.trainers.sb3.training import Additions, open_games, resumed
from estragon.trainers.sb3.training import train as train_sb3
from estragon.trainers.settings import note

HELD_OUT_SEED = 1_000_000_007
"""Added to the seed for episodes that are never trained on."""


@dataclasses.dataclass(frozen=True)
class Navigation:
    """A configuration with what it does not say."""

    config: RLConfig
    calculator: type[RewardCalculator] | None = None
    """A subclass of `RewardCalculator`; None: the game calculates the same rewards, faster."""
    launch: bool = True
    """Start the games; else one that runs is used, over HTTP with the token in API_TOKEN."""
    window: bool = False
    """Show the games."""

    @property
    def output(self) -> Path:
        """The real folder of `training.output_dir`."""
        return resolve(self.config.training.output_dir)

    @property
    def _best_path(self) -> Path:
        return self.output / "best_models" / "best_model.zip"

    def train(self, resume: Path | None = None, onnx: Path | None = None) -> int:
        """Train; 0 finished or asked to stop, 1 failed, 130 interrupted.

        Args:
            resume: a checkpoint to continue from.
            onnx: where to write the final policy for games.
        """
        settings = dataclasses.replace(self._settings(), onnx_export_path=onnx)
        if resume is not None:
            settings = resumed(settings, resolve(resume))
        note(f"checkpoints, best_models and logs are in {self.output}")
        additions = Additions(
            resume_flag="--resume",
            wrap=self._wrap,
            callbacks=self._callbacks,
            checkpoint_path=lambda steps: (
                self.output / "checkpoints" / f"vr_nav_model_{steps}_steps.zip"
            ),
        )
        code = train_sb3(settings, additions=additions)
        if self._best_path.exists():
            note(f"evaluate the best model with --eval {self._best_path}")
        return code

    def evaluate(
        self, model: Path | None, episodes: int, *, deterministic: bool = True
    ) -> Episodes:
        """Let a model, or random actions, play held-out episodes over the full range."""
        source = None if model is None else ModelFile(resolve(model))
        settings = dataclasses.replace(self._settings(), inference=True, normalize=False)
        with contextlib.closing(self._open_held_out()) as games:
            games.seed(self._held_out_seed)
            if source is None:
                return play_episodes(RandomModel(games, self._held_out_seed), games, episodes)
            learner = Sb3Adapter.resumed(settings, source, games)
            return play_episodes(
                learner.model, frozen(learner), episodes, deterministic=deterministic
            )

    @property
    def _held_out_seed(self) -> int:
        return self.config.training.seed + HELD_OUT_SEED

    def _settings(self) -> Sb3Settings:
        config = self.config
        config.check()
        network, environment, training = config.network, config.environment, config.training
        has_memory = network.policy == "MlpLstmPolicy"
        hyperparameters = dataclasses.asdict(config.ppo)
        if not has_memory:
            del hyperparameters["lstm_hidden_size"]
        return Sb3Settings(
            env_path=str(paths.godot_project()) if self.launch else None,
            scene=environment.scene_path if self.launch else None,
            viz=self.window,
            wire="http" if environment.wire == "http" or not self.launch else "tcp",
            port=environment.port if environment.wire == "http" or not self.launch else None,
            arguments={
                "parameter.rigs": config.rigs,
                "parameter.actions": config.actions.type,
                "parameter.task": environment.tasks[0],
            },
            inline_parameters=config.parameters(),
            policy_type="lstm" if has_memory else "mlp",
            policy_layers=tuple(network.net_arch),
            activation=network.activation_fn,
            timesteps=training.total_timesteps,
            n_parallel=training.num_workers,
            experiment_dir=self.output / "logs",
            experiment_name="PPO",
            seed=training.seed,
            save_checkpoint_frequency=training.save_freq,
            normalize=config.observations.normalize,
            hyperparameters=Sb3Hyperparameters(**hyperparameters),
        )

    def _wrap(self, games: VecEnv) -> VecEnv:
        config = self.config
        tasks = config.environment.tasks if config.observations.task_id else None
        own = self.calculator
        make = None if own is None else lambda: own(config.rewards, config.actions)
        return NavigationRewards(games, make, tasks) if make or tasks else games

    def _callbacks(self, learner: Sb3Adapter) -> Sequence[BaseCallback]:
        training = self.config.training
        callbacks: list[BaseCallback] = [PerformanceMetricsCallback()]
        if training.eval_freq:
            callbacks.append(
                EvaluationCallback(
                    learner,
                    self._open_held_out if self.launch else None,
                    self._best_path,
                    every=training.eval_freq,
                    episodes=training.eval_episodes,
                    seed=self._held_out_seed,
                    enough=training.stop_at_success,
                )
            )
        if training.scene_reload_freq:
            callbacks.append(SceneReloadCallback(training.scene_reload_freq))
        return callbacks

    def _open_held_out(self) -> VecMonitor:
        """One more game, with the same rigs."""
        changes: dict[str, Any] = {"n_parallel": 1, "seed": self._held_out_seed % 2**31}
        if self.launch:
            changes["port"] = None
        settings = dataclasses.replace(self._settings(), **changes)
        plan = Plan.parse(self.config.parameters(full_range=True))
        return open_games(settings, None, plan=plan, wrap=self._wrap)
