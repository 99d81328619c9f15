"""`estragon train sb3`: start the games, create or load the model, then train it or let it play."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import sb3_contrib
import stable_baselines3
from stable_baselines3.common.vec_env import VecMonitor

from estragon.envs.sb3_env import GodotVecEnv
from estragon.trainers import run as run_loop
from estragon.trainers.controller import Controller
from estragon.trainers.metrics import Episodes
from estragon.trainers.run import GAME_LOGS, Run, StopLimits, describe_run, new_run_folder
from estragon.trainers.sb3.algorithms import choose
from estragon.trainers.sb3.imitation import clone, read_demos
from estragon.trainers.sb3.learner import Sb3Adapter, policy_names
from estragon.trainers.sb3.model_file import ModelFile
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.settings import choose_device, note, use_one_thread
from estragon.trainers.spaces import to_plain

SEEDS = 2**31


def train(settings: Sb3Settings) -> int:
    """Train; 0 finished or asked to stop, 1 failed, 130 interrupted."""
    source = None
    if settings.resume_model_path is not None:
        source = ModelFile(settings.resume_model_path, settings.algo, trust=settings.trust)
    algorithm = source.algorithm if source else choose(settings.algo, settings.policy_type)
    images = settings.policy_type == "cnn"
    choose_device(settings.device, images=images)
    if not images:
        use_one_thread()
    controller, name = Controller(), settings.experiment_name
    with (
        new_run_folder(settings.experiment_dir, name, controller) as folder,
        contextlib.closing(
            open_games(settings, folder / GAME_LOGS, source.steps if source else 0)
        ) as games,
    ):
        if source is None:
            learner = Sb3Adapter.new(settings, algorithm, games)
        else:
            learner = Sb3Adapter.resumed(settings, source, games)
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
        return Run(learner, folder, controller, name, limits=limits, about=about).execute()


def play(settings: Sb3Settings, model_path: Path) -> int:
    """Let a model act deterministically for `timesteps` of all agents, and print the rewards."""
    source = ModelFile(model_path, settings.algo, trust=settings.trust)
    controller = Controller()
    controller.clear_stop()
    episodes = Episodes()
    with contextlib.closing(open_games(settings, None, source.steps)) as games:
        learner = Sb3Adapter.resumed(settings, source, games)
        if learner.normalizer is not None:
            learner.normalizer.training = False
        model: Any = learner.model
        env, masked = learner.env, learner.supports_masks
        observations: Any = env.reset()
        lstm_states: Any = None
        dones = np.ones(env.num_envs, bool)

        def step() -> int:
            nonlocal observations, lstm_states, dones
            more: dict[str, Any] = {}
            if masked:
                more["action_masks"] = np.stack(env.env_method("action_masks"))
            actions, lstm_states = model.predict(
                observations, lstm_states, dones, deterministic=True, **more
            )
            observations, _, dones, infos = env.step(actions)
            for agent in dones.nonzero()[0]:
                episode = infos[agent]["episode"]
                episodes.add(episode["r"], episode["l"], infos[agent])
            return env.num_envs

        run_loop.play(settings.timesteps, step, controller)
        if settings.onnx_export_path is not None:
            print(f"onnx saved to {learner.export_onnx(settings.onnx_export_path)}")
    print(episodes.summary())
    return 0


def open_games(settings: Sb3Settings, logs: Path | None, steps_before: int = 0) -> VecMonitor:
    """Start the games; a resumed run plays other episodes than before."""
    return VecMonitor(
        GodotVecEnv(
            **settings.game_options(),
            n_parallel=settings.n_parallel,
            seed=(settings.seed + steps_before) % SEEDS,
            log_folder=logs,
        )
    )


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
