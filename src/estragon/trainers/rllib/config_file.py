"""The YAML file of a run: the flat form, or `algorithm`, `stop` and `config` apart."""

import dataclasses
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from estragon.support.errors import UserError
from estragon.trainers.rllib.mapping import CodeMapping, TableMapping

USUAL = Path("rllib_config.yaml")
APART = {"algorithm", "stop", "config", "checkpoint_frequency", "env_is_multiagent"}
OLD_NAMES = {
    "lambda": "lambda_",
    "num_sgd_iter": "num_epochs",
    "sgd_minibatch_size": "minibatch_size",
    "train_batch_size": "train_batch_size_per_learner",
    "num_workers": "num_env_runners",
    "num_rollout_workers": "num_env_runners",
    "num_cpus_per_worker": "num_cpus_per_env_runner",
    "num_gpus_per_worker": "num_gpus_per_env_runner",
    "recreate_failed_workers": "restart_failed_env_runners",
}
"""What older versions of RLlib call it → what the current one does."""
GONE = {
    "clip_actions",
    "create_env_on_driver",
    "disable_env_checking",
    "env",
    "env_is_multiagent",
    "framework",
    "horizon",
    "log_level",
    "no_done_at_end",
    "num_envs_per_env_runner",
    "num_envs_per_worker",
    "num_gpus",
    "observation_filter",
    "simple_optimizer",
    "soft_horizon",
}
"""What has no meaning any more, or always the same."""
OF_THE_GAME = {
    "action_repeat",
    "arguments",
    "encoding",
    "env_path",
    "key",
    "port",
    "restart_window_sec",
    "restarts",
    "scene",
    "seed",
    "show_window",
    "speedup",
    "start_timeout_sec",
    "step_timeout_sec",
    "strict_import",
}
STOPS = {
    "time_total_s": "seconds",
    "time_seconds": "seconds",
    "timesteps_total": "timesteps",
    "timesteps": "timesteps",
    "num_env_steps_sampled_lifetime": "timesteps",
    "training_iteration": "iterations",
    "episode_reward_mean": "reward",
}
NUMBER = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
"""YAML reads 3e-4 as a word."""


@dataclasses.dataclass(frozen=True)
class FileConfig:
    """What a file says; None, or nothing, where it does not."""

    algorithm: str | None = None
    game: dict[str, Any] = dataclasses.field(default_factory=dict)
    stop: dict[str, float] = dataclasses.field(default_factory=dict)
    checkpoint_frequency: int | None = None
    policies: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    """By name, settings of its own."""
    mapping: Callable[..., str] | None = None
    to_train: tuple[str, ...] | None = None
    model: dict[str, Any] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    """By the current names of RLlib."""


def read_config_file(path: Path | None) -> FileConfig:
    """The file, or nothing where there is none and none was asked for."""
    if path is None and not USUAL.exists():
        return FileConfig()
    path = path or USUAL
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    said = _mapping_of(found if found is not None else {}, path, "")
    top = {key: said[key] for key in said if key in APART}
    inner = _mapping_of(top.get("config") or {}, path, "config")
    if inner and (more := sorted(set(said) - APART)):
        raise UserError(f"{path}: {', '.join(more)}: put it under config, as the rest is")
    rest = inner or {key: said[key] for key in said if key not in APART - {"env_is_multiagent"}}
    return _read(path, top, rest)


def _read(path: Path, top: dict[str, Any], rest: dict[str, Any]) -> FileConfig:
    unused = sorted(GONE & set(rest))
    if unused := [key for key in unused if key not in ("env", "framework")]:
        print(f"{path}: of an older RLlib, not used: {', '.join(unused)}", file=sys.stderr)
    if rest.get("framework", "torch") not in ("torch", None):
        raise UserError(f"{path}: framework: expected torch, got {rest['framework']}")
    several = _mapping_of(rest.get("multiagent") or {}, path, "multiagent")
    policies, mapping, to_train = _policies(several, path)
    game = _mapping_of(rest.get("env_config") or {}, path, "env_config")
    if unknown := sorted(set(game) - OF_THE_GAME):
        known = ", ".join(sorted(OF_THE_GAME))
        raise UserError(f"{path}: env_config: unknown {', '.join(unknown)}; there is {known}")
    apart = {"multiagent", "env_config", "model", "checkpoint_frequency", *GONE}
    settings = {OLD_NAMES.get(key, key): rest[key] for key in rest if key not in apart}
    algorithm = top.get("algorithm")
    every = top.get("checkpoint_frequency", rest.get("checkpoint_frequency"))
    if every is not None and (not isinstance(every, int) or every < 0):
        raise UserError(f"{path}: checkpoint_frequency: expected iterations, got {every}")
    return FileConfig(
        algorithm=None if algorithm is None else str(algorithm).lower(),
        game=game,
        stop=_stop(_mapping_of(top.get("stop") or {}, path, "stop"), path),
        checkpoint_frequency=every,
        policies=policies,
        mapping=mapping,
        to_train=to_train,
        model=_mapping_of(rest.get("model") or {}, path, "model"),
        settings=settings,
    )


def _policies(
    several: dict[str, Any], path: Path
) -> tuple[dict[str, dict[str, Any]], Callable[..., str] | None, tuple[str, ...] | None]:
    known = {"policies", "policy_mapping_fn", "policies_to_train", "count_steps_by"}
    if unknown := sorted(set(several) - known):
        raise UserError(f"{path}: multiagent: unknown {', '.join(unknown)}")
    named = several.get("policies") or {}
    if isinstance(named, list):
        named = dict.fromkeys(named)
    policies = {
        name: _mapping_of(said or {}, path, f"policies.{name}")
        for name, said in _mapping_of(named, path, "policies").items()
    }
    to_train = several.get("policies_to_train")
    if to_train is not None:
        to_train = tuple(to_train if isinstance(to_train, list) else [to_train])
        if unknown := sorted(set(to_train) - set(policies)) if policies else []:
            raise UserError(f"{path}: policies_to_train: no policy {', '.join(unknown)}")
    told = several.get("policy_mapping_fn")
    mapping: Callable[..., str] | None = None
    if isinstance(told, dict):
        mapping = TableMapping({str(key): str(value) for key, value in told.items()})
    elif isinstance(told, str):
        print(f"{path}: running the code of its policy_mapping_fn", file=sys.stderr, flush=True)
        mapping = CodeMapping(told, str(path))
    elif told is not None:
        raise UserError(f"{path}: policy_mapping_fn: expected a table or a function")
    return policies, mapping, to_train


def _stop(said: dict[str, Any], path: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in said.items():
        name = STOPS.get(key.rpartition("/")[2])
        if name is None:
            raise UserError(f"{path}: stop: unknown {key}; there is {', '.join(STOPS)}")
        if not isinstance(value, int | float):
            raise UserError(f"{path}: stop: {key}: expected a number, got {value}")
        found[name] = value
    return found


def _mapping_of(value: Any, path: Path, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        named = f"{path}: {where}" if where else str(path)
        raise UserError(f"{named}: expected names and values, got {type(value).__name__}")
    return {str(key): _number(each) for key, each in value.items()}


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and NUMBER.fullmatch(value) else value
