"""What live training writes: one row an episode, the contract's columns and no others."""

from pathlib import Path
from typing import Any

import numpy as np

from estragon.selfplay.metrics import CONTRACT
from tests.show.charts.run_folder import write_rows

DECISIONS_PER_SEC = 20.0
EPISODES_PER_UPDATE = 8


def write_live_metrics(path: Path, *, episodes: int = 400, seed: int = 0) -> Path:
    """A file of a seeker that learns, the same for the same seed; returns its path."""
    rng = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, [_episode(number, episodes, rng) for number in range(1, episodes + 1)])
    return path


def _episode(number: int, episodes: int, rng: np.random.Generator) -> dict[str, Any]:
    learned = 1.0 - np.exp(-4.0 * number / episodes)
    tagged = bool(rng.random() < 0.15 + 0.6 * learned)
    seconds = float(np.clip(rng.gamma(4.0, 1.2), 0.4, 9.9)) if tagged else 10.0
    decisions = max(1, round(seconds * DECISIONS_PER_SEC))
    earned = (11.0 if tagged else -9.0) + rng.normal(0.0, 0.6)
    distance = 9.0 - 3.0 * learned + rng.normal(0.0, 0.8)
    row: dict[str, Any] = dict.fromkeys(CONTRACT, "")
    row |= {"episode": number, "episode_id": f"ep_{number:05d}", "steps": decisions}
    row |= {"reward_sum": 0.0, "reward_mean": 0.0, "updates": number // EPISODES_PER_UPDATE}
    if number >= EPISODES_PER_UPDATE:  # before, nothing was learned
        row |= {
            "advantage_mean": rng.normal(0.0, 0.01),
            "advantage_std": 0.2 + 0.3 * np.exp(-number / 60.0) + rng.normal(0.0, 0.02),
            "policy_loss": -0.004 + rng.normal(0.0, 0.002),
            "value_loss": 0.02 + 0.2 * np.exp(-number / 50.0) + abs(rng.normal(0.0, 0.01)),
        }
    for role, side in (("seeker", 1.0), ("hider", -1.0)):
        row |= {
            f"{role}_reward_sum": side * earned,
            f"{role}_reward_mean": side * earned / decisions,
            f"{role}_steps": decisions,
            f"{role}_avg_distance": distance,
        }
    row |= {
        "winner": "seeker" if tagged else "hider",
        "terminal_reason": "tag" if tagged else "timeout",
        "duration_sec": seconds,
    }
    return row
