"""`estragon train sb3`: start the games, create or load the model, then train it or let it play."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sb3_contrib
import stable_baselines3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from estragon.envs.sb3_env import GodotVecEnv
from estragon.support.errors import UserError
from estragon.support.parameters import Plan, Rule
from estragon.trainers import run as run_loop
from estragon.trainers.controller import Controller
from estragon.trainers.curriculum import FEED, PLAN, RunCurriculum
from estragon.trainers.metrics import EndedEpisode, Episodes
from estragon.trainers.run import GAME_LOGS, Run, StopLimits, describe_run, new_run_folder
from estragon.trainers.sb3.algorithms import choose
from estragon.trainers.sb3.imitation import clone, read_demos
from estragon.trainers.sb3.learner import Sb3Adapter, parameter_feed, policy_names
from estragon.trainers.sb3.model_file import ModelFile
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.settings import choose_device, note, use_one_thread
from estragon.trainers.spaces import to_plain

SEEDS = 2**31


@dataclasses.dataclass(frozen=True)
class Additions:
    """What a program adds to a run, besides the options."""

    rule: Rule | None = None
    """Decides which lesson of a curriculum is taught."""
    wrap: Callable[[VecEnv], VecEnv] | None = None
    """Put around the games, below the monitor that counts rewards."""
    callbacks: Callable[[Sb3Adapter], Sequence[BaseCallback]] = lambda _: ()
    """Further callbacks of the learner."""
    checkpoint_path: Callable[[int], Path] | None = None
    """From the number of steps, where a checkpoint is written."""
    resume_flag: str = "--resume_model_path"
    """The option that resumes a model."""


def train(
    settings: Sb3Settings, rule: Rule | None = None, additions: Additions | None = None
) -> int:
    """Train; 0 finished or asked to stop, 1 failed, 130 interrupted.

    A rule decides which lesson of a curriculum is taught.
    """
    added = additions or Additions(rule=rule)
    rule = added.rule
    source = None
    if settings.resume_model_path is not None:
        source = ModelFile(settings.resume_model_path, settings.algo, trust=settings.trust)
    algorithm = source.algorithm if source else choose(settings.algo, settings.policy_type)
    images = settings.policy_type == "cnn"
    choose_device(settings.device, images=images)
    if not images:
        use_one_thread()
    curriculum = _curriculum(settings, source, rule)
    plan = None if curriculum is None else curriculum.plan
    steps = source.steps if source else 0
    controller, name = Controller(), settings.experiment_name
    with (
        new_run_folder(settings.experiment_dir, name, controller) as folder,
        contextlib.closing(
            open_games(settings, folder / GAME_LOGS, steps, plan, added.wrap)
        ) as games,
    ):
        if curriculum is not None:
            _begin_lesson(curriculum, games, source)
        if source is None:
            learner = Sb3Adapter.new(settings, algorithm, games)
        else:
            learner = Sb3Adapter.resumed(settings, source, games)
        learner.curriculum = curriculum
        learner.checkpoint_path = added.checkpoint_path
        learner.resume_flag = added.resume_flag
        learner.callbacks = tuple(added.callbacks(learner))
        _print_start(learner, folder)
        if settings.demos is not None:
            sees: Any = games.observation_space
            demos = read_demos(settings.demos, sees, games.action_space)
            cloned = clone(learner, demos, settings.demo_rounds, settings.seed)
            note(f"demonstrations: {cloned}")
        versions = {
            "stable_baselines3": stable_baselines3.__version__,
            "sb3_contrib": sb3_contrib.__version__,
        }
        about = describe_run("sb3", settings, folder, versions) | {
            "algorithm": algorithm.name,
            "agents": games.num_envs,
            "policies": sorted(set(policy_names(games))),
            "observation_space": to_plain(games.observation_space),
            "action_space": to_plain(games.action_space),
        }
        limits = StopLimits(timesteps=settings.timesteps)
        return Run(
            learner, folder, controller, name, limits=limits, about=about, curriculum=curriculum
        ).execute()


def resumed(settings: Sb3Settings, checkpoint: Path) -> Sb3Settings:
    """The settings that continue a checkpoint until all `timesteps` are done."""
    left = settings.timesteps - ModelFile(checkpoint).steps
    if left <= 0:
        raise UserError(
            f"{checkpoint} has all {settings.timesteps:,} steps; --timesteps asks for more"
        )
    return dataclasses.replace(settings, resume_model_path=checkpoint, timesteps=left)


def play(settings: Sb3Settings, model_path: Path) -> int:
    """Let a model act deterministically for `timesteps` of all agents, and print the rewards."""
    source = ModelFile(model_path, settings.algo, trust=settings.trust)
    controller = Controller()
    controller.clear_stop()
    episodes = Episodes()
    plan = settings.parameter_plan()
    with contextlib.closing(open_games(settings, None, source.steps, plan)) as games:
        if plan is not None:
            lesson = RunCurriculum(plan, saved=source.parameters).lesson
            parameter_feed(games).set_lesson(lesson)
        learner = Sb3Adapter.resumed(settings, source, games)
        player = Sb3Player(learner)

        def step() -> int:
            for ended in player.step():
                episodes.add(*ended)
            return player.num_agents

        run_loop.play(settings.timesteps, step, controller)
        if settings.onnx_export_path is not None:
            print(f"onnx saved to {learner.export_onnx(settings.onnx_export_path)}")
    print(episodes.summary())
    return 0


class Sb3Player:
    """A model that acts deterministically in its games."""

    def __init__(self, learner: Sb3Adapter) -> None:
        if learner.normalizer is not None:
            learner.normalizer.training = False
        self._model: Any = learner.model
        self._env, self._masked = learner.env, learner.supports_masks
        self.num_agents = self._env.num_envs
        self._observations: Any = self._env.reset()
        self._lstm_states: Any = None
        self._dones = np.ones(self.num_agents, bool)

    def step(self) -> list[EndedEpisode]:
        """One step of all agents; returns the episodes that ended."""
        more: dict[str, Any] = {}
        if self._masked:
            more["action_masks"] = np.stack(self._env.env_method("action_masks"))
        actions, self._lstm_states = self._model.predict(
            self._observations, self._lstm_states, self._dones, deterministic=True, **more
        )
        self._observations, _, self._dones, infos = self._env.step(actions)
        return ended_episodes(self._dones, infos)


def ended_episodes(dones: np.ndarray, infos: list[dict[str, Any]]) -> list[EndedEpisode]:
    """Reward, length and last info of the episodes that ended in a step, from `VecMonitor`.

    `episode` of the info also says which agent played it.
    """
    ended: list[EndedEpisode] = []
    for agent in dones.nonzero()[0].tolist():
        episode = infos[agent]["episode"]
        episode["agent"] = str(agent)
        ended.append((float(episode["r"]), episode["l"], infos[agent]))
    return ended


def open_games(
    settings: Sb3Settings,
    logs: Path | None,
    steps_before: int = 0,
    plan: Plan | None = None,
    wrap: Callable[[VecEnv], VecEnv] | None = None,
) -> VecMonitor:
    """Start the games; a resumed run plays other episodes than before."""
    games = GodotVecEnv(
        **settings.game_options(),
        n_parallel=settings.n_parallel,
        seed=(settings.seed + steps_before) % SEEDS,
        log_folder=logs,
        parameters=plan,
    )
    try:
        return VecMonitor(wrap(games) if wrap else games)
    except BaseException:
        games.close()
        raise


def _curriculum(
    settings: Sb3Settings, source: ModelFile | None, rule: Rule | None
) -> RunCurriculum | None:
    """Of the options, or else of the model that is resumed."""
    saved, steps = (source.parameters, source.steps) if source else (None, 0)
    plan = settings.parameter_plan(saved and saved[PLAN], rule=rule)
    return None if plan is None else RunCurriculum(plan, rule, saved, steps)


def _begin_lesson(curriculum: RunCurriculum, games: VecMonitor, source: ModelFile | None) -> None:
    """Continue the draws of a resumed model, and check the criteria against the game's infos."""
    feed = parameter_feed(games)
    if source is not None and source.parameters is not None:
        feed.restore(source.parameters[FEED])
    feed.set_lesson(curriculum.lesson)
    if curriculum.needs_infos:
        kept = feed.save()
        games.reset()
        infos: Any = games.unwrapped.reset_infos
        curriculum.check_infos(infos[0])
        feed.restore(kept)


def _print_start(learner: Sb3Adapter, folder: Path) -> None:
    settings, algorithm, model = learner.settings, learner.algorithm, learner.model
    if unused := sorted(set(settings.hyperparameters.given()) - algorithm.hyperparameters):
        note(f"not used by {algorithm.name}: {', '.join(unused)}")
    agents = model.n_envs
    resumed = f", resuming at {model.num_timesteps:,} steps" if learner.is_resumed else ""
    note(
        f"{folder}: {algorithm.name} on {model.device}, {agents} agents in "
        f"{settings.n_parallel} games, {settings.timesteps:,} steps{resumed}"
    )
    rollout_steps = getattr(model, "n_steps", 0) * agents
    if not algorithm.is_off_policy and rollout_steps > settings.timesteps // 4:
        note(
            f"one update per {rollout_steps:,} steps (n_steps {rollout_steps // agents} of "
            f"{agents} agents); lower --n_steps to update more often"
        )
