"""Evaluation during a run: held-out episodes in games of their own; the best model is kept."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json
from estragon.trainers.metrics import Episodes
from estragon.trainers.players import random_actions
from estragon.trainers.sb3 import model_file
from estragon.trainers.sb3.learner import Sb3Adapter
from estragon.trainers.sb3.model_file import ModelFile
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.sb3.training import open_games
from estragon.trainers.settings import use_one_thread


def play_episodes(
    model: "BaseAlgorithm | RandomModel", env: VecEnv, episodes: int, *, deterministic: bool = True
) -> Episodes:
    """Let a model play; every agent plays its share, or short episodes would count more."""
    targets = np.array([(episodes + agent) // env.num_envs for agent in range(env.num_envs)])
    played = np.zeros(env.num_envs, int)
    found = Episodes()
    observed: Any = env.reset()
    state: Any = None
    begins = np.ones(env.num_envs, bool)
    while (played < targets).any():
        actions, state = model.predict(observed, state, begins, deterministic)
        observed, _, begins, infos = env.step(actions)
        for agent in begins.nonzero()[0]:
            info = infos[agent]
            if played[agent] < targets[agent] and "game_lost" not in info:
                played[agent] += 1
                found.add(float(info["episode"]["r"]), info["episode"]["l"], info)
    return found


@dataclasses.dataclass(frozen=True)
class Player:
    """A model, or chance, and the games that it plays in."""

    model: Any
    env: VecEnv

    def act(self, observed: Any) -> np.ndarray:
        """The actions of all agents, deterministically; without a memory."""
        actions: np.ndarray = self.model.predict(observed, deterministic=True)[0]
        return actions


class RandomModel:
    """Acts at random."""

    def __init__(self, env: VecMonitor, seed: int) -> None:
        self._act, self._env = random_actions(env, seed), env

    def predict(self, *_: Any, **__: Any) -> tuple[np.ndarray, None]:
        """As a model does."""
        return self._act({}, self._env.action_space, np.ones(self._env.num_envs, bool)), None


@contextlib.contextmanager
def opened(settings: Sb3Settings, path: Path | None) -> Iterator[Player]:
    """Start the games of the settings, with a model to play in them; None: random actions."""
    source = None if path is None else ModelFile(path, settings.algo, trust=settings.trust)
    use_one_thread()
    with contextlib.closing(open_games(settings, None)) as games:
        if source is None:
            yield Player(RandomModel(games, settings.seed), games)
        else:
            learner = Sb3Adapter.resumed(settings, source, games)
            yield Player(learner.model, frozen(learner))


def play_model(
    settings: Sb3Settings, path: Path | None, episodes: int, *, deterministic: bool = True
) -> Episodes:
    """Start the games of the settings, and let a model play in them; None: random actions."""
    with opened(settings, path) as player:
        return play_episodes(player.model, player.env, episodes, deterministic=deterministic)


def frozen(learner: Sb3Adapter) -> VecEnv:
    """A model's own games, without learning how to normalize them."""
    if learner.normalizer is not None:
        learner.normalizer.training = False
    return learner.env


def with_normalization_of(learner: Sb3Adapter, games: VecMonitor) -> VecEnv:
    """Other games as the model sees its own."""
    if learner.normalizer is None:
        return games
    env = model_file.normalized(games, learner.normalizer.gamma, None)
    env.obs_rms, env.training, env.norm_reward = learner.normalizer.obs_rms, False, False
    return env


class EvaluationCallback(BaseCallback):
    """Plays every so many steps and at the end, and keeps the model with the best mean reward.

    Args:
        learner: whose model is evaluated.
        open_games: starts the games, at the first evaluation; None: the rewards of the training
            are compared instead.
        best_path: where the best model is written, with what it reached beside it.
        every: steps between evaluations.
        episodes: per evaluation, always the same ones.
        enough: share of successes at which the training stops; 0: never.
    """

    def __init__(
        self,
        learner: Sb3Adapter,
        open_games: Callable[[], VecMonitor] | None,
        best_path: Path,
        *,
        every: int,
        episodes: int,
        seed: int,
        enough: float = 0.0,
    ) -> None:
        super().__init__()
        self._enough, self._has_enough = enough, False
        self._learner, self._open, self._path = learner, open_games, best_path
        self._every, self._episodes, self._seed = every, episodes, seed
        self._games: VecMonitor | None = None
        self._done_at = learner.model.num_timesteps
        self._best = -math.inf
        if learner.is_resumed:
            with contextlib.suppress(UserError):
                self._best = read_json(self._record, dict[str, float])["reward_mean"]

    @property
    def _record(self) -> Path:
        return self._path.with_suffix(".json")

    def _on_step(self) -> bool:
        return not self._has_enough

    def _on_rollout_start(self) -> None:
        if self.num_timesteps - self._done_at >= self._every:
            self._evaluate()

    def _on_training_end(self) -> None:
        try:
            if self.num_timesteps > self._done_at and not self._has_enough:
                self._evaluate()
        finally:
            if self._games is not None:
                self._games.close()

    def _evaluate(self) -> None:
        self._done_at = self.num_timesteps
        found = self._recent() if self._open is None else self._play(self._open)
        if not found:
            return
        for name, value in {"mean_reward": found.reward_mean, **found.custom_means()}.items():
            self.logger.record(f"eval/{name}", value)
        success = found.custom_means().get("success", 0.0)
        self._has_enough = 0.0 < self._enough <= success
        is_best = found.reward_mean > self._best
        mark = ", the best so far" if is_best else ""
        print(f"evaluation at {self.num_timesteps:,} steps: {found.summary()}{mark}", flush=True)
        if is_best:
            self._best = found.reward_mean
            self._learner.write(self._path, for_games=True)
            told = {"reward_mean": self._best, "timesteps": self.num_timesteps}
            write_json(self._record, told | found.custom_means())
        if self._has_enough:
            print(f"stopping: {success:.0%} of these episodes are successes", flush=True)

    def _play(self, open_games: Callable[[], VecMonitor]) -> Episodes:
        if self._games is None:
            self._games = open_games()
        self._games.seed(self._seed)
        env = with_normalization_of(self._learner, self._games)
        return play_episodes(self._learner.model, env, self._episodes)

    def _recent(self) -> Episodes:
        found = Episodes()
        for episode in self.model.ep_info_buffer or ():
            found.add(float(episode["r"]), episode["l"], {})
        return found
