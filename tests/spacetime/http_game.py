"""A SpaceTime game with its HTTP API, and a client that sends whatever bytes a test wants."""

import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from estragon.godot.process import usable_user_folders

HOST = "127.0.0.1"
TOKEN = "a-token-of-the-tests"
LOCOMOTION = "res://scenes/features/vr_locomotion_test.tscn"
TRACKING = "res://scenes/features/vr_tracking_test.tscn"
START_SEC = 120.0
ANSWER_SEC = 60.0


class Answer(NamedTuple):
    """An answer of the game."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


class Client:
    """One connection."""

    def __init__(self, port: int, token: str | None = TOKEN) -> None:
        self._socket = socket.create_connection((HOST, port), ANSWER_SEC)
        self._file = self._socket.makefile("rb")
        self._authorization = f"Authorization: Bearer {token}\r\n" if token is not None else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send these bytes; it is no error if the game closed the connection."""
        with contextlib.suppress(OSError):
            self._socket.sendall(data)

    def shut_after(self, data: bytes) -> None:
        """Send these bytes, and that there are no more."""
        self.send(data)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def receive(self) -> Answer | None:
        """The next answer; None if the connection was closed instead."""
        try:
            first = self._file.readline()
            if not first:
                return None
            headers: dict[str, str] = {}
            while (line := self._file.readline().rstrip(b"\r\n")) != b"":
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            body = self._file.read(int(headers.get("content-length", "0")))
        except ConnectionError:
            return None
        return Answer(int(first.split()[1]), headers, body)

    def raw(self, data: bytes) -> Answer | None:
        """Send these bytes and wait for an answer."""
        self.send(data)
        return self.receive()

    def message(self, method: str, path: str, body: Any = None) -> bytes:
        """A request; a body that is not bytes is sent as JSON."""
        if not isinstance(body, bytes):
            body = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\n{self._authorization}"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def request(self, method: str, path: str, body: Any = None) -> Answer:
        """Send a request and wait for its answer."""
        answer = self.raw(self.message(method, path, body))
        assert answer is not None, f"{method} {path} was not answered"
        return answer

    def get(self, path: str) -> Any:
        """What a path that must be there says."""
        answer = self.request("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def post(self, path: str, body: Any = None) -> Any:
        """What a request that must succeed returns."""
        answer = self.request("POST", path, body)
        assert answer.status == 200, answer
        return answer.json


class Game(NamedTuple):
    """A game that listens."""

    port: int
    log: Path
    process: subprocess.Popen[bytes]

    def client(self, token: str | None = TOKEN) -> Client:
        """Connect."""
        return Client(self.port, token)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(
    godot: Path,
    project: Path,
    log: Path,
    *arguments: str,
    scene: str = LOCOMOTION,
    token: str = TOKEN,
) -> Iterator[Game]:
    """Start a game and wait until it listens."""
    port = free_port()
    command = [godot, "--headless", "--path", project, "--fixed-fps", "60", scene]
    command += ["--http-api", f"--http-port={port}", *arguments]
    env = usable_user_folders(os.environ) | {"API_TOKEN": token}
    with log.open("wb") as out:
        process = subprocess.Popen(list(map(str, command)), env=env, stdout=out, stderr=out)
    try:
        _wait(port, process, log)
        yield Game(port, log, process)
    finally:
        process.kill()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SEC
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), Client(port) as client:
            if client.request("GET", "/health").status == 200:
                return
        time.sleep(0.1)
    raise AssertionError(log.read_text())
