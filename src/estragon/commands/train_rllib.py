"""`estragon train rllib`: any Godot game, learned with Ray RLlib."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Self

import tyro

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional
from estragon.trainers.controller import MOST_PARALLEL, Controller
from estragon.trainers.rllib.hyperparameters import Hyperparameters
from estragon.trainers.rllib.names import Device, Name, StopMode

PATH = optional("PATH")
RENAMED = {
    "algorithm": "algo",
    "env_action_repeat": "action_repeat",
    "env_speedup": "speedup",
    "lambda": "lambda_",
    "resume_from": "restore",
    "show_window": "viz",
    "stop_file_path": "stop_file",
    "stop_time_seconds": "time_seconds",
}
"""What the controller calls it → what we do."""


@dataclasses.dataclass(frozen=True)
class TrainRllib:
    """Train the agents of a Godot game with Ray RLlib.

    What is not given here is taken from .rlcontroller/training_config.json, if that is there, then
    from the YAML file.
    """

    config_file: Annotated[Path | None, PATH] = None
    """A YAML file with the environment, the policies and RLlib's settings; by default
    rllib_config.yaml, if that is there."""
    env_path: Annotated[str | None, PATH] = None
    """A project folder, a .pck or an exported game; if not given, waits for the editor's Play."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play, such as res://training.tscn; else the game's main scene."""
    algo: Annotated[Name | None, optional("NAME")] = None
    """The algorithm: ppo, dqn, sac, appo or impala; by default that of the checkpoint to restore,
    or ppo."""
    stop_mode: Annotated[StopMode | None, optional("MODE")] = None
    """When to stop: none (only when asked to), time_seconds or timesteps; by default by what is
    given."""
    timesteps: Annotated[int | None, optional("STEPS")] = None
    """Steps of all agents together, 1,000,000 by default; after a restore, so many more."""
    time_seconds: Annotated[float | None, optional("SECONDS")] = None
    """How long to train."""
    stop_file: Annotated[Path | None, PATH] = None
    """The file whose presence ends the run; by default .rlcontroller/STOP."""
    num_workers: Annotated[int | None, optional("N")] = None
    """Env runners, each a process with a game of its own; 2 by default, 0: all in one process."""
    address: Annotated[str | None, optional("HOST:PORT")] = None
    """A Ray cluster to use, or auto; by default a Ray of its own on this machine."""
    speedup: Annotated[float | None, optional("TIMES")] = None
    """1 to 100 times real time, in a window; without one a game is never slowed down."""
    action_repeat: Annotated[int | None, optional("TICKS")] = None
    """Physics ticks that an action lasts; by default what the game says."""
    viz: bool = False
    """Show windows."""
    experiment_dir: Path = Path("logs/rllib")
    """Where runs keep their files."""
    experiment_name: Annotated[str | None, optional("NAME")] = None
    """The run's files are in a new folder <name>_<number>."""
    seed: Annotated[int | None, optional("N")] = None
    """Of the games and of the beginnings."""
    device: Device = "auto"
    """auto takes the CPU, faster for small networks."""
    restore: Annotated[Path | None, PATH] = None
    """A checkpoint to go on with, or a run, whose latest it is; to play with --inference."""
    checkpoint_frequency: Annotated[int | None, optional("ITERATIONS")] = None
    """Save a checkpoint every so many iterations; 0: only at the end."""
    onnx_export_path: Annotated[Path | None, PATH] = None
    """A folder in which to write every policy at the end as <policy>.onnx, for games."""
    inference: bool = False
    """Play the checkpoint instead of training it, for --timesteps."""
    step_timeout: float = 60.0
    """Seconds that a game may take for an answer."""
    start_timeout: float = 60.0
    """Seconds that a game may take to start and connect."""
    strict_import: bool = False
    """Refuse a project in which anything is broken; else missing decoration is a warning."""
    port: Annotated[int | None, optional("PORT")] = None
    """Where to wait for the editor, 11008 by default."""
    hyperparameters: tyro.conf.OmitArgPrefixes[Hyperparameters] = dataclasses.field(
        default_factory=Hyperparameters
    )

    @classmethod
    def usual(cls) -> Self:
        """The options where nothing is given: those of the controller's file, or none."""
        found = Controller().said("rllib_")
        if "stop_timesteps_total" in found:
            found["timesteps"] = found.pop("stop_timesteps_total")
        said = {RENAMED.get(key, key): value for key, value in found.items()}
        for name in ("restore", "stop_file"):
            if name in said:
                said[name] = Path(said[name])
        numbers = {field.name for field in dataclasses.fields(Hyperparameters)}
        own: dict[str, Any] = {key: said[key] for key in said if key not in numbers}
        of_learning = {key: said[key] for key in said if key in numbers}
        return cls(**own, hyperparameters=Hyperparameters(**of_learning))

    def run(self) -> int:
        """Train, or play."""
        self._check()
        from estragon.trainers.rllib.plan import plan_of

        if self.inference:
            from estragon.trainers.rllib.inference import play

            return play(plan_of(self))
        from estragon.trainers.rllib.training import train

        return train(plan_of(self))

    def _check(self) -> None:
        for name, least, most in (
            ("timesteps", 1, None),
            ("time_seconds", 0.0, None),
            ("num_workers", 0, MOST_PARALLEL),
            ("speedup", 1.0, 100.0),
            ("action_repeat", 1, None),
            ("checkpoint_frequency", 0, None),
            ("seed", 0, 2**31 - 1),
        ):
            check_span(f"--{name}", getattr(self, name), least, most)
        if self.inference and self.restore is None:
            raise UserError("--inference: which checkpoint? give --restore")
        if self.onnx_export_path is not None:
            ensure_writable(self.onnx_export_path / "policy.onnx")
