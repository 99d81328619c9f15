"""Options that every trainer has: the game, the device, and defaults from the controller's file.

Needs no trainer's packages, so that `--help` works without them.
"""

import dataclasses
import os
from typing import Annotated, Any, ClassVar, Literal, Self

from estragon.support.errors import UserError
from estragon.support.options import check_span, optional
from estragon.trainers.controller import Controller

Device = Literal["auto", "cpu", "cuda"]
Ranges = dict[str, tuple[float, float | None]]
PATH, NUMBER, WHOLE = optional("PATH"), optional("NUMBER"), optional("N")
MAX_PARALLEL = 64
MAX_SPEEDUP = 100.0
MAX_SEED = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class BaseHyperparameters:
    """Hyper-parameters of all algorithms of a library; None is the algorithm's own default."""

    RANGES: ClassVar[Ranges] = {}

    def __post_init__(self) -> None:
        """Reject values that are out of range."""
        for name, (least, most) in self.RANGES.items():
            check_span(name.rstrip("_"), getattr(self, name), least, most)

    def given(self) -> dict[str, Any]:
        """Only those that were set."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in found.items() if value is not None}


@dataclasses.dataclass(frozen=True)
class TrainerSettings:
    """What both trainers take; each adds its own, among them `hyperparameters`."""

    env_path: Annotated[str | None, PATH] = None
    """A project folder, a .pck or an exported game; without it, waits for Play in the editor."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play, such as res://training.tscn; by default the game's main scene."""
    speedup: Annotated[float | None, optional("TIMES")] = None
    """Speed in a window, 1 to 100 times real time; without a window, games run as fast as
    possible."""
    action_repeat: Annotated[int | None, optional("TICKS")] = None
    """Physics ticks per action; by default the game's own setting."""
    viz: bool = False
    """Show the games in windows."""
    device: Device = "auto"
    """Where networks are computed; auto is the CPU, which is faster for small networks, or CUDA, if
    available, for images with SB3."""
    step_timeout: float = 60.0
    """Seconds to wait for a game's reply to a step."""
    start_timeout: float = 60.0
    """Seconds to wait for a game to start and connect."""
    strict_import: bool = False
    """Reject a project with any import error; by default missing decoration is only a warning."""
    port: Annotated[int | None, optional("PORT")] = None
    """Port to listen on; by default 11008 for the editor, otherwise any free port."""
    inference: bool = False
    """Play the trained model for --timesteps instead of training."""

    CONTROLLER_PREFIX: ClassVar[str] = ""
    """Of this trainer's keys in the controller's file."""
    HYPERPARAMETERS: ClassVar[type[BaseHyperparameters]] = BaseHyperparameters
    RANGES: ClassVar[Ranges] = {
        "timesteps": (1, None),
        "speedup": (1.0, MAX_SPEEDUP),
        "action_repeat": (1, None),
        "seed": (0, MAX_SEED),
    }

    @classmethod
    def from_controller(cls) -> dict[str, Any]:
        """What the controller's file sets, by option name."""
        return Controller().options(cls.CONTROLLER_PREFIX)

    @classmethod
    def defaults(cls) -> Self:
        """The options before the command line: the controller's file over the class's defaults."""
        found = cls.from_controller()
        names = {field.name for field in dataclasses.fields(cls.HYPERPARAMETERS)}
        hyperparameters = {key: found.pop(key) for key in names & set(found)}
        found["hyperparameters"] = cls.HYPERPARAMETERS(**hyperparameters)
        return cls(**found)

    def check(self) -> None:
        """Reject values that are out of range."""
        for name, (least, most) in self.RANGES.items():
            check_span(f"--{name}", getattr(self, name), least, most)


def choose_device(asked: Device, *, images: bool = False) -> str:
    """The CPU, unless CUDA is asked for, or available and there are images to see."""
    import torch

    if asked == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: CUDA is not available; use --device cpu")
    if asked == "auto":
        return "cuda" if images and torch.cuda.is_available() else "cpu"
    return asked


def use_one_thread() -> None:
    """Threads only slow down small layers; OMP_NUM_THREADS overrides this."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
