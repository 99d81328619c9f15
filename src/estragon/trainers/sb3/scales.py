"""Observations and rewards brought to a common size, and that size kept with a model."""

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from estragon.support.errors import UserError

if TYPE_CHECKING:
    from stable_baselines3.common.running_mean_std import RunningMeanStd
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize

REWARD = "reward"
PARTS = ("mean", "var", "count")


def scaled(env: "VecEnv", gamma: float) -> "VecNormalize":
    """Numbers an agent sees, and rewards, divided by how much they vary."""
    from stable_baselines3.common.vec_env import VecNormalize

    seen = env.observation_space
    parts = seen.spaces if isinstance(seen, spaces.Dict) else {}
    keys = [
        key
        for key, part in parts.items()
        if isinstance(part, spaces.Box) and part.dtype == np.float32
    ]
    if not keys:
        return VecNormalize(env, norm_obs=False, gamma=gamma)
    return VecNormalize(env, gamma=gamma, norm_obs_keys=keys)


def read_scales(env: "VecNormalize") -> dict[str, np.ndarray]:
    """Its means and variances, by name."""
    found = {
        f"{name}/{part}": np.asarray(getattr(statistics, part))
        for name, statistics in _statistics(env).items()
        for part in PARTS
    }
    return found | {"epsilon": np.asarray(env.epsilon), "clip": np.asarray(env.clip_obs)}


def write_scales(env: "VecNormalize", scales: dict[str, np.ndarray]) -> None:
    """Give it those of a saved model."""
    for name, statistics in _statistics(env).items():
        for part in PARTS:
            value = scales.get(f"{name}/{part}")
            if value is None or np.shape(value) != np.shape(getattr(statistics, part)):
                raise UserError(f"the scales saved with the model do not fit '{name}' of this game")
            setattr(statistics, part, float(value) if part == "count" else value.copy())


def _statistics(env: "VecNormalize") -> "dict[str, RunningMeanStd]":
    seen: Any = env.obs_rms if env.norm_obs else {}
    return {f"obs/{key}": each for key, each in seen.items()} | {REWARD: env.ret_rms}
