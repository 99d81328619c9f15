"""Installing Godot: from apt, from the official archive, interrupted, and impossible."""

import functools
import hashlib
import http.server
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from estragon.godot import debian, install
from estragon.godot.debian import Source
from estragon.godot.display import check_xvfb, has_display
from estragon.godot.find import find_godot, read_version
from estragon.godot.install import (
    RELEASES_BY_PLATFORM,
    Release,
    install_official,
    install_private,
    install_xvfb,
    release_here,
)
from estragon.support.errors import UserError
from estragon.support.progress import Progress
from tests.godot.staging import until

VERSION = "4.6.3.stable.official.abc"
PROGRAM = "Godot.app/Contents/MacOS/Godot"
NOWHERE = "http://127.0.0.1:9"
INSTALL = [sys.executable, "-m", "estragon", "godot", "install", "--private"]


def begin() -> subprocess.Popen[str]:
    return subprocess.Popen(
        INSTALL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def kill_when(path: Path, pattern: str) -> None:
    """Begin to install, and kill the installer once such a file is there."""
    with begin() as installer:
        until(lambda: any(path.glob(pattern)) or installer.poll() is not None, 300, pattern)
        assert installer.poll() is None, "it was faster than its killer"
        installer.send_signal(signal.SIGKILL)
        installer.communicate(timeout=30)


def apt_at_work(home: Path) -> bool:
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"apt-get" in (words := command.read_bytes()) and str(home).encode() in words:
                return True
        except OSError:
            continue
    return False


@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="kills an apt-get")
def test_in_an_empty_home_killed_repeated_and_two_at_once(empty_home: Path) -> None:
    try:
        debian.find_archive()
    except UserError as error:
        pytest.skip(str(error))
    folder = empty_home / "godot"

    kill_when(folder, "downloads/apt/archives/partial/*")
    until(lambda: not apt_at_work(empty_home), 5, "apt's end with its owner")
    kill_when(folder, "unfinished-*/prefix/usr/lib")
    assert not (folder / "engine").exists()
    assert list(folder.glob("unfinished-*"))

    with begin() as one, begin() as other:
        told = [process.communicate(timeout=500) for process in (one, other)]
        assert [one.returncode, other.returncode] == [0, 0], told
    assert told[0][0] == told[1][0]
    assert any("waiting for another installation" in errors for _, errors in told)
    assert any("unpacking" in errors for _, errors in told)
    copies = ["engine", "lock", *(["xvfb"] if not has_display() and not which("Xvfb") else [])]
    assert sorted(path.name for path in folder.iterdir()) == copies

    began = time.monotonic()
    again = subprocess.run(INSTALL, capture_output=True, text=True, check=True)
    assert time.monotonic() - began < 10  # it took half a minute before
    assert again.stderr == ""
    assert again.stdout == told[0][0]

    elsewhere = empty_home / "a link"
    elsewhere.symlink_to(folder / "engine" / "godot")
    version = subprocess.run([elsewhere, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("4.")


def test_ctrl_c_leaves_nothing_to_trust(empty_home: Path) -> None:
    with begin() as installer:
        until(lambda: any((empty_home / "godot").glob("unfinished-*")), 60, "its folder")
        installer.send_signal(signal.SIGINT)
        _, errors = installer.communicate(timeout=60)
    assert installer.returncode == 130
    assert errors.endswith("estragon: stopped\n")
    assert not list((empty_home / "godot").glob("unfinished-*"))
    assert not (empty_home / "godot" / "engine").exists()


def test_no_apt_and_no_network(
    empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(install, "RELEASES", NOWHERE)
    with pytest.raises(UserError) as caught:
        install_private()
    for part in (
        "Godot could not be installed",
        "no apt-get on PATH",
        f"cannot download {NOWHERE}",
        "Connection refused",
        "GODOT_BIN",
    ):
        assert part in str(caught.value)
    assert not list((empty_home / "godot").glob("unfinished-*"))


@pytest.mark.skipif(not Path("/usr/bin/apt-get").exists(), reason="no apt here")
def test_apt_but_no_network(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Source(f"{NOWHERE}/debian", ["stable"], ["main"], "")
    monkeypatch.setattr(debian, "find_debian_archive", lambda: archive)
    monkeypatch.setattr(install, "RELEASES", NOWHERE)
    with pytest.raises(UserError, match=r"apt could not get the package lists: .*official release"):
        install_private()


@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="for X11")
def test_a_damaged_xvfb_is_replaced(empty_home: Path) -> None:
    program = install_xvfb()
    assert program == empty_home / "godot" / "xvfb" / "Xvfb"
    (program.parent / "prefix" / "usr" / "bin" / "Xvfb").write_bytes(b"damaged")
    assert install_xvfb() == program
    check_xvfb(program)


def test_too_little_space_is_said_before_the_work(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "NEEDED_MB", 10**12)
    monkeypatch.setattr(install, "RELEASES", NOWHERE)
    with pytest.raises(UserError, match=r"too little space for Godot in .*ESTRAGON_HOME"):
        install_private()


def test_a_disk_that_fills_up(
    empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The downloads go to a device that is always full."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    monkeypatch.setenv("PATH", str(tmp_path))

    def fill(*_: object, **__: object) -> str:
        with Path("/dev/full").open("wb", buffering=0) as full:
            full.write(b"x")
        return ""

    monkeypatch.setattr(install, "install_official", fill)
    with pytest.raises(UserError, match="too little space for Godot"):
        install_private()
    assert not list((empty_home / "godot").glob("unfinished-*"))


def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ESTRAGON_HOME", os.fspath(tmp_path / "file"))
    with pytest.raises(UserError, match="cannot lock"):
        install_private()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files, and breaks off in the middle of one."""

    def do_GET(self) -> None:
        if "broken-off" in self.path:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """An archive like the official ones, in the folder that is served, for this machine."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(PROGRAM, f"#!/bin/sh\necho {VERSION}\n")
        archive.writestr("Godot.app/Contents/Info.plist", "x" * 100_000)
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "Godot.zip").write_bytes(packed.getvalue())
    release = Release("Godot.zip", PROGRAM, hashlib.sha512(packed.getvalue()).hexdigest())
    monkeypatch.setattr(install, "release_here", lambda: release)
    return release


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on this machine, where releases are."""
    handler = functools.partial(QuietHandler, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(install, "RELEASES", url)
        yield url
        server.shutdown()
        thread.join()


def fetch(tmp_path: Path) -> Path:
    engine = tmp_path / "engine"
    return engine / install_official(engine, tmp_path / "downloads", Progress())


@pytest.mark.usefixtures("url", "release")
def test_fetched_verified_and_unpacked(tmp_path: Path) -> None:
    program = fetch(tmp_path)
    assert program == tmp_path / "engine" / PROGRAM
    assert read_version(program) == VERSION


@pytest.mark.usefixtures("url", "release")
def test_where_there_is_no_apt_it_is_installed(
    empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = install_private()
    assert program == find_godot()
    assert sorted(path.name for path in (empty_home / "godot").iterdir()) == ["engine", "lock"]
    monkeypatch.setattr(install, "RELEASES", NOWHERE)
    assert install_private() == program


@pytest.mark.usefixtures("url", "release")
def test_a_damaged_copy_is_replaced(
    empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = install_private()
    program.write_text("damaged")
    assert install_private() == program
    assert read_version(program) == VERSION
    assert sorted(path.name for path in (empty_home / "godot").iterdir()) == ["engine", "lock"]


@pytest.mark.usefixtures("url")
def test_another_file_than_the_official_one(
    tmp_path: Path, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "release_here", lambda: release._replace(sha512="0" * 128))
    with pytest.raises(UserError, match=r"Godot.zip is not the official file: its SHA-512 is"):
        fetch(tmp_path)
    assert not (tmp_path / "engine").exists()
    assert not (tmp_path / "downloads" / "Godot.zip").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [("absent.zip", "File not found"), ("broken-off.zip", "closed after 4 of 1000 bytes")],
)
def test_a_server_that_has_it_not(
    tmp_path: Path,
    url: str,
    release: Release,
    name: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(install, "release_here", lambda: release._replace(archive=name))
    with pytest.raises(UserError, match=rf"cannot download {url}/{name}: .*{says}"):
        fetch(tmp_path)


@pytest.mark.usefixtures("release")
def test_a_server_that_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "SILENCE_SEC", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr(install, "RELEASES", url)
        with pytest.raises(UserError, match=r"cannot download .*(timed out|no answer)"):
            fetch(tmp_path)


@pytest.mark.usefixtures("url", "release")
def test_a_file_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "LARGEST_BYTES", 100)
    with pytest.raises(UserError, match="gave up after"):
        fetch(tmp_path)


def test_every_platform_has_its_archive() -> None:
    for release in RELEASES_BY_PLATFORM.values():
        assert release.archive.startswith("Godot_v4.6.")
        assert release.archive.endswith(".zip")
        assert len(bytes.fromhex(release.sha512)) == 64
    assert release_here() in RELEASES_BY_PLATFORM.values()
