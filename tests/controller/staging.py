"""A real controller in a process of its own, with a home of its own."""

import contextlib
import dataclasses
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from estragon.controller.project import Workspace
from estragon.support import paths

START_SEC = 60.0


@dataclasses.dataclass(frozen=True)
class Server:
    """A running `estragon ui`."""

    process: subprocess.Popen[bytes]
    root: Path
    home: Path
    port: int
    seconds: float
    """Until it answered."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return (self.home / "controller" / "token").read_text()

    @property
    def door(self) -> str:
        """The page that the browser is opened with."""
        return (self.home / "controller" / "open.html").as_uri()

    @property
    def cookie(self) -> dict[str, str]:
        return {"Cookie": f"estragon_token={self.token}"}

    @property
    def workspace(self) -> Workspace:
        """What it remembers."""
        return Workspace(self.root, self.home)

    def ask(
        self, path: str = "/", headers: dict[str, str] | None = None, method: str = "GET"
    ) -> int:
        """The status of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers or {})
            return connection.getresponse().status


def make_home(folder: Path) -> Path:
    """A home without projects, but with the Godot and the compiled kernels of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("godot", "numba"):
        with contextlib.suppress(FileExistsError):
            (folder / name).symlink_to(paths.home() / name)
    return folder


def environment() -> dict[str, str]:
    """As outside of a test: NiceGUI would take this variable as its own."""
    return {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}


@contextlib.contextmanager
def serving(folder: Path, *words: str) -> Iterator[Server]:
    """Start one; it is killed at the end of the block, the runs it started are not."""
    home, root = make_home(folder / "home"), folder / "root"
    root.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "estragon", "ui", *words, "--no-browser", "--port", "0"]
    running = home / "controller" / "server.json"
    running.unlink(missing_ok=True)
    begun = time.monotonic()
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--root", str(root)],
            env=environment() | {"ESTRAGON_HOME": str(home)},
            stdout=log,
            stderr=log,
        )
    try:
        while time.monotonic() - begun < START_SEC:
            assert process.poll() is None, (folder / "server.log").read_text()
            with contextlib.suppress(OSError, ValueError):
                port = int(json.loads(running.read_text())["url"].rpartition(":")[2])
                server = Server(process, root, home, port, time.monotonic() - begun)
                if server.ask() == 401:
                    yield dataclasses.replace(server, seconds=time.monotonic() - begun)
                    return
            time.sleep(0.05)
        raise AssertionError((folder / "server.log").read_text())
    finally:
        process.kill()
        process.wait()
