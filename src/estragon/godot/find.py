"""Which Godot is used: GODOT_BIN, then godot4 or godot on PATH, then the private copy."""

import functools
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from estragon.godot.process import GodotError, SupervisedProcess
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import write_json

MINIMUM = (4, 4)
VERSION_TIMEOUT_SEC = 30.0
VERSION = re.compile(r"\d+\.\d+(\.\d+)?\.[a-z]\S*")
"""As `godot --version` prints it: 4.6.3.stable.official.abc123."""


class Godot(NamedTuple):
    """A Godot that works here."""

    path: Path
    version: str
    origin: str
    """GODOT_BIN, PATH, or private copy."""


class Search(NamedTuple):
    """What was found, and what was skipped and why."""

    found: Godot | None
    skipped: list[str]


class Manifest(msgspec.Struct, frozen=True):
    """What a private copy is; written last, into a folder that is then renamed into place."""

    program: str
    """What to start, relative to the folder."""
    origin: str
    """Where it came from, for people."""


def search_godot() -> Search:
    """Look for a usable Godot; a wrong GODOT_BIN is an error, never skipped."""
    if chosen := os.environ.get("GODOT_BIN"):
        path = Path(shutil.which(chosen) or chosen).expanduser().absolute()
        try:
            return Search(Godot(path, check_version(path), "GODOT_BIN"), [])
        except UserError as error:
            raise UserError(
                f"GODOT_BIN={chosen} cannot be used: {error}; correct or unset it"
            ) from error
    skipped: list[str] = []
    on_path = [(shutil.which(name), f"{name} on PATH") for name in ("godot4", "godot")]
    for program, origin in [*on_path, (private_program(engine_folder()), "private copy")]:
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
        skipped = "".join(f"; {reason}" for reason in search.skipped)
        raise UserError(f"no usable Godot 4 here: run estragon godot install{skipped}")
    return search.found.path


def require_godot() -> Path:
    """The Godot to use, installing a private copy where there is none."""
    if (found := search_godot().found) is not None:
        return found.path
    from estragon.godot.install import install_private

    return install_private()


def check_version(program: Path) -> str:
    """The version of a Godot that Estragon can use; a UserError says why it cannot."""
    version = read_version(program)
    major, minor = version.split(".")[:2]
    if (int(major), int(minor)) < MINIMUM:
        raise UserError(
            f"{program} is Godot {version}, but {MINIMUM[0]}.{MINIMUM[1]} or newer is needed; "
            "set GODOT_BIN to a newer one, or run estragon godot install"
        )
    return version


def read_version(program: Path) -> str:
    """The version of any Godot, including old ones; each file is asked once."""
    if not program.is_file():
        raise UserError(f"{program} is {'a folder' if program.is_dir() else 'missing'}")
    if not os.access(program, os.X_OK):
        raise UserError(f"{program} is not executable")
    return _ask_version(program, program.stat().st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _ask_version(program: Path, _changed_ns: int) -> str:
    with tempfile.TemporaryDirectory(prefix="estragon-") as folder:
        try:
            with SupervisedProcess(
                [program, "--version"],
                name="--version",
                folder=Path(folder),
                advice="set GODOT_BIN to another, or run estragon godot install",
            ) as process:
                process.wait("its version", VERSION_TIMEOUT_SEC)  # Godot 3 exits with status 255
                said = process.tail()
        except GodotError as error:
            raise UserError(f"{program} does not work as a Godot: {error}") from error
    for line in reversed(said):
        if VERSION.fullmatch(line.strip()):
            return line.strip()
    raise UserError(f"{program} is not a Godot: --version printed {said or 'nothing'}")


def private_folder() -> Path:
    """Where the private copies, their lock and their downloads are."""
    return paths.home() / "godot"


def engine_folder() -> Path:
    """The installed Godot; exists only when it is complete."""
    return private_folder() / "engine"


def xvfb_folder() -> Path:
    """The installed Xvfb; exists only when it is complete."""
    return private_folder() / "xvfb"


def read_manifest(folder: Path) -> Manifest | None:
    """What is installed in a folder; None if there is no valid installation."""
    try:
        return msgspec.json.decode((folder / "installed.json").read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Record what is installed in a folder."""
    write_json(folder / "installed.json", msgspec.to_builtins(manifest))


def private_program(folder: Path) -> Path | None:
    """The program installed in a folder, if there is one."""
    manifest = read_manifest(folder)
    return None if manifest is None else folder / manifest.program
