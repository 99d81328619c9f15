"""Stable-Baselines3's PPO over the client of Godot RL Agents, in an environment of its own.

Called with a game, a port, a speedup, a frame rate (0: none), and the settings as JSON; prints
agent-steps a second.
"""

import json
import sys
import time
from typing import Any

import torch
from godot_rl.wrappers.stable_baselines_wrapper import StableBaselinesGodotEnv
from stable_baselines3 import PPO


def main(game: str, port: int, speedup: int, framerate: int, asked: dict[str, Any]) -> None:
    """Learn a little, and say how fast."""
    torch.set_num_threads(1)
    env = StableBaselinesGodotEnv(
        env_path=game,
        port=port,
        speedup=speedup,
        framerate=framerate or None,
        action_repeat=asked["repeat"],
    )
    model = PPO("MultiInputPolicy", env, **asked["ppo"])
    model.learn(asked["warm_up"])
    start = time.perf_counter()
    model.learn(asked["steps"], reset_num_timesteps=False)
    taken = model.num_timesteps - asked["warm_up"]
    print("agent-steps/s:", taken / (time.perf_counter() - start))
    env.close()


if __name__ == "__main__":
    game, port, speedup, framerate, asked = sys.argv[1:]
    main(game, int(port), int(speedup), int(framerate), json.loads(asked))
