"""Godot from the official release archive of this platform, its checksum verified."""

import hashlib
import platform
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import NamedTuple

from estragon.support.errors import UserError
from estragon.support.progress import Progress

VERSION = "4.6.3"
RELEASES = f"https://github.com/godotengine/godot-builds/releases/download/{VERSION}-stable"
SILENCE_SEC, DOWNLOAD_TIMEOUT_SEC = 30.0, 3600.0
LARGEST_BYTES = 500_000_000
CHUNK_BYTES = 1 << 18
MEGABYTE = 1e6


class Release(NamedTuple):
    """One platform's archive."""

    archive: str
    program: str
    """What to start, inside the archive; on Windows the one that has an output."""
    sha512: str


RELEASES_BY_PLATFORM = {
    ("linux", "x86_64"): Release(
        f"Godot_v{VERSION}-stable_linux.x86_64.zip",
        f"Godot_v{VERSION}-stable_linux.x86_64",
        "a035258da32b77f966a5376f9fa29c30a6adde826a85ba918e1605bd1fc9823e"
        "ba7d85f1dd5e748956bd2ba72827c0025ffa11bb82aec91128c407a2e723c99c",
    ),
    ("linux", "arm64"): Release(
        f"Godot_v{VERSION}-stable_linux.arm64.zip",
        f"Godot_v{VERSION}-stable_linux.arm64",
        "447381de9ccc68aa02f37e279322289f7ddf88ce9b839ed88a97c73e01cdcda4"
        "6e026897e5d88722e08491f71b3d74f72dfeb22ec7e3add6fd3e9bfbbdad6751",
    ),
    ("darwin", "universal"): Release(
        f"Godot_v{VERSION}-stable_macos.universal.zip",
        "Godot.app/Contents/MacOS/Godot",
        "0155bbc8dcf179edab4ef08e3dbbd4480d7434ab1990cb3fb25517d453b1b657"
        "87c7fe6dfc8824b15ff25e1fdcec59e8584f765054106894fee00311868c3964",
    ),
    ("win32", "x86_64"): Release(
        f"Godot_v{VERSION}-stable_win64.exe.zip",
        f"Godot_v{VERSION}-stable_win64_console.exe",
        "d44ea7ef5bab754cacd49d581b6062836b2eea12a82e1d183aebfad9cd8c7db2"
        "bd82513337bd657d6d2d5c04d46239c0570b029faf1343e81e8a2fa7b85dd83b",
    ),
    ("win32", "arm64"): Release(
        f"Godot_v{VERSION}-stable_windows_arm64.exe.zip",
        f"Godot_v{VERSION}-stable_windows_arm64_console.exe",
        "927f182b0a722e6fa80f70262c89862adedcd539c9700a5526749a30a6bcec0b"
        "979d0d9faa0fed9d8b4362dc8b4ee0e3b0ddc708995906705ea004062bc7d294",
    ),
}


def release_here() -> Release:
    """The archive for this machine."""
    machine = {"amd64": "x86_64", "aarch64": "arm64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    key = (sys.platform, "universal" if sys.platform == "darwin" else machine)
    if key not in RELEASES_BY_PLATFORM:
        raise UserError(f"there is no official Godot for {key[0]} on {machine}")
    return RELEASES_BY_PLATFORM[key]


def install_official(
    engine: Path,
    downloads: Path,
    progress: Progress,
    *,
    releases: str = RELEASES,
    release: Release | None = None,
) -> str:
    """Download, verify and unpack into `engine`; returns the program's name there."""
    release = release or release_here()
    archive = downloads / release.archive
    _download(f"{releases}/{release.archive}", archive, progress)
    progress.step("checking")
    with archive.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha512").hexdigest()
    if digest != release.sha512:
        archive.unlink()
        raise UserError(
            f"{release.archive} is not the official file: its SHA-512 is {digest[:12]}…"
        )
    _unpack(archive, engine, progress)
    program = engine / release.program
    if not program.is_file():
        raise UserError(f"{release.archive} came without {release.program}")
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
        raise UserError(f"cannot download {url}: it broke off after {done} of {total} bytes")


def _unpack(archive: Path, folder: Path, progress: Progress) -> None:
    progress.step("unpacking")
    try:
        with zipfile.ZipFile(archive) as packed:
            members = packed.infolist()
            for count, member in enumerate(members, 1):
                path = Path(packed.extract(member, folder))
                if mode := (member.external_attr >> 16) & 0o777:
                    path.chmod(mode | 0o600)
                progress.update(count, len(members))
    except zipfile.BadZipFile as error:
        raise UserError(f"{archive.name} cannot be unpacked: {error}") from error
