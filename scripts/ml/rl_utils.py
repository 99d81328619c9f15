"""What trainings of VR navigation are made of: client, rewards, preprocessing, monitoring."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from estragon.spacetime.client import GodotAPIClient
from estragon.spacetime.observation import ActionSmoother, normalize, to_fields, to_vector
from estragon.spacetime.rewards import RewardCalculator

if TYPE_CHECKING:
    from estragon.trainers.sb3.navigation import Navigation
    from estragon.trainers.sb3.scene_callbacks import (
        PerformanceMetricsCallback,
        SceneReloadCallback,
    )

CALLBACKS = ("PerformanceMetricsCallback", "SceneReloadCallback")
__all__ = [
    "ActionSmoother",
    "GodotAPIClient",
    "Navigation",
    "PerformanceMetricsCallback",
    "RewardCalculator",
    "SceneReloadCallback",
    "normalize",
    "to_fields",
    "to_vector",
]


def __getattr__(name: str) -> Any:
    """Import what needs Stable-Baselines3 on first use."""
    if name in CALLBACKS:
        from estragon.trainers.sb3 import scene_callbacks

        return getattr(scene_callbacks, name)
    if name == "Navigation":
        from estragon.trainers.sb3.navigation import Navigation

        return Navigation
    raise AttributeError(f"module 'rl_utils' has no attribute '{name}'")
