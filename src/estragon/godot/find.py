"""Which Godot is used: GODOT_BIN, then godot4 or godot on the PATH, then the private copy."""

import dataclasses
import os
import shutil
from pathlib import Path

from estragon.godot.private import private_program
from estragon.godot.version import GodotVersion, check_version
from estragon.support.errors import UserError


@dataclasses.dataclass(frozen=True)
class Godot:
    """A Godot that works here."""

    path: Path
    version: GodotVersion
    origin: str
    """GODOT_BIN, PATH, or private copy."""


@dataclasses.dataclass(frozen=True)
class Search:
    """What was found, and what was passed over on the way and why."""

    found: Godot | None
    skipped: list[str]


def search_godot() -> Search:
    """Look for a usable Godot; a wrong GODOT_BIN is an error, never passed over."""
    if chosen := os.environ.get("GODOT_BIN"):
        return Search(_chosen_godot(chosen), [])
    skipped: list[str] = []
    on_path = [(shutil.which(name), f"{name} on PATH") for name in ("godot4", "godot")]
    for program, origin in [*on_path, (private_program(), "private copy")]:
        if program is None:
            continue
        path = Path(program).absolute()
        try:
            return Search(Godot(path, check_version(path), origin), skipped)
        except UserError as error:
            skipped.append(f"{origin}: {error}")
    return Search(None, skipped)


def find_godot() -> Path:
    """The Godot to use, or a UserError that says how to get one."""
    search = search_godot()
    if search.found is None:
        passed_over = "".join(f"; {reason}" for reason in search.skipped)
        raise UserError(f"no usable Godot 4 here: run estragon godot install{passed_over}")
    return search.found.path


def require_godot(*, install: bool = True) -> Path:
    """The Godot to use, installing a private copy where there is none."""
    if not install or search_godot().found is not None:
        return find_godot()
    from estragon.godot.install import install_private

    return install_private()


def _chosen_godot(chosen: str) -> Godot:
    path = Path(shutil.which(chosen) or chosen).expanduser().absolute()
    try:
        return Godot(path, check_version(path), "GODOT_BIN")
    except UserError as error:
        raise UserError(
            f"GODOT_BIN={chosen} cannot be used: {error}; mend it, or unset it"
        ) from error
