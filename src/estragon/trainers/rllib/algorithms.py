"""RLlib's algorithms: what each can play, its defaults, and its config on the new API stack."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray.rllib.algorithms.algorithm
from gymnasium import spaces
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.policy import PolicySpec
from ray.tune.registry import register_env

from estragon.envs.pettingzoo_env import policy_of
from estragon.support.errors import UserError
from estragon.trainers.controller import did_you_mean
from estragon.trainers.rllib.env import GameRunner, Role, flat_space, make_env
from estragon.trainers.rllib.settings import OLD_NAMES
from estragon.trainers.run import one_line
from estragon.trainers.spaces import describe

if TYPE_CHECKING:
    from estragon.trainers.rllib.plan import Plan

ENV_NAME = "estragon-godot"
MAX_FAILURES = 10
"""Of env runners in a row, after which a run fails."""
COMMON = {"train_batch_size", "rollout_fragment_length", "lr", "gamma"}
COMMON |= {"grad_clip", "fcnet_hiddens"}
FREQUENT = {"min_time_s_per_iteration": 2}
REPLAY = {
    "replay_buffer_config": {"type": "MultiAgentEpisodeReplayBuffer", "capacity": 100_000},
}


@dataclasses.dataclass(frozen=True)
class RllibAlgorithm:
    """One of them."""

    name: str
    config: Callable[[], AlgorithmConfig]
    takes: set[str]
    """The hyper-parameters it has."""
    defaults: dict[str, Any]
    """Settings that suit games better than RLlib's."""

    def can_do(self, does: spaces.Space[Any]) -> bool:
        """Whether it supports an action space."""
        required: dict[str, Any] = {"dqn": spaces.Discrete, "sac": spaces.Box}
        return isinstance(does, required.get(self.name, spaces.Space))


ALGORITHMS = {
    each.name: each
    for each in (
        RllibAlgorithm(
            "ppo",
            PPOConfig,
            COMMON
            | {"sgd_minibatch_size", "num_sgd_iter", "lambda_", "clip_param"}
            | {"entropy_coeff", "vf_loss_coeff"},
            {
                "train_batch_size_per_learner": 2048,
                "minibatch_size": 256,
                "num_epochs": 8,
                "lr": 0.0003,
                "entropy_coeff": 0.0,
                "vf_clip_param": 1e9,
                "kl_coeff": 0.0,
                "use_kl_loss": False,
                "clip_param": 0.2,
                "lambda_": 0.95,
                "grad_clip": 0.5,
            },
        ),
        RllibAlgorithm(
            "appo",
            APPOConfig,
            COMMON | {"lambda_", "clip_param", "entropy_coeff", "vf_loss_coeff"},
            FREQUENT | {"num_learners": 0},
        ),
        RllibAlgorithm(
            "impala",
            IMPALAConfig,
            COMMON | {"entropy_coeff", "vf_loss_coeff"},
            FREQUENT | {"num_learners": 0},
        ),
        RllibAlgorithm("dqn", DQNConfig, COMMON, REPLAY),
        RllibAlgorithm("sac", SACConfig, COMMON, REPLAY),
    )
}


def algorithm_of(name: str) -> RllibAlgorithm:
    """By name."""
    if name not in ALGORITHMS:
        raise UserError(f"no algorithm {name}; choose one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def build(
    plan: "Plan", roles: dict[str, Role], game: dict[str, Any]
) -> ray.rllib.algorithms.algorithm.Algorithm:
    """Start env runners with their games, and create the learner."""
    config = config_of(plan, roles, game)
    try:
        algorithm = config.build_algo()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"RLlib: {one_line(error)}") from error
    with contextlib.suppress(OSError):
        Path(algorithm.logdir).rmdir()  # RLlib's own, which stays empty
    return algorithm


def config_of(plan: "Plan", roles: dict[str, Role], game: dict[str, Any]) -> AlgorithmConfig:
    """All settings of a run."""
    register_env(ENV_NAME, make_env)
    for policy, role in roles.items():
        if not plan.algorithm.can_do(role.does):
            able = [name for name, each in ALGORITHMS.items() if each.can_do(role.does)]
            raise UserError(
                f"{plan.algorithm.name} cannot do {describe(role.does)} ({policy}); "
                f"use --algo {', '.join(able)}"
            )
    config = config_of_policies(
        plan.algorithm,
        plan.settings,
        {policy: (flat_space(role.sees), role.does) for policy, role in roles.items()},
        {policy: plan.model_of(policy) for policy in roles},
    )
    return (
        config.environment(ENV_NAME, env_config=game, disable_env_checking=True)
        .debugging(seed=plan.seed, log_level="ERROR")
        .env_runners(env_runner_cls=GameRunner, num_env_runners=plan.runners)
        .learners(num_learners=0, num_gpus_per_learner=1 if plan.options.device == "cuda" else 0)
        .fault_tolerance(
            restart_failed_env_runners=True,
            restart_failed_sub_environments=False,
            num_consecutive_env_runner_failures_tolerance=MAX_FAILURES,
            delay_between_env_runner_restarts_s=0.0,
        )
        .multi_agent(
            policy_mapping_fn=plan.mapping,
            policies_to_train=list(plan.file.to_train) if plan.file.to_train is not None else None,
        )
        .rl_module(
            algorithm_config_overrides_per_module={
                policy: _checked(config, own)
                for policy, given in plan.file.policies.items()
                if (own := {key: given[key] for key in given if key != "model"})
            },
        )
    )


def config_of_policies(
    algorithm: RllibAlgorithm,
    settings: dict[str, Any],
    policy_spaces: Mapping[str, tuple[spaces.Space[Any], spaces.Space[Any]]],
    models: dict[str, dict[str, Any]],
) -> AlgorithmConfig:
    """The part that defines the networks; `models` are fields of RLlib's `DefaultModelConfig`."""
    config = algorithm.config()
    for key, value in _checked(config, settings).items():
        setattr(config, key, value)
    return (
        config.framework("torch")
        .multi_agent(
            policies={
                policy: PolicySpec(observation_space=sees, action_space=does, config={})
                for policy, (sees, does) in policy_spaces.items()
            },
            policy_mapping_fn=policy_of,
        )
        .rl_module(
            rl_module_spec=MultiRLModuleSpec(
                rl_module_specs={
                    policy: RLModuleSpec(model_config=model_config(models[policy]))
                    for policy in policy_spaces
                }
            )
        )
    )


def model_config(given: dict[str, Any]) -> DefaultModelConfig:
    """The networks' settings for RLlib."""
    known = DefaultModelConfig.__dataclass_fields__
    for key in given:
        if key not in known:
            raise UserError(f"model: unknown {key}{did_you_mean(key, known)}")
    return DefaultModelConfig(**given)


def _checked(config: AlgorithmConfig, given: dict[str, Any]) -> dict[str, Any]:
    """Settings by their current names; an unknown name or a wrong type is an error."""
    found = {}
    for old, value in given.items():
        key = OLD_NAMES.get(old, old)
        default = getattr(config, key, None)
        if not hasattr(config, key) or key.startswith("_") or callable(default):
            known = [each for each in vars(config) if not each.startswith("_")]
            hint = did_you_mean(old, known)
            raise UserError(f"{type(config).__name__[:-6]} has no setting {old}{hint}")
        if isinstance(default, bool):
            if not isinstance(value, bool):
                raise UserError(f"{key}: expected true or false, got {value}")
        elif isinstance(default, int | float) and not isinstance(value, int | float | list | None):
            raise UserError(f"{key}: expected a number, got {value}")
        found[key] = value
    return found
