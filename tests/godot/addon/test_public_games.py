"""Games in the manner of public ones train with the addon they come with, and with ours.

`market` has global classes with everyday names, a Sync of its own, controllers with stricter types
and without any, and two policies; `harbour` lacks its decoration; in `lookout` an agent sees
through a camera. The old addon is a small stand-in whose plugin preloads an icon.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import DictRolloutBuffer

from estragon.envs.sb3_env import GodotVecEnv
from tests.godot.addon.peer import ADDON, copy_game
from tests.godot.staging import kept_project

OLD_ADDON = Path(__file__).parent / "old_addon"
OPTIONS: dict[str, dict[str, Any]] = {
    "market": {},
    "harbour": {"scene": "res://training.tscn"},
    "lookout": {},
}


@pytest.mark.parametrize(
    ("game", "addon"),
    [
        pytest.param("market", OLD_ADDON, id="market-old"),
        pytest.param("market", ADDON, id="market-ours"),
        pytest.param("lookout", OLD_ADDON, id="lookout-old", marks=pytest.mark.prove),
        # With our addon they are also in test_project_check.py and in test_images.py.
        pytest.param("harbour", OLD_ADDON, id="harbour-old", marks=pytest.mark.prove),
        pytest.param("harbour", ADDON, id="harbour-ours", marks=pytest.mark.prove),
        pytest.param("lookout", ADDON, id="lookout-ours", marks=pytest.mark.prove),
    ],
)
def test_it_trains(game: str, addon: Path, tmp_path: Path, godot: Path) -> None:
    torch.set_num_threads(1)
    project = tmp_path / game
    copy_game(game, project, addon)
    if game != "harbour":  # whose first import is a test of its own
        project = kept_project(game if addon == ADDON else f"{game}-old", project)
    env = GodotVecEnv(project, seed=1, **OPTIONS[game])
    try:
        assert env.encoding == ("json" if addon == OLD_ADDON else "binary1")
        model = PPO("MultiInputPolicy", env, n_steps=8, batch_size=8, n_epochs=1, device="cpu")
        model.learn(2 * 8 * env.num_envs)
        assert model.num_timesteps == 2 * 8 * env.num_envs
        assert isinstance(model.rollout_buffer, DictRolloutBuffer)
        for seen in model.rollout_buffer.observations.values():
            assert len(np.unique(seen)) > 1, "it sees something"
        if game == "market":
            assert env.agent_policy_names == ["sellers", "buyers"]
    finally:
        env.close()
