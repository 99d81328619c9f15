"""How kernels are compiled: exact arithmetic, cached, and never from a stale cache."""

import functools
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from estragon.support import paths
from estragon.tag.rules import OBS, TERM, Weights

UNUSED_SEC = 30 * 24 * 3600.0

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile as an entry point from Python; division by zero follows IEEE 754."""
    return _compile(function, forceinline=False)


def inlined(function: F) -> F:
    """Compile as a part of kernels: a call costs nothing, constants stay in registers."""
    return _compile(function, forceinline=True)


def _compile(function: F, *, forceinline: bool) -> F:
    # numba looks at its cache folder when a function is decorated, and checks only that
    # function's own file: a folder named after all sources keeps changed callees and types out.
    before = numba.config.CACHE_DIR
    folder = _cache_folder(Path(function.__code__.co_filename))
    numba.config.CACHE_DIR = folder or before
    try:
        compiled = numba.njit(
            cache=bool(folder),
            error_model="numpy",
            fastmath=False,
            forceinline=forceinline,
            nogil=True,
        )(function)
    finally:
        numba.config.CACHE_DIR = before
    return compiled  # type: ignore[no-any-return]


@functools.cache
def _cache_folder(source: Path) -> str:
    """A folder for exactly these sources, tables and numba; "" where none can be written."""
    digest = hashlib.sha256(repr((numba.__version__, TERM, OBS, Weights._fields)).encode())
    for path in sorted({*Path(__file__).parent.glob("*.py"), source}):
        digest.update(path.read_bytes())
    folder = paths.home() / "numba" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        _forget_unused(folder.parent)
    except OSError:
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


def _forget_unused(caches: Path) -> None:
    """Remove the caches of sources that have not been run for a month."""
    long_ago = time.time() - UNUSED_SEC
    for folder in caches.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < long_ago:
            shutil.rmtree(folder, ignore_errors=True)
