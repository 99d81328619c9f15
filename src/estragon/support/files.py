"""Files written completely or not at all, JSON files read and checked, and locks."""

import contextlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from estragon.support.errors import UserError

T = TypeVar("T")

LOCK_POLL_SEC = 0.05
LONGEST_MESSAGE = 400


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` beside `path`, flush it to the disk, then rename it into place."""
    with writing_whole(path) as stream:
        stream.write(data)


@contextlib.contextmanager
def writing_whole(
    path: Path, place: Callable[[Path], Path] = lambda path: path
) -> Iterator[BinaryIO]:
    """A stream beside `path`; what was written is on the disk when it is renamed to `place(path)`.

    For data too large to hold in memory twice.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_folder(path)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(place(path))
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_new(path: Path, data: bytes) -> Path:
    """Write `data` under the first free name and return it: `path`, `path-2`, `path-3` …."""
    names: list[Path] = []

    def reserve(path: Path) -> Path:
        names.append(path)
        while True:
            try:
                names[-1].touch(exist_ok=False)
            except FileExistsError:
                names.append(path.with_stem(f"{path.stem}-{len(names) + 1}"))
            else:
                return names[-1]

    with writing_whole(path, reserve) as stream:
        stream.write(data)
    return names[-1]


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
    """Raise a UserError now, before the work, if `path` cannot be written."""
    try:
        _refuse_folder(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise cannot_write(path, error) from error


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON."""
    write_whole(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


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


def check_archive(data: bytes, largest: int) -> None:
    """Raise ValueError unless this is an undamaged zip archive of at most `largest` bytes unpacked.

    Torch does not check what it reads, and numpy parses before it checks.
    """
    if not data.startswith(b"PK\x03\x04"):
        raise ValueError("not an archive")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(member.file_size for member in archive.infolist()) > largest:
            raise ValueError(f"unpacks to more than {largest} bytes")
        if archive.testzip() is not None:
            raise ValueError("damaged")


def cannot_write(path: Path, error: OSError) -> UserError:
    """The error for a file that cannot be written."""
    reason = error.strerror or str(error)
    return UserError(f"cannot write {path}: {reason}; choose a place you can write to")


@contextlib.contextmanager
def locked(
    path: Path, *, timeout_sec: float, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock file `path`; calls `waiting` once if another process has it.

    The system releases the lock however its holder ends.
    """
    from filelock import FileLock, Timeout  # slow to import, and most commands lock nothing

    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            waiting()
            lock.acquire(timeout=timeout_sec, poll_interval=LOCK_POLL_SEC)
    except Timeout:
        raise UserError(
            f"timed out after {timeout_sec:.0f} s waiting for the lock {path}, which another "
            "process holds; try again when that has ended"
        ) from None
    except OSError as error:
        raise UserError(f"cannot lock {path}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def _with_key(message: str) -> str:
    """Turn msgspec's "… - at `$.agent.speed_mps`" into "agent.speed_mps: …"."""
    text, _, place = message.partition(" - at `$")
    key = place.rstrip("`").lstrip(".")
    text = text.replace("`", "'")
    return _printable(f"{key}: {text}" if key else text)


def _printable(text: str) -> str:
    """One line of bounded length, whatever strings the file holds."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:LONGEST_MESSAGE])
    return shown if len(text) <= LONGEST_MESSAGE else f"{shown} …"
