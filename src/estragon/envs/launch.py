"""How a game is started: the options, and the command line they become."""

import dataclasses
import difflib
import mmap
import os
import re
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estragon.envs.http_channel import HTTP_PORT
from estragon.envs.sync_nodes import check_sync
from estragon.envs.wire import BINARY, JSON
from estragon.godot.find import require_godot
from estragon.godot.process import GodotProcess, SupervisedProcess, usable_user_folders
from estragon.godot.project import ready_project
from estragon.support.errors import UserError
from estragon.support.parameters import PlanSource

EDITOR_PORT = 11008
TCP, HTTP = "tcp", "http"
MAX_PORT = 65535
EDITOR = ("", "debug")
HEADLESS = ("--headless", "--disable-render-loop")
RENDERER = ("--rendering-driver", "opengl3")
NO_WINDOW = ("--audio-driver", "Dummy", "--disable-vsync")
DEFAULT_TICKS = 60
TICKS_SETTING = "common/physics_ticks_per_second"
TICKS_KEY = f"physics/{TICKS_SETTING}".encode()
INTEGER = 2
"""The type of an integer in Godot's binary files."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """What to play, and how."""

    env_path: str | os.PathLike[str] | None = None
    """A project folder, a `.pck`, or an exported game; none or "debug": wait for the editor."""

    scene: str | None = None
    """The scene to play, for example res://training.tscn; by default the game's main scene."""

    n_parallel: int = 1
    """Number of games; game i gets port + i and seed + i."""

    seed: int = 0
    """Seed of the first game."""

    port: int | None = None
    """Port to listen on; by default 11008 for the editor, else a free one. 0: a free one."""

    speedup: float | None = None
    """Times real time, in a window; without a window a game runs as fast as it can."""

    action_repeat: int | None = None
    """Physics ticks per action; by default that of the game's Sync node."""

    show_window: bool = False
    """Open a window, and play in real time."""

    draws: bool | None = None
    """Whether a game without a window renders, on the display or a virtual one; by default only if
    its agents observe images."""

    wire: str = TCP
    """tcp: the game connects to us. http: it serves the HTTP API of SpaceTime, and we connect to
    it; `port` is then that of the API, by default 8080 for a game that was started elsewhere."""

    encoding: str = BINARY
    """Encoding to offer: binary1, or json, which is human-readable."""

    arguments: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """Further `--key=value` arguments for the game."""

    engine_options: tuple[str, ...] = ()
    """Further options for Godot itself, such as another script to run."""

    needs_sync: bool = True
    """Whether to reject a scene without a Sync node."""

    parameters: PlanSource | None = None
    """Parameters of the game: a file such as docs/parameters.md shows, its contents, or a plan."""

    start_timeout_sec: float = 60.0
    """How long a game may take to start and connect."""

    step_timeout_sec: float = 60.0
    """How long a step may take before the game counts as hung."""

    restarts: int = 3
    """How many times games that crashed or hung are restarted within `restart_window_sec`."""

    restart_window_sec: float = 300.0
    """How long a restart counts."""

    strict_import: bool = False
    """Reject a project with any broken resource; by default missing decoration is a warning."""

    log_folder: str | os.PathLike[str] | None = None
    """Where to keep the games' logs; by default they are deleted with the games."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.n_parallel < 1:
            raise UserError(f"n_parallel: expected at least 1, got {self.n_parallel}")
        if self.encoding not in (BINARY, JSON):
            raise UserError(f"encoding: expected {BINARY} or {JSON}, got '{self.encoding}'")
        if self.wire not in (TCP, HTTP):
            raise UserError(f"wire: expected {TCP} or {HTTP}, got '{self.wire}'")
        if self.wire == HTTP and self.encoding != BINARY:
            raise UserError(f"encoding: expected {BINARY} with wire {HTTP}, got '{self.encoding}'")
        if self.action_repeat is not None and self.action_repeat < 1:
            raise UserError(f"action_repeat: expected at least 1, got {self.action_repeat}")
        for name in ("speedup", "start_timeout_sec", "step_timeout_sec"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise UserError(f"{name}: expected more than 0, got {value}")
        if not 0 <= self.first_port <= MAX_PORT + 1 - self.n_parallel:
            raise UserError(f"port: expected 0 to {MAX_PORT}, got {self.port}")

    @property
    def from_editor(self) -> bool:
        """Whether the user starts the game."""
        return self.env_path is None or str(self.env_path) in EDITOR

    @property
    def first_port(self) -> int:
        """Port of the first game; 0: a free one."""
        if self.port is None:
            usual = HTTP_PORT if self.wire == HTTP else EDITOR_PORT
            return usual if self.from_editor else 0
        return self.port

    def port_of(self, index: int) -> int:
        """Port of one game; 0: a free one."""
        return self.first_port + index if self.first_port else 0


class GameProgram:
    """A game that is ready to start: found, imported, its command line known."""

    def __init__(self, launch: Launch, log_folder: Path, advice: str) -> None:
        """Prepare it; errors of its processes end with `advice`."""
        self._launch, self._log_folder, self._advice = launch, log_folder, advice
        path = Path(os.fspath(launch.env_path or "")).expanduser()
        path = path.parent if path.name == "project.godot" else path
        if not path.exists():
            raise UserError(_missing(path))
        self._godot: Path | None = None
        self.warnings: list[str] = []
        self.sync_hint = ""
        """Why the game may never connect, if that is not certain."""
        self._command: list[str | Path]
        if path.is_dir() and path.suffix != ".app":
            scene = launch.scene and _resource(launch.scene)
            self._godot = require_godot()
            if scene is not None and (path / "project.godot").is_file():
                _check_scene(path, scene)
            if launch.needs_sync:
                self.sync_hint = check_sync(path, scene)
            ready = ready_project(path, scene, godot=self._godot, strict=launch.strict_import)
            self.warnings = ready.warnings
            self._ticks = project_ticks(ready.folder)
            self._command = ["--path", ready.folder]
            return
        path = _inside_app(path).resolve()
        self._ticks = packed_ticks(path)
        if path.suffix == ".pck":
            self._godot = require_godot()
            self._command = ["--main-pack", path]
        elif os.access(path, os.X_OK):
            self._command = [path]
        else:
            raise UserError(f"{path} cannot be run: make it executable (chmod +x)")

    def start(
        self, index: int, port: int, seed: int, env: Mapping[str, str], *, draws: bool
    ) -> SupervisedProcess:
        """Start one of the games; to render, `env` must have a display."""
        command = self.command(port, seed, draws=draws)
        name = "game" if self._launch.n_parallel == 1 else f"game{index}"
        options: dict[str, Any] = {"folder": self._log_folder, "name": name, "advice": self._advice}
        if self._godot is not None:
            return GodotProcess(command, godot=self._godot, env=env, **options)
        return SupervisedProcess(command, env=usable_user_folders(env), **options)

    def command(self, port: int, seed: int, *, draws: bool) -> list[str | Path]:
        """The command line of one of the games, without Godot itself."""
        launch = self._launch
        command = [*self._command, *launch.engine_options]
        if launch.show_window:
            command += RENDERER if self._godot else []
        else:
            command += [*RENDERER, *NO_WINDOW] if draws else HEADLESS
            # One physics tick per frame and no clock: as fast as the processor allows.
            command += ["--fixed-fps", str(self._ticks)]
        if launch.scene is not None:
            command.append(_resource(launch.scene))
        if launch.wire == HTTP:
            command.append("--http-api")
        key = "http-port" if launch.wire == HTTP else "port"
        options: dict[str, object] = {key: port, "env_seed": seed}
        if launch.action_repeat is not None:
            options["action_repeat"] = launch.action_repeat
        if draws and not launch.show_window:
            options["unwatched"] = 1
        if launch.speedup is not None:
            options["speedup"] = launch.speedup
        options |= launch.arguments
        # Not after a `--`: older games only read the arguments before it.
        return [*command, *(f"--{key}={value}" for key, value in options.items())]


def project_ticks(project: Path) -> int:
    """Physics ticks per second in the settings of a project."""
    text = (project / "project.godot").read_text(encoding="utf-8", errors="replace")
    section = re.search(r"^\[physics\]\s*$(.*?)(?=^\[|\Z)", text, re.DOTALL | re.MULTILINE)
    found = section and re.search(rf"^{TICKS_SETTING}=(\d+)\s*$", section[1], re.MULTILINE)
    return int(found[1]) if found else DEFAULT_TICKS


def packed_ticks(file: Path) -> int:
    """Physics ticks per second in a pack, or in a program with its pack inside or beside it."""
    for each in (file, file.with_suffix(".pck")):
        if each.is_file() and each.stat().st_size and (ticks := _find_ticks(each)):
            return ticks
    return DEFAULT_TICKS


def _find_ticks(file: Path) -> int | None:
    # A setting in a pack is: key, length of the value, type of the value, value.
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(TICKS_KEY)
        while at >= 0:
            value = at + len(TICKS_KEY)
            if value + 12 <= len(data):
                length, kind, ticks = struct.unpack_from("<III", data, value)
                if kind == INTEGER and length == 8 and 0 < ticks <= 100_000:
                    return int(ticks)
            at = data.find(TICKS_KEY, at + 1)
    return None


def _missing(path: Path) -> str:
    text = f"{path} does not exist: env_path is a project folder, a .pck or an exported game"
    try:
        names = [each.name for each in path.absolute().parent.iterdir()]
    except OSError:
        return text
    near = difflib.get_close_matches(path.name, names, 1)
    return f"{text}; did you mean {path.with_name(near[0])}?" if near else text


def _resource(scene: str) -> str:
    return scene if scene.startswith(("res://", "uid://")) else f"res://{scene}"


def _check_scene(project: Path, scene: str) -> None:
    name = scene.removeprefix("res://")
    if not scene.startswith("uid://") and not (project / name).is_file():
        scenes = [path.relative_to(project).as_posix() for path in project.rglob("*.tscn")]
        near = difflib.get_close_matches(name, scenes, 3, cutoff=0.3) or scenes[:3]
        known = ", ".join(f"res://{each}" for each in near) or "none"
        raise UserError(f"no scene {scene} in {project}; found {known}")


def _inside_app(path: Path) -> Path:
    """The program in a bundle of macOS."""
    if sys.platform == "darwin" and path.suffix == ".app":
        programs = sorted((path / "Contents" / "MacOS").iterdir())
        if programs:
            return programs[0]
    return path
