"""The planted bugs of tests/judge/bugs: how they are read, and put into a copy of the games."""

import shutil
from pathlib import Path

import msgspec

from estragon.support import paths
from estragon.support.files import read_json

FOLDER = Path(__file__).parent / "bugs"
GAMES = ("marble", "orchard", "tag", "goals", "landing", "menu")


class Patch(msgspec.Struct, forbid_unknown_fields=True):
    """A replacement in a file; `old` occurs once."""

    file: str
    old: str
    new: str


class Bug(msgspec.Struct, forbid_unknown_fields=True):
    """A bug."""

    id: str
    game: str
    scene: str
    arguments: dict[str, str | float]
    set: str
    """`known`, or `unseen` by those who write oracles and explorers."""
    description: str
    patches: list[Patch]


def bugs_of(game: str) -> list[Bug]:
    """All bugs of a game."""
    return read_json(FOLDER / f"{game}.json", list[Bug])


def patched(bugs: list[Bug]) -> dict[str, str]:
    """The files that patches change, with all of these bugs in them."""
    files: dict[str, str] = {}
    for bug in bugs:
        for patch in bug.patches:
            name = patch.file
            if name not in files:
                files[name] = (paths.godot_project() / name).read_text(encoding="utf-8")
            assert files[name].count(patch.old) == 1, f"{bug.id}: {name}: {patch.old!r}"
            files[name] = files[name].replace(patch.old, patch.new)
    return files


def copy_with(bugs: list[Bug], folder: Path, original: Path | None = None) -> Path:
    """A copy of the project with these bugs; made once."""
    if (folder / ".complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.lock")
    shutil.copytree(original or paths.godot_project(), folder, ignore=ignored)
    for name, text in patched(bugs).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / ".complete").touch()
    return folder
