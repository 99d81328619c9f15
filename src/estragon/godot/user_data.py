"""What games wrote to `user://`: `app_userdata/<project>` in Godot's own data folder."""

import filecmp
import glob
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from estragon.godot.process import private_user_folders, usable_user_folders
from estragon.support.errors import UserError
from estragon.support.files import write_new

OWN_PROJECT = "Estragon"
USER = "user://"
FLATPAK = Path(".var", "app", "org.godotengine.Godot", "data")
KINDS = {"trajectories": "*.jsonl", "frames": "*.png", "logs": "*.log"}
"""What is copied: a folder of each name, and the files in it that match."""


def app_userdata_roots() -> list[Path]:
    """Where Godot keeps `user://` of every project, one folder each."""
    home = Path.home()
    if sys.platform == "win32":
        data = [Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming") / "Godot"]
    elif sys.platform == "darwin":
        data = [home / "Library" / "Application Support" / "Godot"]
    else:
        private = Path(private_user_folders(os.environ)["XDG_DATA_HOME"])
        shared = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        data = [folder / "godot" for folder in (shared, home / FLATPAK, private)]
    return [folder / "app_userdata" for folder in data]


def user_folder(project: str = OWN_PROJECT) -> Path:
    """`user://` of a project, as the Godot that we start sees it."""
    if sys.platform in ("win32", "darwin"):
        return app_userdata_roots()[0] / project
    env = usable_user_folders(os.environ)
    data = Path(env.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "godot" / "app_userdata" / project


def resolve(path: str | os.PathLike[str]) -> Path:
    """A path with `user://` replaced by the real folder of our game."""
    text = os.fspath(path)
    # Path() makes one slash of two.
    for prefix in (USER, USER[:-1]):
        if text.startswith(prefix):
            return user_folder() / text.removeprefix(prefix)
    return Path(text).expanduser()


def project_folders() -> list[Path]:
    """`user://` of every project that has one."""
    return [
        game
        for root in app_userdata_roots()
        if root.is_dir() and os.access(root, os.R_OK)
        for game in sorted(root.iterdir())
        if game.is_dir()
    ]


def own_folders() -> list[Path]:
    """`user://` of the tag game; several when Godot was installed in several ways."""
    return [game for game in project_folders() if game.name == OWN_PROJECT]


def played_folders() -> list[Path]:
    """`user://` of games with trajectories or frames; every game has logs."""
    return [
        game
        for game in project_folders()
        if any(kind != "logs" for kind, _, _ in files_to_copy(game))
    ]


def files_to_copy(game: Path) -> Iterator[tuple[str, Path, Path]]:
    """Kind, file, and its path inside the folder of its kind."""
    for kind, pattern in KINDS.items():
        for folder in (game / kind, game / "data" / kind):
            for file in sorted(folder.rglob(pattern)):
                if file.is_file() and not file.is_symlink():
                    yield kind, file, file.relative_to(folder)


def copy_user_data(game: Path, target: Path) -> tuple[Counter[str], Counter[str]]:
    """Copy one game's files; returns how many of each kind were copied, and existed already."""
    copied: Counter[str] = Counter()
    existing: Counter[str] = Counter()
    for kind, file, inside in files_to_copy(game):
        try:
            if _is_copied(file, target / kind / inside):
                existing[kind] += 1
            else:
                write_new(target / kind / inside, file.read_bytes())
                copied[kind] += 1
        except OSError as error:
            raise UserError(f"cannot copy {file}: {error.strerror or error}") from error
    return copied, existing


def _is_copied(file: Path, copy: Path) -> bool:
    """Whether the same bytes exist under this name, or with a number after it."""
    numbered = copy.parent.glob(f"{glob.escape(copy.stem)}-*{copy.suffix}")
    return any(
        filecmp.cmp(file, other, shallow=False) for other in (copy, *numbered) if other.is_file()
    )
