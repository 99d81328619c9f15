"""Locks between processes: one writer at a time, let go by the system however its holder ends."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from estragon.support.errors import UserError

POLL_SEC = 0.05

if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextlib.contextmanager
def locked(
    path: Path,
    *,
    timeout_sec: float,
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Hold the lock file `path`; calls `waiting` once if another process has it.

    The file stays behind: removing it would let two processes lock two files of one name.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot lock {path}: {error.strerror or error}") from error
    try:
        deadline = time.monotonic() + timeout_sec
        told = False
        while not _try_lock(handle):
            if not told:
                waiting()
                told = True
            if time.monotonic() > deadline:
                raise UserError(
                    f"waited {timeout_sec:.0f} s for {path}, which another process holds; "
                    "try again when it has ended"
                )
            time.sleep(POLL_SEC)
        yield
    finally:
        os.close(handle)  # lets go of the lock
