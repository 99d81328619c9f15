"""Reading what a run tells."""

import json
from typing import Any

OF_AN_ITERATION = {
    "kind",
    "timestamp",
    "training_iteration",
    "timesteps_total",
    "episodes_total",
    "episodes_this_iter",
    "episode_reward_mean",
    "episode_reward_min",
    "episode_reward_max",
    "episode_len_mean",
    "time_this_iter_s",
    "time_total_s",
    "env_steps_this_iter",
    "env_throughput",
    "num_env_steps_sampled",
    "num_env_steps_trained",
    "num_agent_steps_sampled",
    "num_agent_steps_trained",
    "custom_metrics",
    "policies",
    "checkpoints",
}
OF_A_POLICY = {
    "reward_mean",
    "reward_min",
    "reward_max",
    "episode_len_mean",
    "completed_episodes",
    "learner_stats",
    "learner",
    "custom_metrics",
}


def read_metrics(output: str) -> list[dict[str, Any]]:
    """Every metric line in what was printed; each must be whole, strict JSON of the schema."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    found = []
    for line in output.splitlines():
        if "@METRIC" in line:
            assert line.startswith("@METRIC {"), line
            metric = json.loads(line.removeprefix("@METRIC "), parse_constant=refuse)
            assert set(metric) == OF_AN_ITERATION
            assert metric["kind"] == "iteration"
            for policy in metric["policies"].values():
                assert set(policy) == OF_A_POLICY
                assert policy["learner"] == policy["learner_stats"]
            found.append(metric)
    return found
