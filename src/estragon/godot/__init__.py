"""The real engine: finding or installing Godot 4, starting it, and never losing sight of it.

And any game of it as an environment, under the names that libraries know; what a name needs beyond
the core install is imported when the name is.
"""

import importlib
from typing import TYPE_CHECKING, Any

from estragon.errors import UserError

if TYPE_CHECKING:
    from estragon.godot.rl.multi_agent_env import GodotMultiAgentEnv
    from estragon.godot.rl.parallel_env import GodotParallelEnv
    from estragon.godot.rl.policies import policy_of
    from estragon.godot.rl.sb3_env import GodotVecEnv
    from estragon.godot.rl.single_env import GodotSingleEnv
    from estragon.godot.rl.vector_env import GodotEnv

NAMES = {
    "GodotEnv": ("vector_env", "train"),
    "GodotMultiAgentEnv": ("multi_agent_env", "rllib"),
    "GodotParallelEnv": ("parallel_env", "train"),
    "GodotSingleEnv": ("single_env", "train"),
    "GodotVecEnv": ("sb3_env", "sb3"),
    "policy_of": ("policies", "train"),
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
    """One of the environments, imported now."""
    if name not in NAMES:
        raise AttributeError(f"module 'estragon.godot' has no attribute '{name}'")
    module, extra = NAMES[name]
    try:
        return getattr(importlib.import_module(f"estragon.godot.rl.{module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("estragon"):
            raise
        raise UserError(f"{name} needs {error.name}: pip install 'estragon[{extra}]'") from error
