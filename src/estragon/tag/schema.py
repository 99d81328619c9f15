"""JSON files read into typed structures, with errors that name the file and the key."""

from pathlib import Path
from typing import TypeVar

import msgspec

from estragon.support.errors import UserError

T = TypeVar("T")

LONGEST_COMPLAINT = 400


def read_json(path: Path, shape: type[T]) -> T:
    """Read `path` as a `shape`; anything unknown, missing, mistyped or out of range is an error."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        raise UserError(f"{path.name}: {_with_key(str(error))}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path.name} is not valid JSON: {_printable(str(error))}") from error


def _with_key(message: str) -> str:
    """Turn msgspec's "… - at `$.agent.speed_mps`" into "agent.speed_mps: …"."""
    text, _, place = message.partition(" - at `$")
    key = place.rstrip("`").lstrip(".")
    text = text.replace("`", "'")
    return _printable(f"{key}: {text}" if key else text)


def _printable(text: str) -> str:
    """One line of bounded length, whatever strings the file holds."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:LONGEST_COMPLAINT])
    return shown if len(text) <= LONGEST_COMPLAINT else f"{shown} …"
