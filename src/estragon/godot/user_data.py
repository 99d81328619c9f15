"""`estragon migrate-user-data`: what the game wrote into Godot's own user folders, copied here.

Godot keeps `user://` in `app_userdata/<project>`; where that is depends on the platform.
"""

import dataclasses
import filecmp
import glob
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from estragon.godot.user_folders import app_userdata_roots, project_folders
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import write_new
from estragon.support.options import optional

KINDS = {"trajectories": "*.jsonl", "frames": "*.png", "logs": "*.log"}
"""What is copied: a folder of each name, and the files in it that look like this."""
TELLTALES = ("trajectories", "frames")
"""A game that has one of these is taken for ours; every game has logs."""


@dataclasses.dataclass(frozen=True)
class MigrateUserData:
    """Copy matches, frames and logs that the game left in Godot's user folders into data/_imported.

    Nothing is moved, overwritten or copied twice.
    """

    source: Annotated[Path | None, optional("DIR", "from")] = None
    """A game's user folder; by default every one of this user with matches or frames in it."""

    def run(self) -> None:
        """Copy, and count."""
        if self.source is not None and not self.source.is_dir():
            raise UserError(f"--from {self.source}: no such folder")
        games = played_folders() if self.source is None else [self.source]
        if not any(True for game in games for _ in _files_of(game)):
            looked = app_userdata_roots(os.environ) if self.source is None else games
            print(f"nothing to import from {', '.join(map(str, looked))}")
            return
        for game in games:
            target = paths.data_root() / "_imported" / game.absolute().name
            copied, there = migrate(game, target)
            counts = ", ".join(f"{copied[kind]} {kind}" for kind in KINDS)
            already = f"; {there.total()} files were there already" if there else ""
            print(f"copied {counts} from {game} into {target}{already}")


def migrate(game: Path, target: Path) -> tuple[Counter[str], Counter[str]]:
    """Copy one game's files; returns how many of each kind were copied, and were there already."""
    copied: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for kind, file, inside in _files_of(game):
        try:
            if _is_copied(file, target / kind / inside):
                there[kind] += 1
            else:
                write_new(target / kind / inside, file.read_bytes())
                copied[kind] += 1
        except OSError as error:
            raise UserError(f"cannot copy {file}: {error.strerror or error}") from error
    return copied, there


def _is_copied(file: Path, copy: Path) -> bool:
    """Whether the same bytes are there under this name, or with a number behind it."""
    numbered = copy.parent.glob(f"{glob.escape(copy.stem)}-*{copy.suffix}")
    return any(
        filecmp.cmp(file, other, shallow=False) for other in (copy, *numbered) if other.is_file()
    )


def played_folders() -> list[Path]:
    """The user folders of games that left matches or frames."""
    games = project_folders(os.environ)
    return [game for game in games if any(kind in TELLTALES for kind, _, _ in _files_of(game))]


def _files_of(game: Path) -> Iterator[tuple[str, Path, Path]]:
    """Kind, file, and its path inside the folder of its kind."""
    for kind, pattern in KINDS.items():
        for folder in (game / kind, game / "data" / kind):
            for file in sorted(folder.rglob(pattern)):
                if file.is_file() and not file.is_symlink():
                    yield kind, file, file.relative_to(folder)
