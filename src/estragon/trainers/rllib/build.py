"""A plan and the roles of a game as an algorithm of RLlib on the new API stack."""

import contextlib
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymnasium import Space
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.policy import PolicySpec
from ray.tune.registry import register_env

from estragon.envs.pettingzoo_env import policy_of
from estragon.support.errors import UserError
from estragon.trainers.rllib import algorithms
from estragon.trainers.rllib.algorithms import check_actions
from estragon.trainers.rllib.config_file import OLD_NAMES
from estragon.trainers.rllib.env import make_env
from estragon.trainers.rllib.plan import Plan
from estragon.trainers.rllib.runner import GameRunner
from estragon.trainers.rllib.survey import Role

NAME = "estragon-godot"
FAILURES = 10
"""In a row, after which a run gives up."""


def build(plan: Plan, roles: dict[str, Role], game: dict[str, Any]) -> Algorithm:
    """Start env runners with their games, and make the learner; nothing is learned yet."""
    config = config_of(plan, roles, game)
    try:
        algorithm = config.build_algo()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"RLlib: {_first_line(error)}") from error
    with contextlib.suppress(OSError):
        Path(algorithm.logdir).rmdir()  # nobody asked for it, and nothing is in it
    return algorithm


def config_of(plan: Plan, roles: dict[str, Role], game: dict[str, Any]) -> AlgorithmConfig:
    """All settings of a run."""
    register_env(NAME, make_env)
    for policy, role in roles.items():
        check_actions(plan.algorithm, policy, role.does)
    config = config_of_policies(
        plan.algorithm,
        plan.settings,
        {policy: (role.sees_plain, role.does) for policy, role in roles.items()},
        {policy: model_of(plan, policy) for policy in roles},
    )
    return (
        config.environment(NAME, env_config=game, disable_env_checking=True)
        .debugging(seed=plan.seed, log_level="ERROR")
        .env_runners(env_runner_cls=GameRunner, num_env_runners=plan.runners)
        .learners(num_learners=0, num_gpus_per_learner=1 if plan.options.device == "cuda" else 0)
        .fault_tolerance(
            restart_failed_env_runners=True,
            restart_failed_sub_environments=False,
            num_consecutive_env_runner_failures_tolerance=FAILURES,
            delay_between_env_runner_restarts_s=0.0,
        )
        .multi_agent(
            policy_mapping_fn=plan.mapping,
            policies_to_train=list(plan.to_train) if plan.to_train is not None else None,
        )
        .rl_module(
            algorithm_config_overrides_per_module={
                policy: _settings(config, numbers)
                for policy, said in plan.policies.items()
                if (numbers := {key: said[key] for key in said if key != "model"})
            },
        )
    )


def config_of_policies(
    algorithm: algorithms.Algorithm,
    settings: dict[str, Any],
    spaces: Mapping[str, tuple[Space[Any], Space[Any]]],
    models: dict[str, dict[str, Any]],
) -> AlgorithmConfig:
    """The part that says what the networks are: what each policy sees, does, and is made of."""
    config = algorithm.config()
    for key, value in _settings(config, settings).items():
        setattr(config, key, value)
    return (
        config.framework("torch")
        .multi_agent(
            policies={
                policy: PolicySpec(observation_space=sees, action_space=does, config={})
                for policy, (sees, does) in spaces.items()
            },
            policy_mapping_fn=policy_of,
        )
        .rl_module(
            rl_module_spec=MultiRLModuleSpec(
                rl_module_specs={
                    policy: RLModuleSpec(model_config=model_config(models[policy]))
                    for policy in spaces
                }
            )
        )
    )


def model_of(plan: Plan, policy: str) -> dict[str, Any]:
    """What a policy's networks are like."""
    source = plan.source
    if source is not None and source.about is not None:
        return plan.model | source.about.models.get(policy, {})
    return plan.model | (plan.policies.get(policy, {}).get("model") or {})


def model_config(said: dict[str, Any]) -> DefaultModelConfig:
    """The same for RLlib."""
    known = DefaultModelConfig.__dataclass_fields__
    for key in said:
        if key not in known:
            raise UserError(f"model: unknown {key}{_near(key, list(known))}")
    return DefaultModelConfig(**said)


def _settings(config: AlgorithmConfig, said: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for old, value in said.items():
        key = OLD_NAMES.get(old, old)
        if not hasattr(config, key) or key.startswith("_") or callable(getattr(config, key)):
            known = [each for each in vars(config) if not each.startswith("_")]
            raise UserError(f"{type(config).__name__[:-6]} has no setting {old}{_near(old, known)}")
        _check_kind(key, getattr(config, key), value)
        found[key] = value
    return found


def _check_kind(key: str, usual: Any, value: Any) -> None:
    """A word where a number belongs is noticed before anything begins."""
    if isinstance(usual, bool) and not isinstance(value, bool):
        raise UserError(f"{key}: expected true or false, got {value}")
    is_number = isinstance(usual, int | float) and not isinstance(usual, bool)
    if is_number and not isinstance(value, int | float | list | None):
        raise UserError(f"{key}: expected a number, got {value}")


def _near(key: str, known: list[str]) -> str:
    found = difflib.get_close_matches(key, known, 1)
    return f" (did you mean {found[0]}?)" if found else ""


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
