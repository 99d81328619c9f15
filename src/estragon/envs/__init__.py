"""Any Godot game as an environment, under the names that libraries know.

Importing this registers the tag environments with Gymnasium; what a name needs beyond the core
install is imported when the name is used.
"""

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

from estragon.support.errors import UserError

if TYPE_CHECKING:
    from estragon.envs.multi_agent_env import GodotMultiAgentEnv
    from estragon.envs.parallel_env import GodotParallelEnv
    from estragon.envs.policies import policy_of
    from estragon.envs.sb3_env import GodotVecEnv
    from estragon.envs.single_env import GodotSingleEnv
    from estragon.envs.vector_env import GodotEnv

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
    """Import one of the environments on first use."""
    if name not in NAMES:
        raise AttributeError(f"module 'estragon.envs' has no attribute '{name}'")
    module, extra = NAMES[name]
    try:
        return getattr(importlib.import_module(f"estragon.envs.{module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("estragon"):
            raise
        raise UserError(f"{name} needs {error.name}: pip install 'estragon[{extra}]'") from error


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
