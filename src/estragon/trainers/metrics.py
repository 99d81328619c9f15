"""Episodes that ended, and iterations of training as `@METRIC` lines that a controller reads."""

import dataclasses
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TextIO

from estragon.support.errors import UserError
from estragon.trainers.controller import RunRecord, utc_now

PREFIX = "@METRIC "
VARIABLE = "CONTROLLER_METRICS"
Stats = Mapping[str, float | None]
OWN_INFO_KEYS = frozenset(
    {
        "TimeLimit.truncated",
        "action_mask",
        "agent_left",
        "episode",
        "final_obs_missing",
        "game_lost",
        "seed",
        "terminal_observation",
        "terminal_observation_missing",
    }
)
"""Keys of an info that we or a library add; all others are the game's."""


@dataclasses.dataclass
class Episodes:
    """Rewards, lengths and the game's own numbers of episodes that ended."""

    rewards: list[float] = dataclasses.field(default_factory=list)
    lengths: list[int] = dataclasses.field(default_factory=list)
    custom: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    """By key of `get_info`, the numbers at the ends of episodes."""

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """All of them in one."""
        joined = cls()
        for part in parts:
            joined.rewards += part.rewards
            joined.lengths += part.lengths
            for key, values in part.custom.items():
                joined.custom.setdefault(key, []).extend(values)
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
            f"{prefix}reward_min": _nan_if_empty(min, self.rewards),
            f"{prefix}reward_max": _nan_if_empty(max, self.rewards),
            "episode_len_mean": mean(self.lengths),
        }


class Metrics:
    """The metrics of a run: printed if CONTROLLER_METRICS is set, and appended to its records."""

    def __init__(self, records: Sequence[RunRecord] = (), stream: TextIO | None = None) -> None:
        """Print to `stream`, by default standard output."""
        self._records = list(records)
        self._stream = stream if stream is not None else sys.stdout
        self._printed = bool(os.environ.get(VARIABLE))
        self.last: dict[str, Any] = {}

    def emit(self, metric: dict[str, Any]) -> None:
        """Print and keep an iteration; a record that cannot be written is given up."""
        self.last = without_nan(metric)
        if self._printed:
            print(line_of(self.last), file=self._stream, flush=True)
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
    *,
    iteration: int,
    env_steps: int,
    agent_steps: int,
    trained: float = 1.0,
    env_steps_this_iter: int,
    time_this_iter_s: float,
    time_total_s: float,
    episodes: Mapping[str, Episodes],
    episodes_total: int,
    learner: Mapping[str, Stats],
    checkpoints: int,
) -> dict[str, Any]:
    """An iteration in the controller's terms.

    Args:
        iteration: its number, from 1.
        env_steps: of all environments since the start.
        agent_steps: of all agents since the start.
        trained: the fraction of those steps that was used for training.
        env_steps_this_iter: of all environments in this iteration.
        time_this_iter_s: duration of the iteration.
        time_total_s: duration of the run.
        episodes: by policy, those that ended in this iteration.
        episodes_total: number of episodes since the start.
        learner: by policy, losses and the like of the last update.
        checkpoints: number of checkpoints since the start.
    """
    all_episodes = Episodes.joined(episodes.values())
    return {
        "kind": "iteration",
        "timestamp": utc_now(),
        "training_iteration": iteration,
        "timesteps_total": agent_steps,
        "episodes_total": episodes_total,
        "episodes_this_iter": len(all_episodes),
        **all_episodes.as_metric("episode_"),
        "time_this_iter_s": time_this_iter_s,
        "time_total_s": time_total_s,
        "env_steps_this_iter": env_steps_this_iter,
        "env_throughput": env_steps_this_iter / max(time_this_iter_s, 1e-9),
        "num_env_steps_sampled": env_steps,
        "num_env_steps_trained": int(trained * env_steps),
        "num_agent_steps_sampled": agent_steps,
        "num_agent_steps_trained": int(trained * agent_steps),
        "custom_metrics": all_episodes.custom_means(),
        "policies": {
            name: _policy_metric(episodes.get(name, Episodes()), learner.get(name, {}))
            for name in sorted({*episodes, *learner})
        },
        "checkpoints": checkpoints,
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


def _nan_if_empty(pick: Callable[[Sequence[float]], float], values: Sequence[float]) -> float:
    return pick(values) if values else math.nan


def _policy_metric(episodes: Episodes, stats: Stats) -> dict[str, Any]:
    return {
        **episodes.as_metric(),
        "completed_episodes": len(episodes),
        "learner_stats": dict(stats),
        "learner": dict(stats),
        "custom_metrics": episodes.custom_means(),
    }
