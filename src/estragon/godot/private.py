"""The private copies of Godot and Xvfb that Estragon installs: where they are and what they are."""

from pathlib import Path

import msgspec

from estragon.support import paths
from estragon.support.files import write_json


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was installed; written last, into a folder that is then renamed into place."""

    program: str
    """What to start, relative to the folder."""
    origin: str
    """Where it came from, for people."""
    version: str
    """Empty for Xvfb, which does not tell."""


def folder() -> Path:
    """Where the private copies, their lock and their downloads are."""
    return paths.home() / "godot"


def engine_folder() -> Path:
    """The installed Godot; exists only when it is whole."""
    return folder() / "engine"


def xvfb_folder() -> Path:
    """The installed Xvfb; exists only when it is whole."""
    return folder() / "xvfb"


def read_manifest(engine: Path) -> Manifest | None:
    """What is installed in a folder, or None if nothing that can be trusted is."""
    try:
        return msgspec.json.decode((engine / "installed.json").read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None


def write_manifest(engine: Path, manifest: Manifest) -> None:
    """Say what is installed in a folder."""
    write_json(engine / "installed.json", msgspec.to_builtins(manifest))


def private_program(engine: Path | None = None) -> Path | None:
    """The program of a private copy, by default Godot's, if there is one."""
    engine = engine_folder() if engine is None else engine
    manifest = read_manifest(engine)
    return None if manifest is None else engine / manifest.program
