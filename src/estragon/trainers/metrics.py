"""Episodes that ended, and iterations of training as `@METRIC` lines that a controller reads."""

import dataclasses
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from estragon.support.errors import UserError
from estragon.trainers.controller import RunRecord, utc_now

PREFIX = "@METRIC "
VARIABLE = "CONTROLLER_METRICS"
Stats = Mapping[str, float | None]
EndedEpisode = tuple[float, int, Mapping[str, Any]]
"""Reward, length and last info."""
OWN_INFO_KEYS = frozenset(
    {
        "TimeLimit.truncated",
        "action_mask",
        "agent_left",
        "episode",
        "final_obs_missing",
        "game_lost",
        "parameters",
        "seed",
        "terminal_observation",
        "terminal_observation_missing",
    }
)
"""Keys of an info that we or a library add; all others are the game's."""


@dataclasses.dataclass
class Counters:
    """Totals of a run, and of the runs that it resumes."""

    iteration: int = 0
    timesteps: int = 0
    """Of all agents."""
    env_steps: int = 0
    """Of all games."""
    episodes: int = 0
    checkpoints: int = 0


@dataclasses.dataclass
class Episodes:
    """Rewards, lengths and the game's own numbers of episodes that ended."""

    rewards: list[float] = dataclasses.field(default_factory=list)
    lengths: list[int] = dataclasses.field(default_factory=list)
    custom: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    """By key of `get_info`, the numbers at the ends of episodes."""
    parameters: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    """By name, the numbers that the trainer had set in the game."""

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """All of them in one."""
        joined = cls()
        for part in parts:
            joined.rewards += part.rewards
            joined.lengths += part.lengths
            for key, values in part.custom.items():
                joined.custom.setdefault(key, []).extend(values)
            for key, values in part.parameters.items():
                joined.parameters.setdefault(key, []).extend(values)
        return joined

    def __len__(self) -> int:
        """The number of episodes."""
        return len(self.rewards)

    def add(self, reward: float, length: int, info: Mapping[str, Any]) -> None:
        """Add one, with the info of its last step."""
        self.rewards.append(reward)
        self.lengths.append(length)
        for key, value in info.items():
            if isinstance(value, bool | int | float) and key not in OWN_INFO_KEYS:
                self.custom.setdefault(key, []).append(float(value))
        for key, value in info.get("parameters", {}).items():
            if isinstance(value, int | float):
                self.parameters.setdefault(key, []).append(float(value))

    @property
    def reward_mean(self) -> float:
        """NaN without episodes."""
        return mean(self.rewards)

    def custom_means(self) -> dict[str, float]:
        """By key, the mean of the game's numbers."""
        return {key: mean(values) for key, values in self.custom.items()}

    def summary(self) -> str:
        """One line, such as `7 episodes: reward 1.5 (0.0 to 3.0), length 3.4, score 2.0`."""
        if not self:
            return "no episode ended"
        means = "".join(f", {key} {value:.3f}" for key, value in self.custom_means().items())
        return (
            f"{len(self)} episodes: reward {self.reward_mean:.3f} ({min(self.rewards):.3f} to "
            f"{max(self.rewards):.3f}), length {mean(self.lengths):.1f}{means}"
        )

    def as_metric(self, prefix: str = "") -> dict[str, float]:
        """In the controller's terms; NaN without episodes."""
        return {
            f"{prefix}reward_mean": self.reward_mean,
            f"{prefix}reward_min": min(self.rewards, default=math.nan),
            f"{prefix}reward_max": max(self.rewards, default=math.nan),
            "episode_len_mean": mean(self.lengths),
        }


class Metrics:
    """The metrics of a run: printed if CONTROLLER_METRICS is set, and appended to its records."""

    def __init__(self, records: Sequence[RunRecord]) -> None:
        self._records = list(records)
        self._printed = bool(os.environ.get(VARIABLE))
        self.last: dict[str, Any] = {}

    def emit(self, metric: dict[str, Any]) -> None:
        """Print and keep an iteration; a record that cannot be written is given up."""
        self.last = without_nan(metric)
        if self._printed:
            print(line_of(self.last), flush=True)
        for record in list(self._records):
            try:
                record.add(self.last)
            except UserError as error:
                self._records.remove(record)
                print(f"WARNING: no more metrics: {error}", file=sys.stderr, flush=True)


def line_of(metric: dict[str, Any]) -> str:
    """A metric as one line."""
    return PREFIX + json.dumps(metric, allow_nan=False, separators=(",", ":"))


def iteration_metric(
    counters: Counters,
    episodes: Mapping[str, Episodes],
    learner_stats: Mapping[str, Stats],
    *,
    env_steps: int,
    seconds: float,
    total_seconds: float,
    trained: bool = True,
) -> dict[str, Any]:
    """An iteration in the controller's terms.

    Args:
        counters: totals after it.
        episodes: by policy, those that ended in it.
        learner_stats: by policy, losses and the like of the last update.
        env_steps: of all games in it.
        seconds: its duration.
        total_seconds: duration of the run.
        trained: whether there was an update yet.
    """
    all_episodes = Episodes.joined(episodes.values())
    return {
        "kind": "iteration",
        "timestamp": utc_now(),
        "training_iteration": counters.iteration,
        "timesteps_total": counters.timesteps,
        "episodes_total": counters.episodes,
        "episodes_this_iter": len(all_episodes),
        **all_episodes.as_metric("episode_"),
        "time_this_iter_s": seconds,
        "time_total_s": total_seconds,
        "env_steps_this_iter": env_steps,
        "env_throughput": env_steps / max(seconds, 1e-9),
        "num_env_steps_sampled": counters.env_steps,
        "num_env_steps_trained": counters.env_steps if trained else 0,
        "num_agent_steps_sampled": counters.timesteps,
        "num_agent_steps_trained": counters.timesteps if trained else 0,
        "custom_metrics": all_episodes.custom_means(),
        "policies": {
            name: _policy_metric(episodes.get(name, Episodes()), dict(learner_stats.get(name, {})))
            for name in sorted({*episodes, *learner_stats})
        },
        "checkpoints": counters.checkpoints,
    }


def without_nan(value: Any) -> Any:
    """The same with null for NaN and infinity, and plain numbers for those of numpy."""
    if isinstance(value, Mapping):
        return {str(key): without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def mean(values: Sequence[float]) -> float:
    """NaN of nothing."""
    return sum(values) / len(values) if values else math.nan


def _policy_metric(episodes: Episodes, stats: dict[str, float | None]) -> dict[str, Any]:
    return {
        **episodes.as_metric(),
        "completed_episodes": len(episodes),
        "learner_stats": stats,
        "learner": stats,
        "custom_metrics": episodes.custom_means(),
    }
