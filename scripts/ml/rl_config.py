"""The configuration of VR navigation; run it to write `example_config.json`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from estragon.spacetime.config import (
    PRESETS,
    ActionConfig,
    CurriculumStage,
    EnvironmentConfig,
    NetworkConfig,
    ObservationConfig,
    PPOConfig,
    RewardConfig,
    RLConfig,
    TrainingConfig,
)

__all__ = [
    "PRESETS",
    "ActionConfig",
    "CurriculumStage",
    "EnvironmentConfig",
    "NetworkConfig",
    "ObservationConfig",
    "PPOConfig",
    "RLConfig",
    "RewardConfig",
    "TrainingConfig",
]
EXAMPLE = Path("example_config.json")

if __name__ == "__main__":
    RLConfig().to_json(EXAMPLE)
    print(f"wrote {EXAMPLE}; presets: {', '.join(PRESETS)}")
