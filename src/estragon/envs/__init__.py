"""Any Godot game as an environment of Gymnasium, Stable-Baselines3, PettingZoo or RLlib.

Importing this registers the tag environments with Gymnasium. The environments are imported when
they are used: each needs the library it is for.
"""

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estragon.envs.gymnasium_env import GodotEnv, GodotSingleEnv
    from estragon.envs.pettingzoo_env import GodotParallelEnv, policy_of
    from estragon.envs.rllib_env import GodotMultiAgentEnv
    from estragon.envs.sb3_env import GodotVecEnv

MODULES = {
    "GodotEnv": "gymnasium_env",
    "GodotMultiAgentEnv": "rllib_env",
    "GodotParallelEnv": "pettingzoo_env",
    "GodotSingleEnv": "gymnasium_env",
    "GodotVecEnv": "sb3_env",
    "policy_of": "pettingzoo_env",
}
__all__ = [
    "GodotEnv",
    "GodotMultiAgentEnv",
    "GodotParallelEnv",
    "GodotSingleEnv",
    "GodotVecEnv",
    "policy_of",
]


def __getattr__(name: str) -> Any:
    """Import an environment on first use."""
    if name not in MODULES:
        raise AttributeError(f"module 'estragon.envs' has no attribute '{name}'")
    return getattr(importlib.import_module(f"estragon.envs.{MODULES[name]}"), name)


def _register_tag() -> None:
    """Make `gymnasium.make("Estragon/TagSeeker-v0")` and `make_vec` work."""
    import gymnasium

    for role in ("seeker", "hider"):
        gymnasium.register(
            id=f"Estragon/Tag{role.title()}-v0",
            entry_point="estragon.tag.gym_env:TagEnv",
            vector_entry_point="estragon.tag.gym_env:TagVectorEnv",
            kwargs={"role": role},
        )


with contextlib.suppress(ModuleNotFoundError):  # the core install has no Gymnasium
    _register_tag()
