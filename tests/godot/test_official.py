"""The official archive: fetched from a server, verified, unpacked; or a clear word why not."""

import functools
import hashlib
import http.server
import io
import socket
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from estragon.godot import install
from estragon.godot.find import find_godot, read_version
from estragon.godot.install import (
    RELEASES_BY_PLATFORM,
    Release,
    install_official,
    install_private,
    release_here,
)
from estragon.support.errors import UserError
from estragon.support.progress import Progress

VERSION = "4.6.3.stable.official.abc"
PROGRAM = "Godot.app/Contents/MacOS/Godot"


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
def release(tmp_path: Path) -> Release:
    """An archive like the official ones, in the folder that is served."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(PROGRAM, f"#!/bin/sh\necho {VERSION}\n")
        archive.writestr("Godot.app/Contents/Info.plist", "x" * 100_000)
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "Godot.zip").write_bytes(packed.getvalue())
    return Release("Godot.zip", PROGRAM, hashlib.sha512(packed.getvalue()).hexdigest())


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server on this machine."""
    handler = functools.partial(QuietHandler, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def fetch(tmp_path: Path, url: str, release: Release) -> Path:
    engine = tmp_path / "engine"
    name = install_official(
        engine, tmp_path / "downloads", Progress(), releases=url, release=release
    )
    return engine / name


def test_fetched_verified_and_unpacked(tmp_path: Path, url: str, release: Release) -> None:
    program = fetch(tmp_path, url, release)
    assert program == tmp_path / "engine" / PROGRAM
    assert read_version(program).text == VERSION


def test_where_there_is_no_apt_it_is_installed(
    empty_home: Path, url: str, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = install_private(releases=url, release=release)
    assert program == find_godot()
    assert sorted(path.name for path in (empty_home / "godot").iterdir()) == ["engine", "lock"]
    assert install_private(releases="http://127.0.0.1:9", release=release) == program


def test_a_damaged_copy_is_replaced(
    empty_home: Path, url: str, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = install_private(releases=url, release=release)
    program.write_text("damaged")
    assert install_private(releases=url, release=release) == program
    assert read_version(program).text == VERSION
    assert sorted(path.name for path in (empty_home / "godot").iterdir()) == ["engine", "lock"]


def test_another_file_than_the_official_one(tmp_path: Path, url: str, release: Release) -> None:
    with pytest.raises(UserError, match=r"Godot.zip is not the official file: its SHA-512 is"):
        fetch(tmp_path, url, release._replace(sha512="0" * 128))
    assert not (tmp_path / "engine").exists()
    assert not (tmp_path / "downloads" / "Godot.zip").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [("absent.zip", "File not found"), ("broken-off.zip", "closed after 4 of 1000 bytes")],
)
def test_a_server_that_has_it_not(
    tmp_path: Path, url: str, release: Release, name: str, says: str
) -> None:
    with pytest.raises(UserError, match=rf"cannot download {url}/{name}: .*{says}"):
        fetch(tmp_path, url, release._replace(archive=name))


def test_a_server_that_is_silent(
    tmp_path: Path, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "SILENCE_SEC", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(UserError, match=r"cannot download .*(timed out|no answer)"):
            fetch(tmp_path, url, release)


def test_a_file_without_end(
    tmp_path: Path, url: str, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "LARGEST_BYTES", 100)
    with pytest.raises(UserError, match="gave up after"):
        fetch(tmp_path, url, release)


def test_every_platform_has_its_archive() -> None:
    for release in RELEASES_BY_PLATFORM.values():
        assert release.archive.startswith("Godot_v4.6.")
        assert release.archive.endswith(".zip")
        assert len(bytes.fromhex(release.sha512)) == 64
    assert release_here() in RELEASES_BY_PLATFORM.values()
