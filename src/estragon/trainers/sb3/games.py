"""The games a model learns in or plays, as Stable-Baselines3 wants them."""

from pathlib import Path
from typing import TYPE_CHECKING

from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from estragon.envs.sb3_env import GodotVecEnv

if TYPE_CHECKING:
    from estragon.trainers.sb3.settings import Sb3Settings

SEEDS = 2**31


def open_games(options: "Sb3Settings", logs: Path | None, steps_before: int = 0) -> VecMonitor:
    """Start them; after a resume they play other episodes than before."""
    return VecMonitor(
        GodotVecEnv(
            options.env_path,
            scene=options.scene,
            n_parallel=options.n_parallel,
            seed=(options.seed + steps_before) % SEEDS,
            port=options.port,
            speedup=options.speedup,
            action_repeat=options.action_repeat,
            show_window=options.viz,
            start_timeout_sec=options.start_timeout,
            step_timeout_sec=options.step_timeout,
            strict_import=options.strict_import,
            log_folder=logs,
        )
    )


def policies_of(games: VecEnv) -> list[str]:
    """The policy's name of every agent."""
    names: list[str] = games.get_attr("agent_policy_names", [0])[0]
    return names
