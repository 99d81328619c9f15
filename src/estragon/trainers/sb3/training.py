"""`estragon train sb3`: start the games, create or resume the model, and run it."""

import contextlib
import sys
from typing import Any

import sb3_contrib
import stable_baselines3

from estragon.support.runs import RunFolder
from estragon.trainers.controller import Controller
from estragon.trainers.demos import read_demos
from estragon.trainers.run import GAME_LOGS, Limits, Run, describe_run, new_run_folder
from estragon.trainers.sb3.algorithms import choose
from estragon.trainers.sb3.cloning import clone
from estragon.trainers.sb3.games import open_games, policies_of
from estragon.trainers.sb3.learner import Learner
from estragon.trainers.sb3.model_file import ModelFile
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.settings import choose_device, use_one_thread
from estragon.trainers.spaces import to_plain


def train(settings: Sb3Settings) -> int:
    """Train; 0 finished or asked to stop, 1 failed, 130 interrupted."""
    source = None
    if settings.resume_model_path is not None:
        source = ModelFile(settings.resume_model_path, settings.algo)
    algorithm = source.algorithm if source else choose(settings.algo, settings.policy_type)
    images = settings.policy_type == "cnn"
    choose_device(settings.device, images=images)
    if not images:
        use_one_thread()
    controller, name = Controller(), settings.experiment_name
    with (
        new_run_folder(settings.experiment_dir, name, controller) as folder,
        contextlib.closing(
            open_games(settings, folder.path / GAME_LOGS, source.steps if source else 0)
        ) as games,
    ):
        if source is None:
            learner = Learner.new(settings, algorithm, games)
        else:
            learner = Learner.resumed(settings, source, games)
        _print_start(learner, folder)
        if settings.demos is not None:
            sees: Any = games.observation_space
            demos = read_demos(settings.demos, sees, games.action_space)
            cloned = clone(learner, demos, settings.demo_rounds, settings.seed)
            print(f"demonstrations: {cloned}", file=sys.stderr, flush=True)
        versions = {
            "stable_baselines3": stable_baselines3.__version__,
            "sb3_contrib": sb3_contrib.__version__,
        }
        about = describe_run("sb3", settings, folder, versions) | {
            "algorithm": algorithm.name,
            "agents": games.num_envs,
            "policies": sorted(set(policies_of(games))),
            "observation_space": to_plain(games.observation_space),
            "action_space": to_plain(games.action_space),
        }
        limits = Limits(timesteps=settings.timesteps)
        return Run(learner, folder, controller, name, limits=limits, about=about).execute()


def _print_start(learner: Learner, folder: RunFolder) -> None:
    settings, algorithm, model = learner.settings, learner.algorithm, learner.model
    if unused := sorted(set(settings.hyperparameters.given()) - algorithm.takes):
        print(f"not used by {algorithm.name}: {', '.join(unused)}", file=sys.stderr)
    agents = model.n_envs
    resumed = f", resuming at {model.num_timesteps:,} steps" if learner.is_resumed else ""
    print(
        f"{folder.path}: {algorithm.name} on {model.device}, {agents} agents in "
        f"{settings.n_parallel} games, {settings.timesteps:,} steps{resumed}",
        file=sys.stderr,
        flush=True,
    )
    rollout_steps = getattr(model, "n_steps", 0) * agents
    if not algorithm.learns_from_replay and rollout_steps > settings.timesteps // 4:
        print(
            f"one update per {rollout_steps:,} steps (n_steps {rollout_steps // agents} of "
            f"{agents} agents); lower --n_steps to update more often",
            file=sys.stderr,
        )
