"""Options of training with RLlib; imports nothing heavy, so that `--help` is quick."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tyro

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.support.options import optional
from estragon.trainers.settings import (
    MAX_PARALLEL,
    NUMBER,
    PATH,
    WHOLE,
    BaseHyperparameters,
    Ranges,
    TrainerSettings,
)

AlgorithmName = Literal["ppo", "dqn", "sac", "appo", "impala"]
StopMode = Literal["none", "time_seconds", "timesteps"]
CONTROLLER_NAMES = {
    "algorithm": "algo",
    "env_action_repeat": "action_repeat",
    "env_speedup": "speedup",
    "lambda": "lambda_",
    "resume_from": "restore",
    "show_window": "viz",
    "stop_file_path": "stop_file",
    "stop_time_seconds": "time_seconds",
}
"""The controller's name → the option's."""


@dataclasses.dataclass(frozen=True)
class RllibHyperparameters(BaseHyperparameters):
    """Those that controllers know; a YAML file may set everything that RLlib has."""

    train_batch_size: Annotated[int | None, WHOLE] = None
    """Steps of agents per update."""
    sgd_minibatch_size: Annotated[int | None, WHOLE] = None
    """Steps per minibatch."""
    num_sgd_iter: Annotated[int | None, WHOLE] = None
    """Passes over the batch per update."""
    rollout_fragment_length: Annotated[int | None, WHOLE] = None
    """Steps of agents that an env runner collects at a time."""
    lr: Annotated[float | None, NUMBER] = None
    """Learning rate."""
    gamma: Annotated[float | None, NUMBER] = None
    """Discount factor."""
    lambda_: Annotated[float | None, optional("NUMBER", name="lambda")] = None
    """Bias against variance of advantages: 0 looks one step ahead, 1 to the end."""
    clip_param: Annotated[float | None, NUMBER] = None
    """Clipping of the probability ratio in PPO."""
    entropy_coeff: Annotated[float | None, NUMBER] = None
    """Weight of the entropy bonus."""
    vf_loss_coeff: Annotated[float | None, NUMBER] = None
    """Weight of the value loss."""
    grad_clip: Annotated[float | None, NUMBER] = None
    """Gradients are clipped to this norm."""
    fcnet_hiddens: Annotated[tuple[int, ...] | None, optional("N …")] = None
    """Units of each layer, by default 64 and 64."""

    RANGES: ClassVar[Ranges] = {
        **dict.fromkeys(("train_batch_size", "sgd_minibatch_size", "num_sgd_iter"), (1.0, None)),
        "rollout_fragment_length": (1.0, None),
        **dict.fromkeys(("gamma", "lambda_"), (0.0, 1.0)),
        **dict.fromkeys(
            ("lr", "clip_param", "entropy_coeff", "vf_loss_coeff", "grad_clip"), (0.0, None)
        ),
    }

    def __post_init__(self) -> None:
        """Reject values that are out of range."""
        super().__post_init__()
        sizes = self.fcnet_hiddens
        if sizes is not None and (not sizes or min(sizes) < 1):
            raise UserError(f"fcnet_hiddens: expected sizes, got {sizes}")


@dataclasses.dataclass(frozen=True)
class RllibSettings(TrainerSettings):
    """A run of training, or of a trained checkpoint."""

    config_file: Annotated[Path | None, PATH] = None
    """A YAML file with the environment, the policies and RLlib's settings; by default
    rllib_config.yaml, if it exists."""
    algo: Annotated[AlgorithmName | None, optional("NAME")] = None
    """The algorithm: ppo, dqn, sac, appo or impala; by default that of the checkpoint to restore,
    or ppo."""
    stop_mode: Annotated[StopMode | None, optional("MODE")] = None
    """When to stop: none (only on request), time_seconds or timesteps; by default at every limit
    that is given."""
    timesteps: Annotated[int | None, optional("STEPS")] = None
    """Steps of all agents together, 1,000,000 by default; after a restore, this many more."""
    time_seconds: Annotated[float | None, optional("SECONDS")] = None
    """How long to train."""
    stop_file: Annotated[Path | None, PATH] = None
    """The run stops when this file exists; by default .rlcontroller/STOP."""
    num_workers: Annotated[int | None, optional("N")] = None
    """Env runners, each a process with its own game; 2 by default, 0: all in one process."""
    address: Annotated[str | None, optional("HOST:PORT")] = None
    """A Ray cluster to join, or auto; by default a private Ray on this machine."""
    experiment_dir: Path = Path("logs/rllib")
    """Where run directories are made."""
    experiment_name: Annotated[str | None, optional("NAME")] = None
    """The run directory is <name>_<number>."""
    seed: Annotated[int | None, optional("N")] = None
    """Seed of the games and of the networks."""
    restore: Annotated[Path | None, PATH] = None
    """A checkpoint to resume, or a run directory for its latest; to play with --inference."""
    checkpoint_frequency: Annotated[int | None, optional("ITERATIONS")] = None
    """Iterations between checkpoints; 0: only at the end."""
    onnx_export_path: Annotated[Path | None, PATH] = None
    """A folder in which to write every policy as <policy>.onnx at the end, for games."""
    hyperparameters: tyro.conf.OmitArgPrefixes[RllibHyperparameters] = dataclasses.field(
        default_factory=RllibHyperparameters
    )

    CONTROLLER_PREFIX: ClassVar[str] = "rllib_"
    HYPERPARAMETERS: ClassVar[type[BaseHyperparameters]] = RllibHyperparameters
    RANGES: ClassVar[Ranges] = TrainerSettings.RANGES | {
        "time_seconds": (0.0, None),
        "num_workers": (0, MAX_PARALLEL),
        "checkpoint_frequency": (0, None),
    }

    @classmethod
    def from_controller(cls) -> dict[str, Any]:
        """What the controller's file sets, by option name."""
        found = super().from_controller()
        if "stop_timesteps_total" in found:
            found["timesteps"] = found.pop("stop_timesteps_total")
        named = {CONTROLLER_NAMES.get(key, key): value for key, value in found.items()}
        return named | {key: Path(named[key]) for key in ("restore", "stop_file") if key in named}

    def check(self) -> None:
        """Reject what cannot work before anything starts."""
        super().check()
        if self.inference and self.restore is None:
            raise UserError("--inference needs a checkpoint; give --restore")
        if self.onnx_export_path is not None:
            ensure_writable(self.onnx_export_path / "policy.onnx")
