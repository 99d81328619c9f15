"""What a run is: its algorithm and its settings, and both as RLlib's config on the new API stack.

The command line is over the controller's file, over the YAML file, over defaults.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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

from estragon.envs.launch import Launch
from estragon.envs.pettingzoo_env import policy_of
from estragon.support.errors import UserError
from estragon.support.parameters import Rule
from estragon.trainers.controller import did_you_mean
from estragon.trainers.curriculum import PLAN
from estragon.trainers.rllib.checkpoint import About, Checkpoint
from estragon.trainers.rllib.env import GameRunner, Role, flat_space, make_env
from estragon.trainers.rllib.lessons import LessonCallback
from estragon.trainers.rllib.settings import (
    OLD_NAMES,
    FileConfig,
    PolicyMapping,
    RllibSettings,
    read_config_file,
)
from estragon.trainers.run import StopLimits, one_line
from estragon.trainers.settings import note
from estragon.trainers.spaces import describe

DEFAULT_STEPS, RUNNERS, CHECKPOINT_EVERY = 1_000_000, 2, 20
LAYERS = (64, 64)
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
    """An algorithm of RLlib."""

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


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run before it starts."""

    options: RllibSettings
    file: FileConfig
    algorithm: RllibAlgorithm
    source: Checkpoint | None
    """The checkpoint to resume."""
    before: About | None
    """How it was made, if Estragon made it."""
    game: dict[str, Any]
    """Options of the environment."""
    runners: int
    limits: StopLimits
    seed: int
    checkpoint_every: int
    mapping: PolicyMapping
    model: dict[str, Any]
    settings: dict[str, Any]
    """By RLlib's names."""
    rule: Rule | None = None

    @property
    def from_editor(self) -> bool:
        """Whether the game is started by hand, in the editor."""
        return launch_of(self.game).from_editor

    def model_of(self, policy: str) -> dict[str, Any]:
        """The networks of one policy."""
        if self.before is not None:
            return self.model | self.before.models.get(policy, {})
        return self.model | (self.file.policies.get(policy, {}).get("model") or {})


def plan_of(options: RllibSettings, rule: Rule | None = None) -> Plan:
    """Combine what the command line, the files and the checkpoint set.

    A rule decides which lesson of a curriculum is taught.
    """
    file = read_config_file(options.config_file)
    source = None if options.restore is None else Checkpoint.find(options.restore)
    before = source.about if source is not None else None
    wanted = options.algo or file.algorithm
    if source is not None and before is not None and wanted not in (None, before.algo):
        raise UserError(f"{source.path} was trained with {before.algo}, not {wanted}")
    algorithm = algorithm_of(before.algo if before is not None else wanted or "ppo")
    settings, model = _hyperparameters(options, algorithm, file, before)
    game = _game(options, file)
    saved = before.parameters if before is not None and not options.inference else None
    others = (file.parameters, game.get("parameters"), saved and saved[PLAN])
    game["parameters"] = options.parameter_plan(*others, rule=rule)
    runners = _first(options.num_workers, settings.pop("num_env_runners", None), RUNNERS)
    if launch_of(game).from_editor and runners:
        runners = 0
        note("one game in the editor: it is played without env runners")
    if not isinstance(runners, int) or runners < 0:
        raise UserError(f"num_workers: expected 0 or more, got {runners}")
    mapping = file.mapping or policy_of
    if file.mapping is None and len(file.policies) == 1:
        (only,) = file.policies
        mapping = lambda *_, **__: only  # noqa: E731 - Ray pickles functions too
    every = (options.checkpoint_frequency, file.checkpoint_frequency, CHECKPOINT_EVERY)
    return Plan(
        options=options,
        file=file,
        algorithm=algorithm,
        source=source,
        before=before,
        game=game,
        runners=runners,
        limits=_limits(options, file),
        seed=_first(options.seed, file.game.get("seed"), 0),
        checkpoint_every=_first(*every),
        mapping=mapping,
        model=model,
        settings=settings,
        rule=rule,
    )


def launch_of(game: Mapping[str, Any]) -> Launch:
    """How a game is started; rejects invalid options."""
    return Launch(**{key: value for key, value in game.items() if key != "key"})


def _game(options: RllibSettings, file: FileConfig) -> dict[str, Any]:
    """The file's options, over them the command line's except timeouts, which have defaults.

    The game's own arguments may come from both.
    """
    known = options.game_options() | {"seed": options.seed}
    given = {
        key: value
        for key, value in known.items()
        if value is not None and value is not False and not key.endswith("timeout_sec")
    }
    game = known | file.game | given
    game["arguments"] = (file.game.get("arguments") or {}) | (known.get("arguments") or {})
    if (path := game.get("env_path")) and path != "debug":
        # Env runners have another current directory.
        game["env_path"] = str(Path(path).expanduser().absolute())
    return {key: value for key, value in game.items() if value is not None}


def _limits(options: RllibSettings, file: FileConfig) -> StopLimits:
    """The stop mode decides if there is one; otherwise every limit that is given."""
    steps = _first(options.timesteps, file.stop.get("timesteps"), None)
    seconds = _first(options.time_seconds, file.stop.get("seconds"), None)
    iterations: Any = file.stop.get("iterations")
    reward = file.stop.get("reward")
    match options.stop_mode:
        case "none":
            return StopLimits()
        case "time_seconds" if seconds is not None:
            return StopLimits(seconds=seconds, reward=reward)
        case "time_seconds" | "timesteps":
            if options.stop_mode == "time_seconds":
                note("stop_mode time_seconds: no time given, using --timesteps")
            return StopLimits(timesteps=steps or DEFAULT_STEPS, reward=reward)
    if steps is None and seconds is None and iterations is None:
        steps = DEFAULT_STEPS
    return StopLimits(steps, seconds, iterations, reward)


def _hyperparameters(
    options: RllibSettings, algorithm: RllibAlgorithm, file: FileConfig, before: About | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the algorithm and of its networks."""
    given = options.hyperparameters.given()
    if unused := sorted(set(given) - algorithm.takes):
        names = ", ".join(name.rstrip("_") for name in unused)
        note(f"not used by {algorithm.name}: {names}")
    taken = {key: given[key] for key in given if key in algorithm.takes}
    layers = taken.pop("fcnet_hiddens", None)
    settings = dict(algorithm.defaults)
    model: dict[str, Any] = {"fcnet_hiddens": list(LAYERS), "vf_share_layers": False}
    if before is not None:
        settings |= before.settings
        model = dict(before.model)
        if file.model or layers is not None:
            note("the networks stay as they are in the checkpoint")
    else:
        model |= file.model | ({} if layers is None else {"fcnet_hiddens": list(layers)})
    settings |= file.settings
    settings |= {OLD_NAMES.get(key, key): value for key, value in taken.items()}
    if algorithm.name == "sac" and "lr" in settings:
        rate = settings.pop("lr")
        settings |= dict.fromkeys(("actor_lr", "critic_lr", "alpha_lr"), rate)
    return settings, model


def _first(*values: Any) -> Any:
    """The first that is set, or the last."""
    return next((value for value in values[:-1] if value is not None), values[-1])


def build(
    plan: Plan, roles: dict[str, Role], game: dict[str, Any]
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


def config_of(plan: Plan, roles: dict[str, Role], game: dict[str, Any]) -> AlgorithmConfig:
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
        .callbacks(callbacks_class=LessonCallback)
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
