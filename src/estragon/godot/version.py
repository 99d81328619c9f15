"""Which Godot is this? Asks the program itself, once for each file."""

import dataclasses
import functools
import os
import re
import tempfile
from pathlib import Path

from estragon.godot.supervised import GodotError, SupervisedProcess
from estragon.support.errors import UserError

MINIMUM = (4, 4)
ANSWER_TIMEOUT_SEC = 30.0
PATTERN = re.compile(r"^(\d+)\.(\d+)(?:\.(\d+))?\.[a-z]\S*$")


@dataclasses.dataclass(frozen=True)
class GodotVersion:
    """A version as `godot --version` prints it: 4.6.3.stable.official.abc123."""

    major: int
    minor: int
    patch: int
    text: str


def check_version(program: Path) -> GodotVersion:
    """The version of a Godot that Estragon can use; a UserError says why it cannot."""
    version = read_version(program)
    if (version.major, version.minor) < MINIMUM:
        raise UserError(
            f"{program} is Godot {version.text}, but {MINIMUM[0]}.{MINIMUM[1]} or newer is needed; "
            "set GODOT_BIN to a newer one, or run estragon godot install"
        )
    return version


def read_version(program: Path) -> GodotVersion:
    """The version of any Godot, old ones too."""
    if not program.is_file():
        raise UserError(f"{program} is {'a folder' if program.is_dir() else 'missing'}")
    if not os.access(program, os.X_OK):
        raise UserError(f"{program} is not executable")
    return _ask(program, program.stat().st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _ask(program: Path, _changed_ns: int) -> GodotVersion:
    with tempfile.TemporaryDirectory(prefix="estragon-") as folder:
        try:
            with SupervisedProcess(
                [program, "--version"],
                name="--version",
                folder=Path(folder),
                advice="set GODOT_BIN to another, or run estragon godot install",
            ) as process:
                process.wait("its version", ANSWER_TIMEOUT_SEC)  # Godot 3 answers with status 255
                said = process.tail()
        except GodotError as error:
            raise UserError(f"{program} does not work as a Godot: {error}") from error
    for line in reversed(said):
        if found := PATTERN.match(line.strip()):
            major, minor, patch = (int(number or 0) for number in found.groups())
            return GodotVersion(major, minor, patch, line.strip())
    raise UserError(f"{program} is not a Godot: asked for its version it said {said or 'nothing'}")
