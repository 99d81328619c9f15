"""Names that people may say; needs nothing but Python, so that `--help` does not either."""

from typing import Literal

Name = Literal["ppo", "dqn", "sac", "appo", "impala"]
StopMode = Literal["none", "time_seconds", "timesteps"]
Device = Literal["auto", "cpu", "cuda"]
