"""SpaceTime's scenes and how each is trained: the presets of `estragon train scene`.

Imports no training library, so that `--help` works without one.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from estragon.spacetime.config import SCENE

SceneName = Literal[
    "vr_locomotion",
    "spacecraft_landing",
    "multi_agent_vr",
    "voxel_stress",
    "physics_stress",
    "ui_interaction",
]
FEATURES = "res://scenes/features/"
MOST_ISLANDS = 64
"""As in `feature_scene.gd`."""


@dataclasses.dataclass(frozen=True)
class ScenePreset:
    """How a scene is trained with PPO."""

    scene: str
    timesteps: int
    """Steps of all agents together."""
    num_envs: int
    """Islands in one game; each has one agent, or several."""
    task: str | None = None
    """The scene's parameter `task`."""
    rollout: int = 2048
    """Steps of all islands between two updates, whatever their number."""
    normalize: bool = True
    policy_layers: tuple[int, ...] = (64, 64)
    linear_lr_schedule: bool = False
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    plan: dict[str, Any] | None = None
    """Parameters and a curriculum, in the form of a parameter file."""


def _landing(
    name: str, low: float, high: float, across: float, max_sec: float, **until: Any
) -> dict[str, Any]:
    """A lesson that starts between two heights, so many metres beside the pad."""
    start = {"start_min_m": low, "start_max_m": high, "start_offset_m": across}
    start |= {"start_speed_mps": min(across / 10, 10), "max_sec": max_sec}
    return {"name": name, "parameters": start} | ({"until": until} if until else {})


LANDED: dict[str, Any] = {"success_rate": 0.6, "key": "soft_landing", "window": 60}
LANDING_LESSONS = [
    # From so low hardly anything crashes, so that flying away is not the first thing learned.
    _landing("touchdown", 3, 12, 3, 15, **LANDED),
    _landing("low", 10, 50, 12, 30, **LANDED),
    _landing("middle", 50, 250, 70, 60, **LANDED),
    _landing("full", 500, 1000, 200, 100),
]
PRESETS: dict[SceneName, ScenePreset] = {
    "vr_locomotion": ScenePreset(
        SCENE,
        100_000,
        4,
        task="course",
        rollout=4096,
        linear_lr_schedule=True,
        hyperparameters={
            "batch_size": 512,
            "learning_rate": 1e-3,
            # The less a second counts, the more patient the walk; with 0.9999, standing still costs
            # nothing.
            "gamma": 0.9995,
            "ent_coef": 0.0,
            # The policy must try its buttons, and in the end do without noise: with noise it would
            # learn to press them by chance.
            "log_std_init": 0.0,
            "log_std_final": -2.5,
            # The less noise, the more a step of the optimizer changes.
            "target_kl": 0.02,
        },
        # At -0.5, saving a few seconds is worth a vignette.
        plan={"parameters": {"vignette_reward": -5.0}},
    ),
    "spacecraft_landing": ScenePreset(
        f"{FEATURES}spacecraft_landing.tscn",
        200_000,
        32,
        rollout=4096,
        # An entropy bonus would keep the thrust too noisy to touch down softly.
        hyperparameters={"batch_size": 128, "gamma": 0.995, "learning_rate": 5e-4, "ent_coef": 0.0},
        plan={"curriculum": LANDING_LESSONS},
    ),
    "multi_agent_vr": ScenePreset(
        f"{FEATURES}multi_agent_vr.tscn",
        100_000,
        8,
        task="gather",
        rollout=4096,
        hyperparameters={"batch_size": 256},
    ),
    "voxel_stress": ScenePreset(
        f"{FEATURES}voxel_stress.tscn",
        20_000,
        2,
        rollout=512,
        # A high entropy coefficient explores more.
        hyperparameters={"learning_rate": 1e-3, "ent_coef": 0.1},
    ),
    "physics_stress": ScenePreset(
        f"{FEATURES}physics_stress.tscn",
        25_000,
        4,
        task="stress",
        rollout=1024,
        linear_lr_schedule=True,
        # Noise hides that throwing always the same way empties the tray.
        hyperparameters={"learning_rate": 2e-3, "ent_coef": 0.0, "log_std_final": -2.0},
    ),
    "ui_interaction": ScenePreset(
        f"{FEATURES}ui_interaction.tscn",
        800_000,
        64,
        rollout=8192,
        policy_layers=(128, 128),
        linear_lr_schedule=True,
        hyperparameters={
            "batch_size": 512,
            "learning_rate": 1e-3,
            "n_epochs": 10,
            # The less a late press is worth, the surer the policy presses.
            "gamma": 0.97,
            "ent_coef": 0.005,
        },
        # From the main page alone, pressing nothing is learned first.
        plan={"parameters": {"start_on_way": 0.7}},
    ),
}
