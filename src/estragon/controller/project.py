"""Projects: a Godot game's folder with its `.rlcontroller/`, and the list of those in use."""

import dataclasses
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import locked, read_json, write_json
from estragon.trainers.controller import FOLDER, utc_now

EXAMPLES = {"marble": "Marble (3D)", "orchard": "Orchard (2D)"}
LONGEST_NAME = 80
LOCK_TIMEOUT_SEC = 5.0


class ProjectFile(msgspec.Struct):
    """`project.json`."""

    name: str
    logs_path: str = "logs"
    created: str = ""


@dataclasses.dataclass(frozen=True)
class Project:
    """One game's folder."""

    path: Path

    @property
    def folder(self) -> Path:
        """Where the controller keeps its files."""
        return self.path / FOLDER

    @property
    def file(self) -> ProjectFile:
        """What `project.json` says; a UserError if it is missing or damaged."""
        if not self.path.is_dir():
            raise UserError(f"the folder {self.path} is missing; restore it, or forget the project")
        return read_json(self.folder / "project.json", ProjectFile)

    @property
    def name(self) -> str:
        """For people; that of the folder if `project.json` cannot be read."""
        try:
            return self.file.name
        except UserError:
            return self.path.name

    @classmethod
    def open(cls, path: Path) -> "Project":
        """A game's folder, with a `.rlcontroller/` that is made if it has none."""
        project = cls(path.resolve())
        if not project.path.is_dir():
            raise UserError(f"no folder {path}")
        if (project.folder / "project.json").exists():
            _ = project.file
            return project
        if not (project.path / "project.godot").is_file():
            raise UserError(f"{path} has no project.godot: expected the folder of a Godot game")
        project.write_new_file(project.path.name)
        return project

    @classmethod
    def create(cls, path: Path, name: str, example: str) -> "Project":
        """A new folder with a copy of an example game."""
        if example not in EXAMPLES:
            raise UserError(f"no example '{example}'; there are {', '.join(EXAMPLES)}")
        if path.exists():
            raise UserError(f"{path} exists already; open it, or choose another folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        try:
            _copy_example(example, unfinished, name)
            cls(unfinished).write_new_file(name)
            unfinished.chmod(0o755)
            unfinished.rename(path)
        except OSError as error:
            raise UserError(f"cannot create {path}: {error.strerror or error}") from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return cls(path.resolve())

    def write_new_file(self, name: str) -> None:
        """Write `project.json`."""
        about = ProjectFile(checked_name(name), created=utc_now())
        write_json(self.folder / "project.json", msgspec.to_builtins(about))

    def confine(self, text: str) -> Path:
        """A path that was typed, absolute; a UserError if it leads out of the project."""
        return _confine(text, self.path)

    def inside(self, found: Iterable[Path]) -> list[Path]:
        """Of paths in the project, those that are no links to elsewhere."""
        return [path for path in found if path.resolve().is_relative_to(self.path)]

    def read_settings(self, name: str) -> dict[str, Any]:
        """One of the controller's own files; empty if there is none."""
        path = self.folder / name
        return read_json(path, dict[str, Any]) if path.exists() else {}

    def write_settings(self, name: str, changed: dict[str, Any]) -> None:
        """Change some keys of one of the controller's own files; all others stay."""
        with locked(self.folder / "settings.lock", timeout_sec=LOCK_TIMEOUT_SEC):
            write_json(self.folder / name, self.read_settings(name) | changed)

    def write_training_config(self, config: dict[str, Any]) -> None:
        """Write what a form sets, for the trainers: as JSON, and for RLlib as YAML, too."""
        self.write_settings("training_config.json", config)
        if config.get("mode") == "multi_agent":
            from estragon.trainers.rllib.settings import write_config_file  # the page opens sooner

            write_config_file(self.folder / "rllib_config.yaml", config)


class Workspace:
    """What the controller remembers of a user: the projects, the theme, the token."""

    def __init__(self, root: Path, home: Path | None = None) -> None:
        self.root = root.expanduser().resolve()
        """The folder that projects opened in the page are in."""
        self.folder = (home or paths.home()) / "controller"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        except OSError as error:
            raise UserError(f"cannot use {self.folder}: {error.strerror or error}") from error

    def settings(self) -> dict[str, Any]:
        """The theme, the projects, the one in use."""
        path = self.folder / "settings.json"
        try:
            return read_json(path, dict[str, Any]) if path.exists() else {}
        except UserError:
            return {}  # only a list of what was used: every project opens again by its path

    def remember(self, **changed: Any) -> None:
        """Change some settings."""
        with locked(self.folder / "settings.lock", timeout_sec=LOCK_TIMEOUT_SEC):
            write_json(self.folder / "settings.json", self.settings() | changed)

    def projects(self) -> list[Project]:
        """Those in use, the latest first."""
        found = self.settings().get("projects", [])
        return [Project(Path(each)) for each in found if isinstance(each, str)]

    def use(self, project: Project) -> Project:
        """Make a project the first of the list."""
        others = [str(each.path) for each in self.projects() if each.path != project.path]
        self.remember(projects=[str(project.path), *others][:50], current=str(project.path))
        return project

    def forget(self, project: Project) -> None:
        """Remove a project from the list; its files stay."""
        self.remember(
            projects=[str(each.path) for each in self.projects() if each.path != project.path]
        )

    def current(self) -> Project | None:
        """The project in use."""
        name = self.settings().get("current")
        found = [each for each in self.projects() if str(each.path) == name]
        return found[0] if found else None

    def confine(self, text: str) -> Path:
        """A project's folder that was typed; a UserError if it is outside the root."""
        if not text.strip():
            raise UserError("name a folder")
        return _confine(text.strip(), self.root)

    def new_token(self) -> str:
        """A secret for one start of the controller, in a file that only the user can read."""
        token = os.urandom(32).hex()
        self.write_private("token", token)
        return token

    def write_private(self, name: str, text: str) -> None:
        """Write a file that nobody else can read, not even for a moment."""
        path = self.folder / name
        try:
            path.unlink(missing_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as stream:
                stream.write(text)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _confine(text: str, root: Path) -> Path:
    if "\0" in text or ".." in re.split(r"[/\\]", text):
        raise UserError(f"{text!r}: '..' is not allowed in a path")
    if text.startswith("~") or "://" in text:
        raise UserError(f"{text!r}: expected a path inside {root}")
    found = (root / text).resolve()
    if not found.is_relative_to(root):
        raise UserError(f"{text!r} is outside {root}")
    return found


def checked_name(name: str) -> str:
    """A name for people: any text of one line."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise UserError(f"expected a name of 1 to {LONGEST_NAME} characters, got {name!r}")
    return name


def _copy_example(example: str, target: Path, name: str) -> None:
    game = paths.godot_project()
    for part in ("addons/godot_rl_agents", f"examples/{example}"):
        shutil.copytree(game / part, target / part, dirs_exist_ok=True)
    for file in (game / "examples").glob("example_copies.gd*"):
        shutil.copy(file, target / "examples")
    lines = (game / "project.godot").read_text(encoding="utf-8").splitlines()
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    values = {
        "config/name": quoted,
        "config/description": EXAMPLES[example],
        "run/main_scene": f"res://examples/{example}/{example}.tscn",
    }
    for key, value in values.items():
        lines = [f'{key}="{value}"' if line.startswith(f"{key}=") else line for line in lines]
    (target / "project.godot").write_text("\n".join(lines) + "\n", encoding="utf-8")
