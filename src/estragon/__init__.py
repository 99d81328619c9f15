"""Train, watch, test and ship game-playing agents for Godot 4, from Python."""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`from estragon import paths`, as documented for users."""
    if name == "paths":
        from estragon.support import paths

        return paths
    raise AttributeError(f"module 'estragon' has no attribute '{name}'")
