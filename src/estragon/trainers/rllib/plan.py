"""What a run shall be, after the command line, the controller's file and the YAML file spoke."""

import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from estragon.envs.launch import Launch
from estragon.envs.pettingzoo_env import policy_of
from estragon.support.errors import UserError
from estragon.trainers.rllib.algorithms import Algorithm, algorithm_of
from estragon.trainers.rllib.checkpoint import Checkpoint
from estragon.trainers.rllib.config_file import OLD_NAMES, FileConfig, read_config_file
from estragon.trainers.rllib.mapping import OneForAll
from estragon.trainers.rllib.settings import RllibSettings
from estragon.trainers.run import Limits

STEPS, RUNNERS, EVERY = 1_000_000, 2, 20
LAYERS = (64, 64)


@dataclasses.dataclass(frozen=True)
class Plan:
    """All of it."""

    options: RllibSettings
    algorithm: Algorithm
    source: Checkpoint | None
    """What it goes on with."""
    game: dict[str, Any]
    """Options of the environment."""
    runners: int
    stop: Limits
    name: str
    seed: int
    checkpoint_every: int
    policies: dict[str, dict[str, Any]]
    """By name, settings of its own; empty: the game's policies."""
    mapping: Callable[..., str]
    to_train: tuple[str, ...] | None
    model: dict[str, Any]
    settings: dict[str, Any]
    """By RLlib's names."""

    @property
    def by_hand(self) -> bool:
        """Whether somebody else starts the game."""
        return launch_of(self.game).from_editor


def plan_of(options: RllibSettings) -> Plan:
    """Put together what was asked for."""
    said = read_config_file(options.config_file)
    source = None if options.restore is None else Checkpoint.find(options.restore)
    wanted = options.algo or said.algorithm
    name = source.algo if source is not None and source.algo is not None else wanted or "ppo"
    if source is not None and source.algo is not None and wanted not in (None, source.algo):
        raise UserError(f"{source.path} was trained with {source.algo}, not {wanted}")
    algorithm = algorithm_of(name)
    settings, model = _numbers(options, algorithm, said, source)
    game = _game(options, said)
    runners = _first(options.num_workers, settings.pop("num_env_runners", None), RUNNERS)
    if launch_of(game).from_editor and runners:
        runners = 0
        print("one game in the editor: no env runners of their own", file=sys.stderr)
    if not isinstance(runners, int) or runners < 0:
        raise UserError(f"num_workers: expected 0 or more, got {runners}")
    return Plan(
        options=options,
        algorithm=algorithm,
        source=source,
        game=game,
        runners=runners,
        stop=_stop(options, said),
        name=options.experiment_name or "experiment",
        seed=_first(options.seed, said.game.get("seed"), 0),
        checkpoint_every=_first(options.checkpoint_frequency, said.checkpoint_frequency, EVERY),
        policies=said.policies,
        mapping=_mapping(said),
        to_train=said.to_train,
        model=model,
        settings=settings,
    )


def launch_of(game: Mapping[str, Any]) -> Launch:
    """How a game is started; complains of options that make no sense."""
    return Launch(**{key: value for key, value in game.items() if key != "key"})


def _game(options: RllibSettings, said: FileConfig) -> dict[str, Any]:
    given: dict[str, Any] = {
        "env_path": _absolute(options.env_path),
        "scene": options.scene,
        "action_repeat": options.action_repeat,
        "speedup": options.speedup,
        "show_window": options.viz or None,
        "strict_import": options.strict_import or None,
        "port": options.port,
        "seed": options.seed,
    }
    game = said.game | {key: value for key, value in given.items() if value is not None}
    game["env_path"] = _absolute(game.get("env_path"))
    game.setdefault("step_timeout_sec", options.step_timeout)
    game.setdefault("start_timeout_sec", options.start_timeout)
    return {key: value for key, value in game.items() if value is not None}


def _absolute(path: str | None) -> str | None:
    """Env runners have a current folder of their own."""
    return str(Path(path).expanduser().absolute()) if path and path != "debug" else path


def _mapping(said: FileConfig) -> Callable[..., str]:
    if said.mapping is not None:
        return said.mapping
    return OneForAll(next(iter(said.policies))) if len(said.policies) == 1 else policy_of


def _stop(options: RllibSettings, said: FileConfig) -> Limits:
    """The mode decides if there is one; else every limit that was given."""
    steps = _first(options.timesteps, said.stop.get("timesteps"), None)
    seconds = _first(options.time_seconds, said.stop.get("seconds"), None)
    others = {key: said.stop.get(key) for key in ("iterations", "reward")}
    match options.stop_mode:
        case "none":
            return Limits()
        case "time_seconds":
            if seconds is not None:
                return Limits(seconds=seconds, reward=others["reward"])
            print("stop_mode time_seconds: no time is given, so steps count", file=sys.stderr)
            return Limits(timesteps=int(steps or STEPS), reward=others["reward"])
        case "timesteps":
            return Limits(timesteps=int(steps or STEPS), reward=others["reward"])
    if steps is None and seconds is None and others["iterations"] is None:
        steps = STEPS
    return Limits(
        None if steps is None else int(steps),
        seconds,
        None if others["iterations"] is None else int(others["iterations"]),
        others["reward"],
    )


def _numbers(
    options: RllibSettings, algorithm: Algorithm, said: FileConfig, source: Checkpoint | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the algorithm and of its networks; what was said last goes first."""
    given = options.hyperparameters.given()
    if unused := sorted(set(given) - algorithm.takes):
        named = ", ".join(name.rstrip("_") for name in unused)
        print(f"not used by {algorithm.name}: {named}", file=sys.stderr)
    taken = {key: given[key] for key in given if key in algorithm.takes}
    layers = taken.pop("fcnet_hiddens", None)
    settings = dict(algorithm.usual)
    model: dict[str, Any] = {"fcnet_hiddens": list(LAYERS), "vf_share_layers": False}
    if source is not None and source.about is not None:
        settings |= source.about.settings
        model = dict(source.about.model)
        if said.model or layers is not None:
            print("the networks stay as they are in the checkpoint", file=sys.stderr)
    else:
        model |= said.model | ({} if layers is None else {"fcnet_hiddens": list(layers)})
    settings |= said.settings
    settings |= {OLD_NAMES.get(key, key): value for key, value in taken.items()}
    if algorithm.name == "sac" and "lr" in settings:
        rate = settings.pop("lr")
        settings |= dict.fromkeys(("actor_lr", "critic_lr", "alpha_lr"), rate)
    return settings, model


def _first(*values: Any) -> Any:
    """What is said first."""
    return next((value for value in values[:-1] if value is not None), values[-1])


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those that a file of ours can hold."""
    kept = (str, int, float, bool, list, dict, tuple, type(None))
    return {key: value for key, value in settings.items() if isinstance(value, kept)}
