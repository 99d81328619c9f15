"""What RLlib's learner says of its last update, in the controller's words too."""

from collections.abc import Mapping
from typing import Any

EVERYBODY = "__all_modules__"
CONTROLLERS_NAMES = {
    "qf_loss": "vf_loss",
    "qf_mean": "q_mean",
    "mean_kl_loss": "kl",
    "default_optimizer_learning_rate": "cur_lr",
    "curr_entropy_coeff": "entropy_coeff",
}
"""What RLlib calls it → what controllers do; both are told."""


def learner_stats(result: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """By policy, every number."""
    found: dict[str, dict[str, float]] = {}
    for policy, told in (result.get("learners") or {}).items():
        if policy == EVERYBODY or not isinstance(told, Mapping):
            continue
        stats = {
            key: number for key, value in told.items() if (number := _number(value)) is not None
        }
        for theirs, ours in CONTROLLERS_NAMES.items():
            if theirs in stats:
                stats.setdefault(ours, stats[theirs])
        found[policy] = stats
    return found


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
