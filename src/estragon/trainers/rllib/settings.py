"""Options of training with RLlib; imports nothing heavy, so that `--help` is quick."""

import copy
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tyro

from estragon.envs.launch import Launch
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_whole
from estragon.support.options import optional
from estragon.trainers.settings import (
    PARALLEL,
    PATH,
    SEED,
    BaseHyperparameters,
    Count,
    Number,
    Share,
    Span,
    TrainerSettings,
    joined_sections,
    note,
)

AlgorithmName = Literal["ppo", "dqn", "sac", "appo", "impala"]
StopMode = Literal["none", "time_seconds", "timesteps"]


@dataclasses.dataclass(frozen=True)
class RllibHyperparameters(BaseHyperparameters):
    """Hyperparameters that a controller can set; a YAML file can set everything in RLlib."""

    train_batch_size: Count = None
    """Agent-steps per update."""
    sgd_minibatch_size: Count = None
    """Steps per minibatch."""
    num_sgd_iter: Count = None
    """Passes over the batch per update."""
    rollout_fragment_length: Count = None
    """Agent-steps that an env runner collects at a time."""
    lr: Number = None
    """Learning rate."""
    gamma: Share = None
    """Discount factor."""
    lambda_: Annotated[float | None, optional("NUMBER", name="lambda"), Span(0, 1)] = None
    """Lambda of generalized advantage estimation, 0 to 1."""
    clip_param: Number = None
    """PPO's clipping range."""
    entropy_coeff: Number = None
    """Weight of the entropy bonus."""
    vf_loss_coeff: Number = None
    """Weight of the value loss."""
    grad_clip: Number = None
    """Maximum norm of the gradient."""
    fcnet_hiddens: Annotated[tuple[int, ...] | None, optional("N …")] = None
    """Units of each hidden layer; by default 64 64."""

    def __post_init__(self) -> None:
        """Reject values that are out of range."""
        super().__post_init__()
        sizes = self.fcnet_hiddens
        if sizes is not None and (not sizes or min(sizes) < 1):
            raise UserError(f"fcnet_hiddens: expected sizes, got {sizes}")


@dataclasses.dataclass(frozen=True)
class RllibSettings(TrainerSettings):
    """Options of an RLlib run."""

    config_file: Annotated[Path | None, PATH] = None
    """A YAML file with the environment, the policies and RLlib's settings; by default
    rllib_config.yaml, if it exists."""
    algo: Annotated[AlgorithmName | None, optional("NAME")] = None
    """The algorithm: ppo, dqn, sac, appo or impala; by default that of the restored checkpoint, or
    ppo."""
    stop_mode: Annotated[StopMode | None, optional("MODE")] = None
    """When to stop: none (only on request), time_seconds or timesteps; by default at the first
    limit that is reached."""
    timesteps: Annotated[int | None, optional("STEPS"), Span(1)] = None
    """Steps of all agents together, by default 1,000,000; after a restore, this many more."""
    time_seconds: Annotated[float | None, optional("SECONDS"), Span(0)] = None
    """Training time limit."""
    stop_file: Annotated[Path | None, PATH] = None
    """Stop when this file exists; by default .rlcontroller/STOP."""
    num_workers: Annotated[int | None, optional("N"), Span(0, PARALLEL.most)] = None
    """Number of env runners, each a process with its own game; by default 2; 0: all in one
    process."""
    address: Annotated[str | None, optional("HOST:PORT")] = None
    """Address of a Ray cluster, or auto; by default a private Ray on this machine."""
    experiment_dir: Path = Path("logs/rllib")
    """Directory of the runs."""
    experiment_name: str = "experiment"
    """The run directory is <name>_<number>."""
    seed: Annotated[int | None, optional("N"), SEED] = None
    """Seed of the games and of the initial weights."""
    restore: Annotated[Path | None, PATH] = None
    """A checkpoint to resume, or to play with --inference; or a run directory to use its latest
    one."""
    checkpoint_frequency: Annotated[int | None, optional("ITERATIONS"), Span(0)] = None
    """Iterations between checkpoints; 0: only at the end."""
    onnx_export_path: Annotated[Path | None, PATH] = None
    """At the end, export every policy to this folder as <policy>.onnx, for games."""
    hyperparameters: tyro.conf.OmitArgPrefixes[RllibHyperparameters] = dataclasses.field(
        default_factory=RllibHyperparameters
    )

    CONTROLLER_PREFIX: ClassVar[str] = "rllib_"
    HYPERPARAMETERS: ClassVar[type[BaseHyperparameters]] = RllibHyperparameters
    CONTROLLER_KEYS: ClassVar[dict[str, str]] = {
        "algorithm": "algo",
        "checkpoint_frequency": "checkpoint_frequency",
        "env_action_repeat": "action_repeat",
        "env_speedup": "speedup",
        "num_workers": "num_workers",
        "resume_from": "restore",
        "show_window": "viz",
        "stop_file_path": "stop_file",
        "stop_mode": "stop_mode",
        "stop_time_seconds": "time_seconds",
        "stop_timesteps_total": "timesteps",
    }

    def check(self) -> None:
        """Reject what cannot work before anything starts."""
        super().check()
        if self.inference and self.restore is None:
            raise UserError("--inference needs a checkpoint; give --restore")
        if self.onnx_export_path is not None:
            ensure_writable(self.onnx_export_path / "policy.onnx")


DEFAULT_PATH = Path("rllib_config.yaml")
TOP_KEYS = {"algorithm", "stop", "config", "checkpoint_frequency", "env_is_multiagent"}
TOP_KEYS |= {"parameters", "curriculum"}
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
"""The name in older versions of RLlib → the current one."""
IGNORED = (
    {"clip_actions", "create_env_on_driver", "disable_env_checking", "env", "env_is_multiagent"}
    | {"framework", "horizon", "log_level", "no_done_at_end", "num_envs_per_env_runner"}
    | {"num_envs_per_worker", "num_gpus", "observation_filter", "simple_optimizer", "soft_horizon"}
)
"""Settings of older versions that have no meaning now, or only one possible value."""
ENV_KEYS = {field.name for field in dataclasses.fields(Launch)} | {"key"}
ENV_KEYS -= {"draws", "log_folder", "n_parallel"}
MULTIAGENT_KEYS = {"policies", "policy_mapping_fn", "policies_to_train", "count_steps_by"}
STOPS = {
    "time_total_s": "seconds",
    "time_seconds": "seconds",
    "timesteps_total": "timesteps",
    "timesteps": "timesteps",
    "num_env_steps_sampled_lifetime": "timesteps",
    "training_iteration": "iterations",
    "episode_reward_mean": "reward",
}
HEAD = """\
# Settings of `estragon train rllib`. The controller sets what its form has when it starts a run.
# All other keys are yours (docs/rllib.md): several policies, their networks, what else RLlib has.
"""
PLACES = {
    "env_path": "env_config.env_path",
    "env_action_repeat": "env_config.action_repeat",
    "env_speedup": "env_config.speedup",
    "show_window": "env_config.show_window",
    "fcnet_hiddens": "model.fcnet_hiddens",
    "stop_time_seconds": "stop.time_total_s",
    "stop_timesteps_total": "stop.timesteps_total",
}
"""A controller's key without its prefix → where it is in a file; others are at the top."""
ONLY_OF_CONTROLLERS = {"experiment_name", "mode", "resume_from", "stop_file_path", "stop_mode"}
NUMBER = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
"""YAML reads 3e-4 as a string."""
PolicyMapping = Callable[..., str]
"""Agent → policy; also takes RLlib's `episode`."""


@dataclasses.dataclass(frozen=True)
class FileConfig:
    """What a file sets; None or empty where it does not."""

    algorithm: str | None = None
    game: dict[str, Any] = dataclasses.field(default_factory=dict)
    stop: dict[str, float] = dataclasses.field(default_factory=dict)
    checkpoint_frequency: int | None = None
    policies: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    """By name, its own settings."""
    mapping: PolicyMapping | None = None
    to_train: tuple[str, ...] | None = None
    model: dict[str, Any] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    """By RLlib's current names."""
    parameters: Any = None
    """The path of a parameter file, or its sections."""


@dataclasses.dataclass(frozen=True)
class TableMapping:
    """A table from an agent, or the game's name of its policy, to a policy."""

    table: dict[str, str]

    def __call__(self, agent_id: str, *_: Any, **__: Any) -> str:
        """The policy of an agent; one that is not in the table keeps the game's."""
        from estragon.envs.pettingzoo_env import policy_of

        in_game = policy_of(agent_id)
        return self.table.get(agent_id, self.table.get(in_game, in_game))


@dataclasses.dataclass(frozen=True)
class CodeMapping:
    """The user's function as source code, which every process compiles for itself."""

    code: str
    where: str

    def __post_init__(self) -> None:
        """Report errors now."""
        _compile(self.code, self.where)

    def __call__(self, agent_id: str, episode: Any = None, *_: Any, **__: Any) -> str:
        """What the function returns for an agent."""
        function = _compile(self.code, self.where)
        known = inspect.signature(function).parameters
        more = {"episode": episode, "worker": None}
        return str(function(agent_id, **{key: more[key] for key in more if key in known}))


@functools.cache
def _compile(code: str, where: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    try:
        exec(compile(code, where, "exec"), names)  # noqa: S102 - the user's own
    except Exception as error:
        raise UserError(f"policy_mapping_fn: {error}") from error
    function = names.get("policy_mapping_fn")
    if not callable(function):
        raise UserError("expected def policy_mapping_fn(agent_id, …)")
    return function  # type: ignore[no-any-return]


def read_config_file(path: Path | None) -> FileConfig:
    """Read a file, by default rllib_config.yaml if it exists."""
    import yaml

    if path is None and not DEFAULT_PATH.exists():
        return FileConfig()
    path = path or DEFAULT_PATH
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    try:
        return _read(found, path)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def write_config_file(path: Path, config: dict[str, Any]) -> None:
    """Set what a controller's `training_config.json` says in a file; all other keys stay."""
    import yaml

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    changed = copy.deepcopy(found) if isinstance(found, dict) else {}
    for name, value in config.items():
        key = name.removeprefix(RllibSettings.CONTROLLER_PREFIX)
        if key in ONLY_OF_CONTROLLERS:
            continue
        *sections, last = PLACES.get(key, key).split(".")
        if "config" in changed and (sections or [last])[0] not in TOP_KEYS:
            sections = ["config", *sections]
        table = changed
        for section in sections:
            if not isinstance(table.get(section), dict):
                table[section] = {}
            table = table[section]
        if value is None:
            table.pop(last, None)
        else:
            table[last] = value
    changed = {key: value for key, value in changed.items() if value != {}}
    if changed != found:
        text = yaml.safe_dump(changed, sort_keys=False, allow_unicode=True)
        write_whole(path, (HEAD + text).encode())


def _read(found: Any, path: Path) -> FileConfig:
    everything = _table(found, "")
    top = {key: value for key, value in everything.items() if key in TOP_KEYS}
    config = _table(top.get("config"), "config")
    flat = {key: value for key, value in everything.items() if key not in TOP_KEYS}
    if config and flat:
        raise UserError(f"{', '.join(sorted(flat))}: put it under config, as the rest is")
    # Controllers of older versions write env_is_multiagent beside the settings.
    rest = config or flat | {key: top[key] for key in top if key in IGNORED}
    if ignored := sorted((IGNORED & set(rest)) - {"env", "framework"}):
        note(f"{path}: settings of an older RLlib, not used: {', '.join(ignored)}")
    if rest.get("framework", "torch") not in ("torch", None):
        raise UserError(f"framework: expected torch, got {rest['framework']}")
    every = top.get("checkpoint_frequency", rest.get("checkpoint_frequency"))
    if every is not None and (not isinstance(every, int) or every < 0):
        raise UserError(f"checkpoint_frequency: expected iterations, got {every}")
    game = _table(rest.get("env_config"), "env_config", ENV_KEYS)
    several = _table(rest.get("multiagent"), "multiagent", MULTIAGENT_KEYS)
    policies = _policies(several.get("policies") or {})
    algorithm = top.get("algorithm")
    read = {"multiagent", "env_config", "model", "checkpoint_frequency"} | IGNORED
    return FileConfig(
        algorithm=None if algorithm is None else str(algorithm).lower(),
        game=game,
        stop=_stop(_table(top.get("stop"), "stop")),
        checkpoint_frequency=every,
        policies=policies,
        mapping=_mapping(several.get("policy_mapping_fn"), path),
        to_train=_to_train(several.get("policies_to_train"), policies),
        model=_table(rest.get("model"), "model"),
        settings={OLD_NAMES.get(key, key): rest[key] for key in rest if key not in read},
        parameters=joined_sections(top.get("parameters"), top.get("curriculum")),
    )


def _policies(found: Any) -> dict[str, dict[str, Any]]:
    named = dict.fromkeys(found) if isinstance(found, list) else _table(found, "policies")
    return {name: _table(own, f"policies.{name}") for name, own in named.items()}


def _to_train(found: Any, policies: dict[str, Any]) -> tuple[str, ...] | None:
    if found is None:
        return None
    names = tuple(found if isinstance(found, list) else [found])
    if policies and (unknown := sorted(set(names) - set(policies))):
        raise UserError(f"policies_to_train: no policy {', '.join(unknown)}")
    return names


def _mapping(found: Any, path: Path) -> PolicyMapping | None:
    if isinstance(found, dict):
        return TableMapping({str(key): str(value) for key, value in found.items()})
    if isinstance(found, str):
        note(f"{path}: running the code of its policy_mapping_fn")
        return CodeMapping(found, str(path))
    if found is not None:
        raise UserError("policy_mapping_fn: expected a table or a function")
    return None


def _stop(found: dict[str, Any]) -> dict[str, float]:
    stop: dict[str, float] = {}
    for key, value in found.items():
        name = STOPS.get(key.rpartition("/")[2])
        if name is None:
            raise UserError(f"stop: unknown {key}; expected {', '.join(STOPS)}")
        if not isinstance(value, int | float):
            raise UserError(f"stop: {key}: expected a number, got {value}")
        stop[name] = int(value) if name in ("timesteps", "iterations") else value
    return stop


def _table(found: Any, where: str, known: set[str] | None = None) -> dict[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise UserError(f"{where}: expected names and values, got {kind}".lstrip(": "))
    if known is not None and (unknown := sorted(set(map(str, found)) - known)):
        expected = ", ".join(sorted(known))
        raise UserError(f"{where}: unknown {', '.join(unknown)}; expected {expected}")
    return {
        str(key): float(value) if isinstance(value, str) and NUMBER.fullmatch(value) else value
        for key, value in found.items()
    }
