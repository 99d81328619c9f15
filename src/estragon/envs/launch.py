"""How a game is started: the options people give, and the command line they become."""

import dataclasses
import difflib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from estragon.envs.messages import BINARY, JSON
from estragon.envs.sync_nodes import check_sync
from estragon.envs.ticks import packed_ticks, project_ticks
from estragon.godot.find import require_godot
from estragon.godot.process import GodotProcess, SupervisedProcess, usable_user_folders
from estragon.godot.project import ready_project
from estragon.support.errors import UserError

EDITOR_PORT = 11008
LAST_PORT = 65535
EDITOR = ("", "debug")
HEADLESS = ("--headless", "--disable-render-loop")
RENDERER = ("--rendering-driver", "opengl3")
UNSEEN = ("--audio-driver", "Dummy", "--disable-vsync")


@dataclasses.dataclass(frozen=True)
class Launch:
    """What to play, and how."""

    env_path: str | os.PathLike[str] | None = None
    """A project folder, a `.pck`, or an exported game; none, or "debug": wait for the editor."""

    scene: str | None = None
    """The scene to play, for example res://training.tscn; else the game's main scene."""

    n_parallel: int = 1
    """Games side by side; game i gets port + i and seed + i."""

    seed: int = 0
    """Of the first game."""

    port: int | None = None
    """Where to listen; by default 11008 for the editor, else any free ones. 0: any free ones."""

    speedup: float | None = None
    """Times real time, in a window; without one a game runs as fast as it can."""

    action_repeat: int | None = None
    """Physics ticks an action lasts; by default what the game's Sync node says."""

    show_window: bool = False
    """Open a window, and play in real time."""

    draws: bool | None = None
    """Whether a game without a window draws, on the display or a virtual one; by default if its
    agents see images."""

    encoding: str = BINARY
    """What to speak with games that can: binary1, or json, which people can read."""

    arguments: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """More `--key=value` for the game."""

    start_timeout_sec: float = 60.0
    """How long a game may take to start and connect."""

    step_timeout_sec: float = 60.0
    """How long an answer may take before a game counts as hung."""

    restarts: int = 3
    """How often games that died or hung are started again, within `restart_window_sec`."""

    restart_window_sec: float = 300.0
    """For how long a restart counts."""

    strict_import: bool = False
    """Refuse a project in which anything is broken; else one is played without its decoration."""

    log_folder: str | os.PathLike[str] | None = None
    """Where the games' logs are kept; by default they are gone when the games are."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.n_parallel < 1:
            raise UserError(f"n_parallel: expected at least 1, got {self.n_parallel}")
        if self.encoding not in (BINARY, JSON):
            raise UserError(f"encoding: expected {BINARY} or {JSON}, got '{self.encoding}'")
        if self.action_repeat is not None and self.action_repeat < 1:
            raise UserError(f"action_repeat: expected at least 1, got {self.action_repeat}")
        if self.speedup is not None and not self.speedup > 0.0:
            raise UserError(f"speedup: expected more than 0, got {self.speedup}")
        for name in ("start_timeout_sec", "step_timeout_sec"):
            if not getattr(self, name) > 0.0:
                raise UserError(f"{name}: expected more than 0, got {getattr(self, name)}")
        if not 0 <= self.first_port <= LAST_PORT + 1 - self.n_parallel:
            raise UserError(f"port: expected 0 to {LAST_PORT}, got {self.port}")

    @property
    def by_hand(self) -> bool:
        """Whether somebody else starts the game."""
        return self.env_path is None or str(self.env_path) in EDITOR

    @property
    def first_port(self) -> int:
        """Of the first game; 0 for any."""
        if self.port is None:
            return EDITOR_PORT if self.by_hand else 0
        return self.port

    def port_of(self, index: int) -> int:
        """Of one game; 0 for any."""
        return self.first_port + index if self.first_port else 0


class Program:
    """A game made ready to start: found, imported, its command line known."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        path = Path(os.fspath(launch.env_path or "")).expanduser()
        path = path.parent if path.name == "project.godot" else path
        if not path.exists():
            raise UserError(_missing(path))
        self._godot: Path | None = None
        self.warnings: list[str] = []
        self.doubt = ""  # whether anybody will connect
        words: list[str | Path] = []
        if path.is_dir() and path.suffix != ".app":
            self._godot = require_godot()
            if launch.scene is not None and (path / "project.godot").is_file():
                _check_scene(path, launch.scene)
            self.doubt = check_sync(path, launch.scene and _resource(launch.scene))
            ready = ready_project(
                path,
                launch.scene and _resource(launch.scene),
                godot=self._godot,
                strict=launch.strict_import,
            )
            self.warnings = ready.warnings
            ticks = project_ticks(ready.folder)
            words += ["--path", ready.folder]
        else:
            path = _inside_app(path).resolve()
            ticks = packed_ticks(path)
            if path.suffix == ".pck":
                self._godot = require_godot()
                words += ["--main-pack", path]
            elif not os.access(path, os.X_OK):
                raise UserError(f"{path} cannot be run: make it executable (chmod +x)")
            else:
                words.append(path)
        self._words, self._ticks = words, ticks

    def start(
        self,
        index: int,
        port: int,
        seed: int,
        folder: Path,
        env: Mapping[str, str],
        advice: str,
        *,
        draws: bool,
    ) -> SupervisedProcess:
        """Start one of the games; one that draws needs the environment of a display."""
        words = self.words(port, seed, draws=draws)
        name = "game" if self._launch.n_parallel == 1 else f"game{index}"
        if self._godot is not None:
            return GodotProcess(
                words, folder=folder, name=name, godot=self._godot, env=env, advice=advice
            )
        env = usable_user_folders(env)
        return SupervisedProcess(words, folder=folder, name=name, env=env, advice=advice)

    def words(self, port: int, seed: int, *, draws: bool) -> list[str | Path]:
        """The command line of one of the games."""
        launch = self._launch
        words = [*self._words]
        if launch.show_window:
            words += RENDERER if self._godot else []
        else:
            words += [*RENDERER, *UNSEEN] if draws else HEADLESS
            # One physics tick a frame and no clock: as fast as the processor allows.
            words += ["--fixed-fps", str(self._ticks)]
        if launch.scene is not None:
            words.append(_resource(launch.scene))
        options: dict[str, object] = {"port": port, "env_seed": seed}
        if launch.action_repeat is not None:
            options["action_repeat"] = launch.action_repeat
        if draws and not launch.show_window:
            options["unwatched"] = 1
        if launch.speedup is not None:
            options["speedup"] = launch.speedup
        options |= launch.arguments
        # Not behind a `--`: older games look for them in front of it only.
        return [*words, *(f"--{key}={value}" for key, value in options.items())]


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
    if scene.startswith("uid://"):
        return
    name = scene.removeprefix("res://")
    if not (project / name).is_file():
        scenes = [path.relative_to(project).as_posix() for path in project.rglob("*.tscn")]
        near = difflib.get_close_matches(name, scenes, 3, cutoff=0.3) or scenes[:3]
        known = ", ".join(f"res://{each}" for each in near) or "none"
        raise UserError(f"no scene {_resource(scene)} in {project}; there is {known}")


def _inside_app(path: Path) -> Path:
    """The program in a bundle of macOS."""
    if sys.platform == "darwin" and path.suffix == ".app":
        programs = sorted((path / "Contents" / "MacOS").iterdir())
        if programs:
            return programs[0]
    return path
