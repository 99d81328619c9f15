"""The private copy of Godot that Estragon installs: where it is and what it says of itself."""

from pathlib import Path

import msgspec

from estragon import paths
from estragon.files import write_json


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was installed; written last, into a folder that is then renamed into place."""

    program: str
    """What to start, relative to the folder."""
    origin: str
    """Where it came from, for people."""
    version: str


def folder() -> Path:
    """Where the private copy, its lock and its downloads are."""
    return paths.home() / "godot"


def engine_folder() -> Path:
    """The installed copy; exists only when it is whole."""
    return folder() / "engine"


def read_manifest(engine: Path) -> Manifest | None:
    """What is installed in a folder, or None if nothing that can be trusted is."""
    try:
        return msgspec.json.decode((engine / "installed.json").read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None


def write_manifest(engine: Path, manifest: Manifest) -> None:
    """Say what is installed in a folder."""
    write_json(engine / "installed.json", msgspec.to_builtins(manifest))


def private_program() -> Path | None:
    """The private copy's program, if there is one."""
    manifest = read_manifest(engine_folder())
    return None if manifest is None else engine_folder() / manifest.program
