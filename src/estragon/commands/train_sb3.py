"""`estragon train sb3`: any Godot game, learned with Stable-Baselines3."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Self

import tyro

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional
from estragon.trainers.controller import MOST_PARALLEL, Controller
from estragon.trainers.sb3.hyperparameters import Hyperparameters
from estragon.trainers.sb3.names import Device, Name, PolicyType

FASTEST = 100.0
PATH = optional("PATH")


@dataclasses.dataclass(frozen=True)
class TrainSb3:
    """Train the agents of a Godot game with Stable-Baselines3.

    What is not given here is taken from .rlcontroller/training_config.json, if that is there.
    """

    env_path: Annotated[str | None, PATH] = None
    """A project folder, a .pck or an exported game; if not given, waits for the editor's Play."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play, such as res://training.tscn; else the game's main scene."""
    algo: Annotated[Name | None, optional("NAME")] = None
    """The algorithm: ppo, a2c, sac, td3, ddpg, dqn, recurrent_ppo or maskable_ppo; by default that
    of the model to resume, or ppo."""
    policy_type: PolicyType = "mlp"
    """mlp: layers alone; cnn: convolutions for images before them; lstm: a memory."""
    policy_layers: tuple[int, ...] = (64, 64)
    """How many neurons the layers have."""
    timesteps: int = 1_000_000
    """Steps of all agents together; after a resume, so many more."""
    speedup: Annotated[float | None, optional("TIMES")] = None
    """1 to 100 times real time, in a window; without one a game is never slowed down."""
    n_parallel: int = 1
    """Games side by side, 1 to 64."""
    action_repeat: Annotated[int | None, optional("TICKS")] = None
    """Physics ticks that an action lasts; by default what the game says."""
    viz: bool = False
    """Show a window."""
    experiment_dir: Path = Path("logs/sb3")
    """Where runs keep their files."""
    experiment_name: str = "experiment"
    """The run's files are in a new folder <name>_<number>."""
    seed: int = 0
    """Same seed, same games and same beginnings."""
    device: Device = "auto"
    """auto takes the CPU, faster for small networks, and CUDA for images if there is one."""
    resume_model_path: Annotated[Path | None, PATH] = None
    """A model to go on with, or to play with --inference."""
    save_model_path: Annotated[Path | None, PATH] = None
    """Where to write the model at the end, besides the run's folder."""
    save_checkpoint_frequency: Annotated[int | None, optional("STEPS")] = None
    """Save a checkpoint every so many steps."""
    onnx_export_path: Annotated[Path | None, PATH] = None
    """Write the policy at the end as ONNX, for games."""
    demos: Annotated[Path | None, PATH] = None
    """Demonstrations that a game recorded: the policy first learns to do the same."""
    demo_rounds: int = 100
    """How often it goes through them at most."""
    inference: bool = False
    """Play the model instead of training it, for --timesteps."""
    linear_lr_schedule: bool = False
    """Let the learning rate fall to 0 at the end."""
    normalize: bool = False
    """Bring observations and rewards to a common size; a resumed model knows it by itself."""
    step_timeout: float = 60.0
    """Seconds that a game may take for an answer."""
    start_timeout: float = 60.0
    """Seconds that a game may take to start and connect."""
    strict_import: bool = False
    """Refuse a project in which anything is broken; else missing decoration is a warning."""
    port: Annotated[int | None, optional("PORT")] = None
    """Where to listen; by default 11008 for the editor, else any that is free."""
    hyperparameters: tyro.conf.OmitArgPrefixes[Hyperparameters] = dataclasses.field(
        default_factory=Hyperparameters
    )

    @classmethod
    def usual(cls) -> Self:
        """The options where nothing is given: those of the controller's file, or of this class."""
        said = Controller().said("sb3_")
        numbers = {field.name for field in dataclasses.fields(Hyperparameters)}
        own: dict[str, Any] = {key: said[key] for key in said if key not in numbers}
        of_learning = {key: said[key] for key in said if key in numbers}
        return cls(**own, hyperparameters=Hyperparameters(**of_learning))

    def run(self) -> int:
        """Train, or play."""
        self._check()
        from estragon.trainers.sb3.inference import play
        from estragon.trainers.sb3.training import train

        if self.inference and self.resume_model_path is not None:
            return play(self, self.resume_model_path)
        return train(self)

    def _check(self) -> None:
        for name, least, most in (
            ("timesteps", 1, None),
            ("n_parallel", 1, MOST_PARALLEL),
            ("speedup", 1.0, FASTEST),
            ("action_repeat", 1, None),
            ("demo_rounds", 1, None),
            ("save_checkpoint_frequency", 1, None),
            ("seed", 0, 2**31 - 1),
        ):
            check_span(f"--{name}", getattr(self, name), least, most)
        if not self.policy_layers or min(self.policy_layers) < 1:
            raise UserError(f"--policy_layers: expected sizes, got {self.policy_layers}")
        if self.inference and self.resume_model_path is None:
            raise UserError("--inference: which model? give --resume_model_path")
        for path in (self.save_model_path, self.onnx_export_path):
            if path is not None:
                ensure_writable(path)
