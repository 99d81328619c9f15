"""Installing private copies of Godot and Xvfb: at most once, one at a time, whole or not at all."""

import contextlib
import dataclasses
import errno
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from estragon.godot.debian import (
    NEEDED_MB,
    SUITE,
    XVFB_NEEDED_MB,
    install_debian,
    install_debian_xvfb,
)
from estragon.godot.display import check_xvfb
from estragon.godot.official import RELEASES, Release, install_official
from estragon.godot.private import (
    Manifest,
    engine_folder,
    folder,
    private_program,
    write_manifest,
    xvfb_folder,
)
from estragon.godot.version import check_version
from estragon.support.errors import UserError
from estragon.support.locks import locked
from estragon.support.progress import Progress

LOCK_TIMEOUT_SEC = 7200.0
STALE_TIMEOUT_SEC = 30.0
UNFINISHED = "unfinished-"
DISK_FULL = ("No space left on device", "enough free space")


@dataclasses.dataclass(frozen=True)
class _Copy:
    """A program to install."""

    name: str
    target: Path
    """Its folder, once it is whole."""
    needed_mb: float
    ways: list[tuple[str, Callable[[Path, Path, Progress], str]]]
    """Where it can come from, and how: into a folder, with downloads kept in another; returns the
    program's name."""
    check: Callable[[Path], str]
    """The version of a program that works; a UserError says why it does not."""
    otherwise: str
    """What people can do themselves."""

    def working_program(self) -> Path | None:
        """What is installed, unless it is damaged or too old for this Estragon."""
        program = private_program(self.target)
        try:
            if program is not None:
                self.check(program)
        except UserError:
            return None
        return program


def install_private(*, releases: str = RELEASES, release: Release | None = None) -> Path:
    """Install Godot where Estragon keeps it, if it is not there yet; returns the program."""

    def official(engine: Path, downloads: Path, progress: Progress) -> str:
        return install_official(engine, downloads, progress, releases=releases, release=release)

    return _install_once(
        _Copy(
            "Godot",
            engine_folder(),
            NEEDED_MB,
            [(f"Debian {SUITE}", install_debian), ("official release", official)],
            lambda program: check_version(program).text,
            "check the network and try again, or set GODOT_BIN to a Godot of your own",
        )
    )


def install_xvfb() -> Path:
    """The same for Xvfb."""

    def check(program: Path) -> str:
        check_xvfb(program)
        return ""

    return _install_once(
        _Copy(
            "Xvfb",
            xvfb_folder(),
            XVFB_NEEDED_MB,
            [(f"Debian {SUITE}", install_debian_xvfb)],
            check,
            "check the network and try again, install Xvfb with the system's packages "
            "(apt-get install xvfb), or set DISPLAY",
        )
    )


def _install_once(copy: _Copy) -> Path:
    if (program := copy.working_program()) is not None:
        return program
    with (
        Progress() as progress,
        _space_explained(copy),
        locked(
            folder() / "lock",
            timeout_sec=LOCK_TIMEOUT_SEC,
            waiting=lambda: progress.say("waiting for another installation to finish"),
        ),
    ):
        if (program := copy.working_program()) is not None:
            return program
        _remove_unfinished()
        _require_space(copy)
        progress.say(f"installing {copy.name} in {copy.target}, once")
        _install(copy, progress)
        shutil.rmtree(folder() / "downloads", ignore_errors=True)
    program = private_program(copy.target)
    if program is None:
        raise UserError(f"{copy.target} vanished while it was installed")
    return program


def _install(copy: _Copy, progress: Progress) -> None:
    """Try one way after the other."""
    failures: list[str] = []
    for origin, install in copy.ways:
        engine = Path(tempfile.mkdtemp(dir=folder(), prefix=UNFINISHED))
        try:
            program = install(engine, folder() / "downloads", progress)
            progress.step("checking")
            version = copy.check(engine / program)
            write_manifest(engine, Manifest(program, origin, version))
            _put_in_place(engine, copy.target)
        except UserError as error:
            if any(sign in str(error) for sign in DISK_FULL):
                raise _disk_full(copy) from error
            failures.append(f"{origin}: {error}")
        else:
            return
        finally:
            shutil.rmtree(engine, ignore_errors=True)
    raise UserError(f"{copy.name} could not be installed ({'; '.join(failures)}); {copy.otherwise}")


def _put_in_place(engine: Path, target: Path) -> None:
    engine.chmod(0o755)  # temporary folders are private
    if target.exists():
        target.replace(engine.with_name(f"{engine.name}-replaced"))
    engine.replace(target)
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


def _require_space(copy: _Copy) -> None:
    if shutil.disk_usage(folder()).free < copy.needed_mb * 1e6:
        raise _disk_full(copy)


@contextlib.contextmanager
def _space_explained(copy: _Copy) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(copy) from error
        reason = error.strerror or str(error)
        raise UserError(f"cannot install {copy.name} in {folder()}: {reason}") from error


def _disk_full(copy: _Copy) -> UserError:
    free = shutil.disk_usage(folder()).free / 1e6 if folder().is_dir() else 0.0
    return UserError(
        f"too little space for {copy.name} in {folder()}: {copy.needed_mb} MB are needed, "
        f"{free:.0f} MB are free; make room, or set ESTRAGON_HOME to a folder on another disk"
    )
