"""What options may say; needs nothing but Python, so that `--help` does not either."""

from typing import Literal

Name = Literal["ppo", "a2c", "sac", "td3", "ddpg", "dqn", "recurrent_ppo", "maskable_ppo"]
PolicyType = Literal["mlp", "cnn", "lstm"]
Device = Literal["auto", "cpu", "cuda"]
