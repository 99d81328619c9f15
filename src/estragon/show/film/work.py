"""Where a film is made: a folder that keeps what is drawn, until the film is there."""

import contextlib
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from estragon import __version__
from estragon.show.frames.files import UNFINISHED
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import cannot_write, locked

BYTES_PER_PIXEL = 0.3
"""Of a drawn frame as a PNG, at most as far as was seen; room that should be there."""


@contextlib.contextmanager
def work_folder(run: Path, key: str) -> Iterator[Path]:
    """The folder of the film with this key, for one process at a time.

    What a killed process was writing is removed from it, and all that is whole is kept.
    """
    films = run / "film"
    folder = films / key
    with locked(films / "lock", timeout_sec=0.0):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.rglob("*"):
                if path.name.startswith(".") or path.name.endswith(UNFINISHED):
                    path.unlink()
        except OSError as error:
            raise cannot_write(folder, error) from error
        yield folder


def key_of(*inputs: bytes) -> str:
    """A name for a film that depends on all that its frames depend on, this program included."""
    digest = hashlib.sha256(__version__.encode())
    for room in ("show", "tag"):
        for path in sorted((paths.PACKAGE / room).rglob("*.py")):
            digest.update(path.read_bytes())
    for data in inputs:
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()[:16]


def ensure_room(folder: Path, size: tuple[int, int], frames: int) -> None:
    """Fail now where the frames would not fit on the disk."""
    needed = BYTES_PER_PIXEL * size[0] * size[1] * frames
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"{folder}: {frames} frames need up to {needed / 1e9:.1f} GB, and only "
            f"{free / 1e9:.1f} GB are free; make room, or take --quality low"
        )
