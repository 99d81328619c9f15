"""A server on a free port, games that talk to it, and actors that show what they were asked."""

import contextlib
import json
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from websockets.sync.client import ClientConnection, connect

from estragon.live.batcher import Actors
from estragon.live.protocol import HEADER, ActionRequest, Decision, Experience, Hello, Limits
from estragon.live.server import LiveServer
from estragon.tag.rules import TERMS

SIZE = 5
"""Of observations in tests that do not need ours."""
PATIENCE_SEC = 20.0
ROOT = Path(__file__).resolve().parents[2]
ESTRAGON = [sys.executable, "-m", "estragon"]


class SpyBrain:
    """Answers with the first three numbers that an agent sees, and keeps what it is asked."""

    learning = True

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.joined: dict[int, Hello] = {}
        self.decided: list[list[tuple[int, Decision]]] = []
        self.asked: list[list[ActionRequest]] = []
        self.learned: list[Experience] = []
        self.left: list[int] = []
        self.busy = threading.Event()
        """Set when it has been asked for the first time."""
        self.free = threading.Event()
        """It answers nobody until this is set."""
        self.free.set()

    def describe(self) -> str:
        return f"a spy of size {self.size}"

    def join(self, client: int, hello: Hello) -> None:
        self.joined[client] = hello

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        self.decided.append(list(asked))
        self._wait()
        return [decision.observations[:, :, :3] for _, decision in asked]

    def act(self, asks: Sequence[ActionRequest]) -> np.ndarray:
        self.asked.append(list(asks))
        self._wait()
        return np.stack([ask.observation[:3] for ask in asks])

    def learn(self, experiences: Sequence[Experience]) -> int:
        self.learned += experiences
        return len(experiences)

    def leave(self, client: int) -> None:
        self.left.append(client)

    def _wait(self) -> None:
        self.busy.set()
        assert self.free.wait(PATIENCE_SEC)


@contextlib.contextmanager
def serving(
    make: Callable[[int], Any] = SpyBrain, *, most_sizes: int = 16, **limits: Any
) -> Iterator[LiveServer]:
    """A server on a free port, with tighter limits."""
    actors = Actors(make, most_sizes)
    with LiveServer(actors, port=0, limits=Limits(**limits)) as server:
        yield server


class Game:
    """A client with bounded waits."""

    socket: ClientConnection

    def __init__(self, port: int) -> None:
        self._url = f"ws://127.0.0.1:{port}"
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        opening = connect(self._url, compression=None, max_size=None, close_timeout=PATIENCE_SEC)
        self.socket = self._open.enter_context(opening)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def say(self, *messages: Any) -> None:
        """Send JSON."""
        for message in messages:
            self.socket.send(json.dumps(message))

    def hear(self) -> dict[str, Any]:
        """Receive JSON."""
        message = json.loads(self.socket.recv(PATIENCE_SEC))
        assert isinstance(message, dict)
        return message

    def ask(self, message: Any) -> dict[str, Any]:
        self.say(message)
        return self.hear()

    def hello(self, **changes: Any) -> dict[str, Any]:
        return self.ask(hello(**changes))

    def decide(self, frame: bytes) -> tuple[int, np.ndarray]:
        """Send a decision; the seq and the actions that come back."""
        self.socket.send(frame)
        return self.actions()

    def actions(self) -> tuple[int, np.ndarray]:
        answer = self.socket.recv(PATIENCE_SEC)
        assert isinstance(answer, bytes)
        kind, flags, arenas, seq = HEADER.unpack_from(answer)
        assert (kind, flags) == (0x41, 0)
        return seq, np.frombuffer(answer, "<f4", offset=HEADER.size).reshape(arenas, 2, 3)

    def closed(self) -> tuple[int | None, str | None]:
        """Wait for the end; the server's close code and reason."""
        deadline = time.monotonic() + PATIENCE_SEC
        with contextlib.suppress(Exception):
            while time.monotonic() < deadline:
                self.socket.recv(PATIENCE_SEC)
        return self.socket.close_code, self.socket.close_reason


def hello(**changes: Any) -> dict[str, Any]:
    """What a game that sends binary frames says first."""
    plain = {
        "type": "hello",
        "protocol": 1,
        "encoding": "binary",
        "observation_version": 1,
        "observation_size": SIZE,
        "arenas": 3,
    }
    return plain | changes


def seen(arenas: int, number: float, size: int = SIZE) -> np.ndarray:
    """Observations that tell arena, agent and decision: (arenas, 2, size) float32."""
    observations = np.full((arenas, 2, size), number, dtype="<f4")
    observations[:, :, 0] = np.arange(arenas)[:, None]
    observations[:, :, 1] = [10.0, 20.0]
    return observations


def results(arenas: int = 3, ended: Sequence[int] = (), size: int = SIZE) -> dict[str, np.ndarray]:
    """What a decision brought, with an end in some arenas."""
    ends = np.isin(np.arange(arenas), ended).astype("i1")
    return {
        "rewards": np.arange(2.0 * arenas, dtype="<f4").reshape(arenas, 2),
        "terms": np.arange(2.0 * len(TERMS) * arenas, dtype="<f8").reshape(arenas, 2, len(TERMS)),
        "distances": np.arange(1.0 * arenas, dtype="<f8"),
        "ticks": np.arange(arenas, dtype="<i4"),
        "ends": ends,
        "winners": ends - np.int8(1),
        "last": seen(len(ended), 77.0, size),
    }


def frame(
    seq: int,
    observations: np.ndarray | None = None,
    brought: dict[str, np.ndarray] | None = None,
    *,
    seekers: np.ndarray | None = None,
    kind: int = 0x44,
    flags: int | None = None,
    arenas: int | None = None,
) -> bytes:
    """A decision as it goes over the wire."""
    observations = seen(3, seq) if observations is None else observations
    count = len(observations)
    seekers = np.zeros(count, dtype="i1") if seekers is None else seekers
    flags = (brought is not None) if flags is None else flags
    head = HEADER.pack(kind, flags, count if arenas is None else arenas, seq)
    inside = [array.tobytes() for array in (brought or {}).values()]
    return b"".join([head, *inside, seekers.tobytes(), observations.tobytes()])


class Command:
    """A running `estragon serve`, or the like, and what it says."""

    def __init__(self, words: Sequence[str | Path], folder: Path, **options: Any) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_SEC)
        self._reader.join(PATIENCE_SEC)
        if self.process.stderr is not None:
            self.process.stderr.close()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first line from here on that matches."""
        deadline = time.monotonic() + 3 * PATIENCE_SEC
        while (line := self._lines.get(timeout=deadline - time.monotonic())) is not None:
            self.said.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"it ended without saying {pattern!r}: {self.said}")

    def port(self) -> int:
        return int(self.wait_for(r"listening on ws://127\.0\.0\.1:(\d+)")[1])

    def end(self) -> int:
        """Wait for the end; the exit code."""
        code = self.process.wait(PATIENCE_SEC)
        self._reader.join(PATIENCE_SEC)
        while (line := self._lines.get(timeout=PATIENCE_SEC)) is not None:
            self.said.append(line)
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put(None)


def wait_until(true: Callable[[], bool]) -> None:
    """Fails where it does not become true soon."""
    deadline = time.monotonic() + PATIENCE_SEC
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def shake_hands(raw: socket.socket) -> None:
    """Make a plain socket a WebSocket, without a library that would answer pings."""
    raw.sendall(
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    raw.settimeout(PATIENCE_SEC)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += raw.recv(1)
    assert answer.startswith(b"HTTP/1.1 101")


def websocket_frame(data: bytes, opcode: int = 1) -> bytes:
    """A whole message of a client; its mask is nothing but zeros."""
    if len(data) < 126:
        length = bytes([0x80 | len(data)])
    elif len(data) < 2**16:
        length = b"\xfe" + len(data).to_bytes(2, "big")
    else:
        length = b"\xff" + len(data).to_bytes(8, "big")
    return bytes([0x80 | opcode]) + length + bytes(4) + data
