"""Which algorithm a model of somebody else was trained with, found out without opening it."""

import json
import zipfile


def detect(archive: zipfile.ZipFile) -> str | None:
    """By the names in the JSON of its `data`; None if they fit nothing known."""
    try:
        data = json.loads(archive.read("data"))
    except (KeyError, ValueError):
        return None
    if not isinstance(data, dict):
        return None
    policy = str(data.get("policy_class", ""))
    if "clip_range" in data:
        if "maskable" in policy:
            return "maskable_ppo"
        return "recurrent_ppo" if "_last_lstm_states" in data or "recurrent" in policy else "ppo"
    if "gae_lambda" in data:
        return "a2c"
    if "exploration_fraction" in data:
        return "dqn"
    if "target_entropy" in data:
        return "sac"
    if "policy_delay" in data:
        critics = data.get("policy_kwargs", {})
        one = isinstance(critics, dict) and critics.get("n_critics") == 1
        return "ddpg" if one and data["policy_delay"] == 1 else "td3"
    return None
