"""Installing a private copy of Godot: at most once, one at a time, whole or not at all."""

import contextlib
import errno
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from estragon.errors import UserError
from estragon.godot.debian import NEEDED_MB, SUITE, install_debian
from estragon.godot.official import RELEASES, Release, install_official
from estragon.godot.private import (
    Manifest,
    engine_folder,
    folder,
    private_program,
    write_manifest,
)
from estragon.godot.version import check_version
from estragon.locks import locked
from estragon.progress import Progress

LOCK_TIMEOUT_SEC = 7200.0
STALE_TIMEOUT_SEC = 30.0
UNFINISHED = "unfinished-"
DISK_FULL = ("No space left on device", "enough free space")


def install_private(*, releases: str = RELEASES, release: Release | None = None) -> Path:
    """Install Godot where Estragon keeps it, if it is not there yet; returns the program."""
    if (program := _working_copy()) is not None:
        return program
    with (
        Progress() as progress,
        _space_explained(),
        locked(
            folder() / "lock",
            timeout_sec=LOCK_TIMEOUT_SEC,
            waiting=lambda: progress.say("waiting for another installation of Godot to finish"),
        ),
    ):
        if (program := _working_copy()) is not None:
            return program
        _remove_unfinished()
        _require_space()
        _install(progress, releases, release)
        shutil.rmtree(folder() / "downloads", ignore_errors=True)
    program = private_program()
    if program is None:
        raise UserError(f"{engine_folder()} vanished while it was installed")
    return program


def _working_copy() -> Path | None:
    program = private_program()
    try:
        if program is not None:
            check_version(program)
    except UserError:
        return None  # damaged, or too old for this Estragon: replaced
    return program


def _install(progress: Progress, releases: str, release: Release | None) -> None:
    """Try Debian's packages, then the official archive."""
    downloads = folder() / "downloads"
    ways: list[tuple[str, Callable[[Path], str]]] = [
        (f"Debian {SUITE}", lambda engine: install_debian(engine, downloads / "apt", progress)),
        (
            "official release",
            lambda engine: install_official(
                engine, downloads, progress, releases=releases, release=release
            ),
        ),
    ]
    failures: list[str] = []
    for origin, install in ways:
        engine = Path(tempfile.mkdtemp(dir=folder(), prefix=UNFINISHED))
        try:
            program = install(engine)
            progress.step("checking")
            version = check_version(engine / program)
            write_manifest(engine, Manifest(program, origin, version.text))
            _put_in_place(engine)
        except UserError as error:
            if any(sign in str(error) for sign in DISK_FULL):
                raise _disk_full() from error
            failures.append(f"{origin}: {error}")
        else:
            return
        finally:
            shutil.rmtree(engine, ignore_errors=True)
    raise UserError(
        f"Godot could not be installed ({'; '.join(failures)}); "
        "check the network and try again, or set GODOT_BIN to a Godot of your own"
    )


def _put_in_place(engine: Path) -> None:
    engine.chmod(0o755)  # temporary folders are private
    if engine_folder().exists():
        engine_folder().replace(engine.with_name(f"{engine.name}-replaced"))
    engine.replace(engine_folder())
    _remove_unfinished()


def _remove_unfinished() -> None:
    """Remove what installations left that were killed; what they started may still be dying."""
    deadline = time.monotonic() + STALE_TIMEOUT_SEC
    while leftovers := list(folder().glob(f"{UNFINISHED}*")):
        for leftover in leftovers:
            shutil.rmtree(leftover, ignore_errors=True)
        if time.monotonic() > deadline:
            return
        if any(leftover.exists() for leftover in leftovers):
            time.sleep(0.2)


def _require_space() -> None:
    if shutil.disk_usage(folder()).free < NEEDED_MB * 1e6:
        raise _disk_full()


@contextlib.contextmanager
def _space_explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full() from error
        reason = error.strerror or str(error)
        raise UserError(f"cannot install Godot in {folder()}: {reason}") from error


def _disk_full() -> UserError:
    free = shutil.disk_usage(folder()).free / 1e6 if folder().is_dir() else 0.0
    return UserError(
        f"too little space for Godot in {folder()}: {NEEDED_MB} MB are needed, {free:.0f} MB are "
        "free; make room, or set ESTRAGON_HOME to a folder on another disk"
    )
