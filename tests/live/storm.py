"""Clients that send everything but what they should, and one that plays on undisturbed."""

import contextlib
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import Role
from tests.live.staging import (
    PATIENCE_SEC,
    SIZE,
    Game,
    frame,
    hello,
    results,
    seen,
    shake_hands,
    websocket_frame,
)

BINARY, CLOSE = 2, 8
PAUSE_SEC = 0.005
"""Between two decisions of a game that plays on."""
WRONG: dict[str, Any] = {
    "type": 7,
    "obs": "none",
    "seq": -1,
    "transitions": {},
    "reward": "much",
    "action": [[]],
    "done": "perhaps",
    "info": 3,
    "protocol": 2,
    "encoding": [],
    "observation_version": {},
    "observation_size": 2**70,
    "arenas": 0,
}
"""What each field must not be."""


def messages(size: int) -> list[dict[str, Any]]:
    """Those after which a connection goes on, however wrong they are."""
    step = {"obs": [0.1] * size, "action": [0, 0, 0], "reward": 0.5, "done": False, "info": {}}
    return [
        {"type": "act", "obs": [0.1] * size},
        {"type": "act_batch", "obs": {"Agent1": [0.1] * size, "Agent2": [0.2] * size}, "seq": 1},
        {"type": "transition", "seq": 1, **step},
        {"type": "transition_batch", "transitions": [step, step]},
    ]


class Storm:
    """Sends frames that are malformed, oversized, cut off, wrongly typed and out of order."""

    def __init__(self, port: int, seed: int, size: int) -> None:
        self.frames = 0
        """That were certainly bad, and certainly read."""
        self.connections = 0
        self.closed: Counter[int | None] = Counter()
        """By close code; None where the connection just ended."""
        self._port, self._size = port, size
        self._random = np.random.default_rng(seed)
        self._messages = messages(size)

    def blow(self, frames: int) -> None:
        """Send at least so many more."""
        visits = (self._chatter, self._spoil, self._break_protocol, self._exceed)
        enough = self.frames + frames
        while self.frames < enough:
            with self._visitor() as visitor:
                visits[self._random.choice(4, p=[0.3, 0.5, 0.19, 0.01])](visitor)

    def drop(self) -> None:
        """Vanish in the middle of a frame."""
        with self._visitor() as visitor:
            self._agree(visitor)
            data = websocket_frame(self._frame(0), BINARY)
            visitor.send(data[: self._random.integers(1, len(data))])
            visitor.vanish()

    def _visitor(self) -> "Visitor":
        self.connections += 1
        return Visitor(self._port)

    def _chatter(self, visitor: "Visitor") -> None:
        """Text that says nothing, and sometimes a hello that is refused."""
        count = int(self._random.integers(1, 20))
        for _ in range(count):
            message = self._messages[self._random.integers(len(self._messages))]
            visitor.send(websocket_frame(self._nonsense(message)))
            visitor.send(websocket_frame(self._scribble(message)))
        visitor.send(websocket_frame(b'{"type":"that was all"}'))
        ended = visitor.wait_for(b"that was all")
        if ended is None and visitor.heard:
            self.frames += count
            if self._random.random() < 0.5:
                visitor.send(websocket_frame(self._wrong(self._hello())))
                self.frames += 1
                ended = visitor.wait_for(b"nothing ever says this")
        self.closed[ended] += 1

    def _spoil(self, visitor: "Visitor") -> None:
        """A good beginning, and a frame that ends it."""
        if self._random.random() < 0.9:
            self._agree(visitor)
        good = int(self._random.integers(0, 3))
        for seq in range(good):
            brought = self._results() if seq else None
            visitor.send(websocket_frame(self._frame(seq, brought=brought), BINARY))
        visitor.send(websocket_frame(self._bad_frame(good), BINARY))
        self.frames += 1
        self.closed[visitor.wait_for(b"nothing ever says this")] += 1

    def _break_protocol(self, visitor: "Visitor") -> None:
        """Bytes that are no WebSocket frame at all."""
        visitor.send(bytes([0x80 | self._random.integers(3, 8), 0x80]) + self._random.bytes(200))
        self.frames += 1
        self.closed[visitor.wait_for(b"nothing ever says this")] += 1

    def _exceed(self, visitor: "Visitor") -> None:
        """More than anybody may say: in one frame, or bit by bit."""
        if self._random.random() < 0.5:
            visitor.send(b"\x82\xff" + struct.pack(">Q", 2**24 + 1) + bytes(4))
        else:
            piece = websocket_frame(bytes(2**20), 0)
            with contextlib.suppress(OSError):
                visitor.send(b"\x02" + piece[1:])
                for _ in range(17):
                    visitor.send(b"\x00" + piece[1:])
        self.frames += 1
        self.closed[visitor.wait_for(b"nothing ever says this")] += 1

    def _agree(self, visitor: "Visitor") -> None:
        visitor.send(websocket_frame(json.dumps(self._hello()).encode()))
        visitor.wait_for(b'"says"')
        assert visitor.heard

    def _hello(self) -> dict[str, Any]:
        return hello(observation_size=self._size)

    def _frame(self, seq: int, **changes: Any) -> bytes:
        return frame(seq, seen(3, seq, self._size), **changes)

    def _results(self, ended: Sequence[int] = ()) -> dict[str, np.ndarray]:
        return results(ended=ended, size=self._size)

    def _nonsense(self, message: dict[str, Any]) -> bytes:
        """A message cut off, or with something in it that does not belong there."""
        if self._random.random() < 0.3:
            text = json.dumps(message).encode()
            return text[: self._random.integers(1, len(text))]
        return self._wrong(message)

    def _wrong(self, message: dict[str, Any]) -> bytes:
        keys = [key for key in message if key in WRONG and message[key] != "hello"]
        chosen = keys[self._random.integers(len(keys))]
        return json.dumps(message | {chosen: WRONG[chosen]}).encode()

    def _scribble(self, message: dict[str, Any]) -> bytes:
        """A message with some letters changed; who knows what it says now."""
        text = bytearray(json.dumps(message).encode())
        place = self._random.integers(len(text))
        letters = self._random.integers(32, 127, self._random.integers(0, 3))
        text[place : place + self._random.integers(0, 3)] = bytes(letters.tolist())
        return bytes(text)

    def _bad_frame(self, seq: int) -> bytes:
        random = self._random
        brought = self._results(ended=[1]) if seq else None
        whole = self._frame(seq, brought=brought)
        spoilt = seen(3, seq, self._size)
        too_few = self._results(ended=[0, 1]) | {"last": seen(1, 0, self._size)}
        spoilt.flat[random.integers(spoilt.size)] = random.choice([np.nan, np.inf, -np.inf])
        return [
            lambda: whole[: random.integers(0, len(whole))],
            lambda: whole + random.bytes(int(random.integers(1, 50))),
            lambda: random.bytes(int(random.integers(0, 300))),
            lambda: frame(seq, spoilt, brought),
            lambda: self._frame(seq, kind=int(random.integers(0, 68))),
            lambda: self._frame(seq, flags=int(random.integers(2, 256))),
            lambda: self._frame(seq, arenas=int(random.integers(4, 2**16))),
            lambda: self._frame(seq, seekers=np.array([0, 1, random.integers(2, 128)], "i1")),
            lambda: self._frame(seq, brought=too_few),
            lambda: self._frame((seq + int(random.integers(1, 2**31))) % 2**32, flags=seq == 0),
        ][random.integers(10)]()


class Visitor:
    """A WebSocket without any scruples."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_SEC)
        self._received = b""
        self.heard = False
        """Whether the server has said what was waited for."""

    def __enter__(self) -> Self:
        shake_hands(self._socket)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes; nobody minds if the server does not want them any more."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(data)

    def vanish(self) -> None:
        """End without a word."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def wait_for(self, text: bytes) -> int | None:
        """Read until a message has this in it, or the end; the close code, if there was one."""
        with contextlib.suppress(ConnectionError, EOFError):
            while True:
                opcode, data = self._read_frame()
                if opcode == CLOSE:
                    return int.from_bytes(data[:2], "big")
                if text in data:
                    self.heard = True
                    return None
        return None

    def _read_frame(self) -> tuple[int, bytes]:
        opcode, length = self._read(2)
        if length >= 126:
            length = int.from_bytes(self._read(2 if length == 126 else 8), "big")
        return opcode & 0x0F, self._read(length)

    def _read(self, count: int) -> bytes:
        while len(self._received) < count:
            more = self._socket.recv(2**16)
            if not more:
                raise EOFError
            self._received += more
        data, self._received = self._received[:count], self._received[count:]
        return data


class Player(Protocol):
    """Somebody who plays through a storm."""

    def check(self) -> str:
        """What it has done so far; fails where anything has disturbed it."""
        ...


class SteadyGame:
    """A well-behaved client that knows what it must be answered."""

    def __init__(self, port: int, policies: Mapping[Role, FrozenPolicy], size: int) -> None:
        self._port, self._policies, self._size = port, policies, size
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._wrong: BaseException | None = None
        self._answers = 0
        self._longest_sec = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_SEC)

    def check(self) -> str:
        """What it has done so far."""
        if self._wrong is not None:
            raise self._wrong
        assert self._thread.is_alive()
        return f"{self._answers:,} answers, each after at most {1e3 * self._longest_sec:.0f} ms"

    def _run(self) -> None:
        try:
            self._play()
        except BaseException as error:  # noqa: BLE001 - for who checks, in another thread
            self._wrong = error

    def _play(self) -> None:
        random = np.random.default_rng(0)
        with Game(self._port) as game:
            game.hello(arenas=4, observation_size=self._size)
            seq = 0
            while not self._stop.is_set():
                looks = random.standard_normal((4, 2, self._size)).astype("<f4")
                brought = results(4, [seq % 4], self._size) if seq else None
                start = time.monotonic()
                answered, actions = game.decide(frame(seq, looks, brought))
                self._longest_sec = max(self._longest_sec, time.monotonic() - start)
                assert answered == seq
                for agent, role in enumerate(self._policies):
                    expected = self._policies[role].act(looks[:, agent])
                    np.testing.assert_allclose(actions[:, agent], expected, atol=1e-5)
                seq += 1
                self._answers = seq
                self._stop.wait(PAUSE_SEC)


def resident_mb(pid: int) -> float:
    """Memory of a process; 0 where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0.0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024.0


def weather(
    port: int, pid: int, player: Player, *, frames: int, drops: int, size: int = SIZE, seed: int = 0
) -> tuple[str, float]:
    """Let a storm blow on a server; what happened, and by how many MB its process grew.

    Args:
        port: where it listens.
        pid: of its process.
        player: plays meanwhile, and is asked all the time whether it is well.
        frames: how many bad frames it gets, after a tenth of them to warm up.
        drops: connections that vanish.
        size: of the observations it speaks of.
        seed: of everything that is sent.
    """
    storm = Storm(port, seed, size)
    storm.blow(frames // 10)
    before = resident_mb(pid)
    for _ in range(drops):
        storm.blow(frames // drops)
        storm.drop()
        player.check()
    grown = resident_mb(pid) - before
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(storm.closed.items(), key=str))
    told = (
        f"{storm.frames:,} bad frames, {storm.connections:,} connections, {drops} dropped, "
        f"closed with {codes}; memory {before:.0f} MB {grown:+.1f} MB; {player.check()}"
    )
    return told, grown
