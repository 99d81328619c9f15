"""Games in the manner of public ones train with the addon they come with, and with ours."""

from pathlib import Path

import pytest
from stable_baselines3 import PPO

from estragon.godot import GodotVecEnv
from tests.godot.addon.peer import ADDON, staged

OLD_ADDON = Path(__file__).parent / "old_addon"
GAMES = ["market"]


@pytest.mark.parametrize("addon", [OLD_ADDON, ADDON], ids=["its own addon", "ours"])
@pytest.mark.parametrize("game", GAMES)
def test_it_trains(game: str, addon: Path, tmp_path: Path, godot: Path) -> None:
    project = staged(game, tmp_path, addon=addon)
    env = GodotVecEnv(project, seed=1)
    try:
        agents = env.num_envs
        model = PPO("MultiInputPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
        model.learn(3 * 16 * agents)
        assert model.num_timesteps == 3 * 16 * agents
    finally:
        env.close()
