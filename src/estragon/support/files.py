"""Files written whole: a reader, or a run that was killed, never sees half of one."""

import contextlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from estragon.support.errors import UserError


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` beside `path`, flush it to the disk, then rename it into place."""
    _write(path, data, lambda: path)


@contextlib.contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """The same for what is too large to be held twice: a stream to write it to."""
    with _writing(path, lambda: path) as (stream, _):
        yield stream


def write_new(path: Path, data: bytes) -> Path:
    """The same where nothing may be overwritten: takes the first free name and returns it.

    That is `path`, or `path` with a number before its ending.
    """
    return _write(path, data, lambda: _reserve(path))


def append_whole(path: Path, data: bytes) -> None:
    """Add `data` to the end of a file, all of it or nothing."""
    try:
        with path.open("ab", buffering=0) as stream:
            size = stream.seek(0, os.SEEK_END)
            try:
                written = 0
                while written < len(data):
                    written += stream.write(data[written:])
                os.fsync(stream.fileno())
            except OSError:
                stream.truncate(size)
                raise
    except OSError as error:
        raise cannot_write(path, error) from error


def ensure_writable(path: Path) -> None:
    """Fail now, not after the work is done, where `path` could not be written."""
    try:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise cannot_write(path, error) from error


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON, whole."""
    write_whole(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def check_archive(data: bytes, largest: int) -> None:
    """Raise ValueError unless this is a zip archive whose every byte is as it was written.

    Torch does not check what it reads, and numpy parses before it checks.
    """
    if not data.startswith(b"PK\x03\x04"):
        raise ValueError("not an archive")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(member.file_size for member in archive.infolist()) > largest:
            raise ValueError("unpacks to more than it should")
        if archive.testzip() is not None:
            raise ValueError("damaged")


def _write(path: Path, data: bytes, place: Callable[[], Path]) -> Path:
    """Write beside `path`, and rename to what `place` gives when all is on the disk."""
    with _writing(path, place) as (stream, placed):
        stream.write(data)
    return placed[0]


@contextlib.contextmanager
def _writing(path: Path, place: Callable[[], Path]) -> Iterator[tuple[BinaryIO, list[Path]]]:
    """A stream beside `path`, and a list that holds what `place` gave once all is on the disk."""
    temporary: str | None = None
    placed: list[Path] = []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as stream:
            yield stream, placed
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o644)
        placed.append(Path(temporary).replace(place()))
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if temporary is not None and not placed:
            Path(temporary).unlink(missing_ok=True)


def _reserve(path: Path) -> Path:
    """The first name that is free, made ours by an empty file."""
    candidate, number = path, 1
    while True:
        try:
            candidate.touch(exist_ok=False)
        except FileExistsError:
            number += 1
            candidate = path.with_stem(f"{path.stem}-{number}")
        else:
            return candidate


def cannot_write(path: Path, error: OSError) -> UserError:
    """What to say of a file that cannot be written."""
    reason = error.strerror or str(error)
    return UserError(f"cannot write {path}: {reason}; choose a place you can write to")
