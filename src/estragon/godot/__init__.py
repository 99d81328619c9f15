"""The engine as a program: find or install Godot 4, start it, supervise it, import a project."""

from typing import Any

ENVIRONMENTS = (
    "GodotEnv",
    "GodotMultiAgentEnv",
    "GodotParallelEnv",
    "GodotSingleEnv",
    "GodotVecEnv",
    "policy_of",
)


def __getattr__(name: str) -> Any:
    """The environments of `estragon.envs`, under the path that earlier versions documented."""
    if name not in ENVIRONMENTS:
        raise AttributeError(f"module 'estragon.godot' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module("estragon.envs"), name)
