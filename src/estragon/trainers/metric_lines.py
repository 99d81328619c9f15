"""What an iteration of training brought, as one `@METRIC` line that a controller reads."""

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from estragon.support.errors import UserError
from estragon.trainers.controller import RunRecord, utc_now
from estragon.trainers.episodes import Episodes

PREFIX = "@METRIC "
VARIABLE = "CONTROLLER_METRICS"
Stats = Mapping[str, float | None]


class Metrics:
    """Numbers of a run, iteration by iteration: printed for a controller, kept in its folder."""

    def __init__(self, records: Sequence[RunRecord] = (), stream: TextIO | None = None) -> None:
        """Print lines where CONTROLLER_METRICS is set."""
        self._records = list(records)
        self._stream = stream if stream is not None else sys.stdout
        self._printed = bool(os.environ.get(VARIABLE))
        self.last: dict[str, Any] = {}

    def emit(self, metric: dict[str, Any]) -> None:
        """Tell an iteration."""
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
    """One line."""
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
    """An iteration in the controller's words.

    Args:
        iteration: its number, from 1.
        env_steps: of all environments since the beginning.
        agent_steps: of all agents since the beginning.
        trained: the part of those steps that was learned from.
        env_steps_this_iter: of all environments in this iteration.
        time_this_iter_s: how long it took.
        time_total_s: how long all took.
        episodes: by policy, those that ended in this iteration.
        episodes_total: that ended since the beginning.
        learner: by policy, what the learner says of its last update.
        checkpoints: saved since the beginning.
    """
    everybody = Episodes.joined(episodes.values())
    return {
        "kind": "iteration",
        "timestamp": utc_now(),
        "training_iteration": iteration,
        "timesteps_total": env_steps,
        "episodes_total": episodes_total,
        "episodes_this_iter": len(everybody),
        "episode_reward_mean": everybody.reward_mean,
        "episode_reward_min": everybody.reward_min,
        "episode_reward_max": everybody.reward_max,
        "episode_len_mean": everybody.length_mean,
        "time_this_iter_s": time_this_iter_s,
        "time_total_s": time_total_s,
        "env_steps_this_iter": env_steps_this_iter,
        "env_throughput": env_steps_this_iter / max(time_this_iter_s, 1e-9),
        "num_env_steps_sampled": env_steps,
        "num_env_steps_trained": int(trained * env_steps),
        "num_agent_steps_sampled": agent_steps,
        "num_agent_steps_trained": int(trained * agent_steps),
        "custom_metrics": everybody.custom_means(),
        "policies": {
            name: _policy_metric(episodes.get(name, Episodes()), learner.get(name, {}))
            for name in sorted({*episodes, *learner})
        },
        "checkpoints": checkpoints,
    }


def without_nan(value: Any) -> Any:
    """The same with null for what is no number; numbers of numpy become plain ones."""
    if isinstance(value, Mapping):
        return {str(key): without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _policy_metric(episodes: Episodes, stats: Stats) -> dict[str, Any]:
    return {
        "reward_mean": episodes.reward_mean,
        "reward_min": episodes.reward_min,
        "reward_max": episodes.reward_max,
        "episode_len_mean": episodes.length_mean,
        "completed_episodes": len(episodes),
        "learner_stats": dict(stats),
        "learner": dict(stats),
        "custom_metrics": episodes.custom_means(),
    }
