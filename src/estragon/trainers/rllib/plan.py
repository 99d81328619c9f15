"""What a run is: the command line over the controller's file over the YAML file over defaults."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estragon.envs.launch import Launch
from estragon.envs.pettingzoo_env import policy_of
from estragon.support.errors import UserError
from estragon.trainers.rllib.algorithms import RllibAlgorithm, algorithm_of
from estragon.trainers.rllib.checkpoint import About, Checkpoint
from estragon.trainers.rllib.settings import (
    OLD_NAMES,
    FileConfig,
    PolicyMapping,
    RllibSettings,
    read_config_file,
)
from estragon.trainers.run import StopLimits
from estragon.trainers.settings import note

DEFAULT_STEPS, RUNNERS, CHECKPOINT_EVERY = 1_000_000, 2, 20
LAYERS = (64, 64)


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

    @property
    def from_editor(self) -> bool:
        """Whether the game is started by hand, in the editor."""
        return launch_of(self.game).from_editor

    def model_of(self, policy: str) -> dict[str, Any]:
        """The networks of one policy."""
        if self.before is not None:
            return self.model | self.before.models.get(policy, {})
        return self.model | (self.file.policies.get(policy, {}).get("model") or {})


def plan_of(options: RllibSettings) -> Plan:
    """Combine what the command line, the files and the checkpoint set."""
    file = read_config_file(options.config_file)
    source = None if options.restore is None else Checkpoint.find(options.restore)
    before = source.about if source is not None else None
    wanted = options.algo or file.algorithm
    if source is not None and before is not None and wanted not in (None, before.algo):
        raise UserError(f"{source.path} was trained with {before.algo}, not {wanted}")
    algorithm = algorithm_of(before.algo if before is not None else wanted or "ppo")
    settings, model = _hyperparameters(options, algorithm, file, before)
    game = _game(options, file)
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
    )


def launch_of(game: Mapping[str, Any]) -> Launch:
    """How a game is started; rejects invalid options."""
    return Launch(**{key: value for key, value in game.items() if key != "key"})


def _game(options: RllibSettings, file: FileConfig) -> dict[str, Any]:
    """The file's options, over them the command line's except timeouts, which have defaults."""
    known = options.game_options() | {"seed": options.seed}
    given = {
        key: value
        for key, value in known.items()
        if value is not None and value is not False and not key.endswith("timeout_sec")
    }
    game = known | file.game | given
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
