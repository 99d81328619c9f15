"""Private copies of Godot and Xvfb: installed once, by one process at a time, whole or not at all.

Godot comes from Debian's packages where there is apt, else from the official release archive of
this platform, whose checksum is verified. Nothing of the system changes.
"""

import contextlib
import dataclasses
import errno
import hashlib
import platform
import shutil
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from estragon.godot import debian, find
from estragon.godot.display import check_xvfb
from estragon.godot.find import private_folder
from estragon.support.errors import UserError
from estragon.support.files import locked
from estragon.support.progress import Progress

VERSION = "4.6.3"
NAME = f"Godot_v{VERSION}-stable"
RELEASES = f"https://github.com/godotengine/godot-builds/releases/download/{VERSION}-stable"
SILENCE_SEC, DOWNLOAD_TIMEOUT_SEC = 30.0, 3600.0
LARGEST_BYTES = 500_000_000
CHUNK_BYTES = 1 << 18
MEGABYTE = 1e6
LOCK_TIMEOUT_SEC = 7200.0
STALE_TIMEOUT_SEC = 30.0
UNFINISHED = "unfinished-"
DISK_FULL = ("No space left on device", "enough free space")


class Release(NamedTuple):
    """One platform's archive."""

    archive: str
    program: str
    """What to start, inside the archive; on Windows the console version, which has output."""
    sha512: str


RELEASES_BY_PLATFORM = {
    ("linux", "x86_64"): Release(
        f"{NAME}_linux.x86_64.zip",
        f"{NAME}_linux.x86_64",
        "a035258da32b77f966a5376f9fa29c30a6adde826a85ba918e1605bd1fc9823e"
        "ba7d85f1dd5e748956bd2ba72827c0025ffa11bb82aec91128c407a2e723c99c",
    ),
    ("linux", "arm64"): Release(
        f"{NAME}_linux.arm64.zip",
        f"{NAME}_linux.arm64",
        "447381de9ccc68aa02f37e279322289f7ddf88ce9b839ed88a97c73e01cdcda4"
        "6e026897e5d88722e08491f71b3d74f72dfeb22ec7e3add6fd3e9bfbbdad6751",
    ),
    ("darwin", "universal"): Release(
        f"{NAME}_macos.universal.zip",
        "Godot.app/Contents/MacOS/Godot",
        "0155bbc8dcf179edab4ef08e3dbbd4480d7434ab1990cb3fb25517d453b1b657"
        "87c7fe6dfc8824b15ff25e1fdcec59e8584f765054106894fee00311868c3964",
    ),
    ("win32", "x86_64"): Release(
        f"{NAME}_win64.exe.zip",
        f"{NAME}_win64_console.exe",
        "d44ea7ef5bab754cacd49d581b6062836b2eea12a82e1d183aebfad9cd8c7db2"
        "bd82513337bd657d6d2d5c04d46239c0570b029faf1343e81e8a2fa7b85dd83b",
    ),
    ("win32", "arm64"): Release(
        f"{NAME}_windows_arm64.exe.zip",
        f"{NAME}_windows_arm64_console.exe",
        "927f182b0a722e6fa80f70262c89862adedcd539c9700a5526749a30a6bcec0b"
        "979d0d9faa0fed9d8b4362dc8b4ee0e3b0ddc708995906705ea004062bc7d294",
    ),
}


@dataclasses.dataclass(frozen=True)
class _Copy:
    """A program to install."""

    name: str
    target: Path
    """Its folder, once it is complete."""
    needed_mb: float
    sources: list[tuple[str, Callable[[Path, Path, Progress], str]]]
    """Where it can come from, and a function that installs it into a folder, keeping downloads in
    another, and returns the program's name."""
    check: Callable[[Path], object]
    """Tries a program; a UserError says why it does not work."""
    advice: str
    """What people can do if every source fails."""

    def working_program(self) -> Path | None:
        """The installed program, unless it is damaged or too old for this Estragon."""
        program = find.private_program(self.target)
        try:
            if program is not None:
                self.check(program)
        except UserError:
            return None
        return program

    def disk_full(self) -> UserError:
        """The error for too little space."""
        folder = private_folder()
        free = shutil.disk_usage(folder).free / MEGABYTE if folder.is_dir() else 0.0
        return UserError(
            f"too little space for {self.name} in {folder}: {self.needed_mb} MB are needed, "
            f"{free:.0f} MB are free; free some, or set ESTRAGON_HOME to a folder on another disk"
        )


def install_private() -> Path:
    """Install Godot as a private copy if there is none yet; returns the program."""
    return _install_once(
        _Copy(
            "Godot",
            find.engine_folder(),
            debian.NEEDED_MB,
            [
                (f"Debian {debian.SUITE}", debian.install_debian),
                ("official release", install_official),
            ],
            find.check_version,
            "check the network and try again, or set GODOT_BIN to a Godot of your own",
        )
    )


def install_xvfb() -> Path:
    """Install Xvfb as a private copy if there is none yet; returns the program."""
    return _install_once(
        _Copy(
            "Xvfb",
            find.xvfb_folder(),
            debian.XVFB_NEEDED_MB,
            [(f"Debian {debian.SUITE}", debian.install_debian_xvfb)],
            check_xvfb,
            "check the network and try again, install Xvfb with the system's packages "
            "(apt-get install xvfb), or set DISPLAY",
        )
    )


def _install_once(copy: _Copy) -> Path:
    if (program := copy.working_program()) is not None:
        return program
    folder = private_folder()
    with (
        Progress() as progress,
        _explain_full_disk(copy),
        locked(
            folder / "lock",
            timeout_sec=LOCK_TIMEOUT_SEC,
            waiting=lambda: progress.say("waiting for another installation to finish"),
        ),
    ):
        if (program := copy.working_program()) is not None:
            return program
        _remove_unfinished()
        if shutil.disk_usage(folder).free < copy.needed_mb * MEGABYTE:
            raise copy.disk_full()
        progress.say(f"installing {copy.name} in {copy.target}, once")
        try:
            program = _install(copy, progress)
        finally:
            _remove_unfinished()
        shutil.rmtree(folder / "downloads", ignore_errors=True)
    return program


def _install(copy: _Copy, progress: Progress) -> Path:
    """Try one source after the other."""
    failures: list[str] = []
    for origin, install in copy.sources:
        unfinished = Path(tempfile.mkdtemp(dir=private_folder(), prefix=UNFINISHED))
        try:
            program = install(unfinished, private_folder() / "downloads", progress)
            progress.step("checking")
            copy.check(unfinished / program)
            find.write_manifest(unfinished, find.Manifest(program, origin))
            unfinished.chmod(0o755)  # temporary folders are private
            if copy.target.exists():
                copy.target.replace(unfinished.with_name(f"{unfinished.name}-replaced"))
            unfinished.replace(copy.target)
        except UserError as error:
            if any(sign in str(error) for sign in DISK_FULL):
                raise copy.disk_full() from error
            failures.append(f"{origin}: {error}")
            shutil.rmtree(unfinished, ignore_errors=True)
        else:
            return copy.target / program
    raise UserError(f"{copy.name} could not be installed ({'; '.join(failures)}); {copy.advice}")


def _remove_unfinished() -> None:
    """Remove what killed installations left; their child processes may still be ending."""
    deadline = time.monotonic() + STALE_TIMEOUT_SEC
    while leftovers := list(private_folder().glob(f"{UNFINISHED}*")):
        for leftover in leftovers:
            shutil.rmtree(leftover, ignore_errors=True)
        if time.monotonic() > deadline:
            return
        if any(leftover.exists() for leftover in leftovers):
            time.sleep(0.2)


@contextlib.contextmanager
def _explain_full_disk(copy: _Copy) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise copy.disk_full() from error
        reason = error.strerror or str(error)
        raise UserError(f"cannot install {copy.name} in {private_folder()}: {reason}") from error


def release_here() -> Release:
    """The official archive for this machine."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "aarch64": "arm64"}.get(machine, machine)
    key = (sys.platform, "universal" if sys.platform == "darwin" else machine)
    if key not in RELEASES_BY_PLATFORM:
        raise UserError(f"there is no official Godot for {key[0]} on {machine}")
    return RELEASES_BY_PLATFORM[key]


def install_official(engine: Path, downloads: Path, progress: Progress) -> str:
    """Download, verify and unpack into `engine`; returns the program's path in it."""
    release = release_here()
    archive = downloads / release.archive
    _download(f"{RELEASES}/{release.archive}", archive, progress)
    progress.step("checking")
    with archive.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha512").hexdigest()
    if digest != release.sha512:
        archive.unlink()
        raise UserError(
            f"{release.archive} is not the official file: its SHA-512 is {digest[:12]}…"
        )
    progress.step("unpacking")
    try:
        with zipfile.ZipFile(archive) as packed:
            for member in packed.infolist():
                path = Path(packed.extract(member, engine))
                if mode := (member.external_attr >> 16) & 0o777:
                    path.chmod(mode | 0o600)
    except zipfile.BadZipFile as error:
        raise UserError(f"cannot unpack {archive.name}: {error}") from error
    program = engine / release.program
    if not program.is_file():
        raise UserError(f"{release.archive} does not contain {release.program}")
    program.chmod(0o755)
    return release.program


def _download(url: str, target: Path, progress: Progress) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + DOWNLOAD_TIMEOUT_SEC
    done = 0
    try:
        with (
            urllib.request.urlopen(url, timeout=SILENCE_SEC) as answer,  # noqa: S310 - our own URL
            target.open("wb") as stream,
        ):
            total = int(answer.headers.get("Content-Length") or 0)
            progress.step("downloading", f"{total / MEGABYTE:.0f} MB")
            while chunk := answer.read(CHUNK_BYTES):
                done += stream.write(chunk)
                if done > LARGEST_BYTES or time.monotonic() > deadline:
                    raise UserError(f"gave up after {done / MEGABYTE:.0f} MB of {url}")
                progress.update(done / MEGABYTE, max(done, total) / MEGABYTE, " MB")
    except urllib.error.URLError as error:
        raise UserError(f"cannot download {url}: {error.reason}") from error
    except TimeoutError as error:
        raise UserError(f"cannot download {url}: no answer in {SILENCE_SEC:.0f} s") from error
    if done < total:
        raise UserError(
            f"cannot download {url}: the connection was closed after {done} of {total} bytes"
        )
