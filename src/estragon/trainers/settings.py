"""Options that every trainer has: the game, the device, and defaults from the controller's file.

Needs no trainer's packages, so that `--help` works without them.
"""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, get_type_hints

import msgspec
import tyro

from estragon.support.errors import UserError
from estragon.support.options import check_span, optional
from estragon.support.parameters import Plan, Rule
from estragon.trainers.controller import Controller


class Span(NamedTuple):
    """The range of an option, as part of its annotation."""

    least: float
    most: float | None = None


def check_spans(options: Any, prefix: str = "") -> None:
    """Raise a UserError for a field of a dataclass that is out of its range."""
    for name, hint in get_type_hints(type(options), include_extras=True).items():
        for part in getattr(hint, "__metadata__", ()):
            if isinstance(part, Span):
                check_span(f"{prefix}{name.rstrip('_')}", getattr(options, name), *part)


Device = Literal["auto", "cpu", "cuda"]
Mode = Literal["single_agent", "multi_agent"]
PATH = optional("PATH")
Count = Annotated[int | None, optional("N"), Span(1)]
Number = Annotated[float | None, optional("NUMBER"), Span(0)]
Share = Annotated[float | None, optional("NUMBER"), Span(0, 1)]
PARALLEL = Span(1, 64)
SECTIONS: list[tuple[str, Any, None]] = [
    ("parameters", str | dict[str, Any] | None, None),
    ("curriculum", list[Any] | None, None),
]
"""Keys of a config file: a path to a parameter file, or its sections."""
SEED = Span(0, 2**31 - 1)


@dataclasses.dataclass(frozen=True)
class BaseHyperparameters:
    """Hyper-parameters of all algorithms of a library; None is the algorithm's own default."""

    def __post_init__(self) -> None:
        """Reject values that are out of range."""
        check_spans(self)

    def given(self) -> dict[str, Any]:
        """Only those that were set."""
        return {key: value for key, value in vars(self).items() if value is not None}


@dataclasses.dataclass(frozen=True)
class TrainerSettings:
    """What both trainers take; each adds its own, among them `hyperparameters`."""

    env_path: Annotated[str | None, PATH] = None
    """A project folder, a .pck or an exported game; without it, waits for Play in the editor."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play, such as res://training.tscn; by default the game's main scene."""
    speedup: Annotated[float | None, optional("TIMES"), Span(1, 100)] = None
    """Speed in a window, 1 to 100 times real time; without a window, games run as fast as
    possible."""
    action_repeat: Annotated[int | None, optional("TICKS"), Span(1)] = None
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
    """Port to listen on; by default 11008 for the editor, otherwise any free port. With --wire
    http, port of the game's API: 8080 or any free port."""
    wire: Literal["tcp", "http"] = "tcp"
    """How to talk to the game: tcp, or http for scenes with the HTTP API of SpaceTime. Without
    env_path, http needs the game's token in API_TOKEN."""
    arguments: tyro.conf.Suppress[dict[str, Any] | None] = None
    """Further `--key=value` arguments of the game."""
    inference: bool = False
    """Play the trained model for --timesteps instead of training."""
    parameters: Annotated[Path | None, optional("FILE")] = None
    """A YAML or JSON file: which parameters to set in the game, and its curriculum."""
    inline_parameters: tyro.conf.Suppress[dict[str, Any] | None] = None
    """The same as the contents of a file; `parameters` goes first."""

    CONTROLLER_PREFIX: ClassVar[str] = ""
    """Of this trainer's keys in the controller's file."""
    CONTROLLER_KEYS: ClassVar[dict[str, str]] = {}
    """Such a key without the prefix → the option; hyper-parameters need no entry."""
    HYPERPARAMETERS: ClassVar[type[BaseHyperparameters]] = BaseHyperparameters

    def game_options(self) -> dict[str, Any]:
        """The options of the game, as `Launch` calls them."""
        return {
            "env_path": self.env_path,
            "scene": self.scene,
            "port": self.port,
            "speedup": self.speedup,
            "action_repeat": self.action_repeat,
            "show_window": self.viz,
            "start_timeout_sec": self.start_timeout,
            "step_timeout_sec": self.step_timeout,
            "strict_import": self.strict_import,
            "wire": self.wire,
            "arguments": self.arguments or {},
        }

    def parameter_plan(self, *others: Any, rule: Rule | None = None) -> Plan | None:
        """The parameters that are given, else the first of `others`: paths or plain data."""
        for given in (self.parameters, self.inline_parameters, *others):
            if given is not None:
                return Plan.of(given, has_rule=rule is not None)
        return None

    @classmethod
    def from_controller(cls) -> dict[str, Any]:
        """What the controller's file sets, by option name."""
        types = get_type_hints(cls.HYPERPARAMETERS)
        names = {name.rstrip("_"): name for name in types} | cls.CONTROLLER_KEYS
        options = {key: key for key in ("env_path", "timesteps", "experiment_name")}
        options |= {cls.CONTROLLER_PREFIX + key: option for key, option in names.items()}
        types |= get_type_hints(cls)
        keys = [(key, types[option] | None, None) for key, option in options.items()]
        keys += [("mode", Mode | None, None), *SECTIONS]
        shape = msgspec.defstruct("TrainingConfig", keys)
        found = Controller().training_config(shape, cls.CONTROLLER_PREFIX)
        given = {options[key]: value for key, value in found.items() if key in options}
        sections = joined_sections(found.get("parameters"), found.get("curriculum"))
        if isinstance(sections, str):
            given["parameters"] = Path(sections)
        elif sections is not None:
            given["inline_parameters"] = sections
        return given

    @classmethod
    def defaults(cls) -> Self:
        """The options before the command line: the controller's file over the class's defaults."""
        found = cls.from_controller()
        names = get_type_hints(cls.HYPERPARAMETERS)
        hyperparameters = {key: found.pop(key) for key in list(found) if key in names}
        found["hyperparameters"] = cls.HYPERPARAMETERS(**hyperparameters)
        return cls(**found)

    def check(self) -> None:
        """Reject values that are out of range."""
        check_spans(self, "--")


def joined_sections(parameters: Any, curriculum: Any) -> Any:
    """What the keys of a config file say together: a path, sections of a file, or None."""
    if isinstance(parameters, str) and curriculum is not None:
        raise UserError(f"curriculum: write it into {parameters}, or parameters here")
    if isinstance(parameters, str) or (parameters is None and curriculum is None):
        return parameters
    given = {"parameters": parameters, "curriculum": curriculum}
    return {name: section for name, section in given.items() if section is not None}


def note(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr, flush=True)


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
