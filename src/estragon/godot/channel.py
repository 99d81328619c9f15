"""Length-prefixed frames over a local socket, and a Godot game that answers frame by frame.

A frame is a little-endian u32 length, then that many bytes. This file does not know what the bytes
mean, and every wait has a timeout.
"""

import contextlib
import json
import socket
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from estragon.godot.find import require_godot
from estragon.godot.process import GodotError, GodotProcess
from estragon.godot.project import import_project

LARGEST_FRAME = 256 * 2**20
LENGTH = struct.Struct("<I")
READ_AHEAD = 2**16
SHOWN_BYTES = 40
START_TIMEOUT_SEC = 60.0
STEP_TIMEOUT_SEC = 60.0
ACCEPT_SEC = 0.25


class ChannelError(Exception):
    """The connection failed; the message says why."""


class ChannelClosedError(ChannelError):
    """The other side closed the connection."""


class ChannelTimeoutError(ChannelError):
    """The other side did not answer in time."""


class Channel:
    """One connection; received frames belong to the caller."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._timeout_sec: float | None = connection.gettimeout()
        self._ahead = memoryview(bytearray(READ_AHEAD))
        self._have = 0
        self._frame: bytearray | None = None  # one that is longer than what is read ahead
        self._filled = 0

    def fileno(self) -> int:
        """For `select`."""
        return self._connection.fileno()

    def send(self, frame: bytes | bytearray | memoryview, timeout_sec: float) -> None:
        """Send one frame, without its length."""
        self.send_framed(LENGTH.pack(len(frame)) + frame, timeout_sec)

    def send_framed(self, data: bytes | bytearray | memoryview, timeout_sec: float) -> None:
        """Send bytes that already begin with their length."""
        try:
            self._wait_for(timeout_sec)
            self._connection.sendall(data)
        except TimeoutError as error:
            raise ChannelTimeoutError("it stopped reading") from error
        except OSError as error:
            raise ChannelClosedError(error.strerror or str(error)) from error

    def receive(self, timeout_sec: float) -> bytearray:
        """The next frame, without its length; may be called again after an interrupt."""
        start = 0.0
        while (frame := self.take() if self._have or self._frame is not None else None) is None:
            # Most frames come in one piece: then the timeout need not change.
            left = timeout_sec - (time.monotonic() - start) if start else timeout_sec
            if left <= 0.0:
                raise ChannelTimeoutError("no answer")
            start = start or time.monotonic()
            self.read(left)
        return frame

    def read(self, timeout_sec: float) -> None:
        """Read what has arrived, waiting for it if necessary."""
        to, at = (self._ahead, self._have) if self._frame is None else (self._frame, self._filled)
        try:
            self._wait_for(timeout_sec)
            count = self._connection.recv_into(memoryview(to)[at:])
        except TimeoutError as error:
            raise ChannelTimeoutError("no answer") from error
        except OSError as error:
            raise ChannelClosedError(error.strerror or str(error)) from error
        if count == 0:
            raise ChannelClosedError("the other side closed it")
        if self._frame is None:
            self._have += count
        else:
            self._filled += count

    def _wait_for(self, timeout_sec: float) -> None:
        if timeout_sec != self._timeout_sec:
            self._connection.settimeout(timeout_sec)
            self._timeout_sec = timeout_sec

    def take(self) -> bytearray | None:
        """A complete frame, if there is one."""
        if self._frame is not None:
            if self._filled < len(self._frame):
                return None
            whole, self._frame = self._frame, None
            return whole
        if self._have < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._ahead)
        if length > LARGEST_FRAME:
            shown = bytes(self._ahead[: min(self._have, SHOWN_BYTES)])
            raise ChannelError(f"a frame of {length} bytes; it begins with {shown!r}")
        end = LENGTH.size + length
        if end <= self._have:
            whole = bytearray(self._ahead[LENGTH.size : end])
            self._have -= end
            if self._have:
                self._ahead[: self._have] = self._ahead[end : end + self._have]
            return whole
        if end > len(self._ahead):
            self._frame = bytearray(length)
            self._filled = self._have - LENGTH.size
            self._frame[: self._filled] = self._ahead[LENGTH.size : self._have]
            self._have = 0
        return None

    @property
    def is_empty(self) -> bool:
        """Whether every received byte was taken."""
        return self._have == 0 and self._frame is None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Lockstep:
    """A running game that advances one step per request, and the channel to it.

    Python listens on 127.0.0.1, the game connects and sends its hello; from then on every frame
    sent is answered by one frame. `options` are the game's own, `engine` further ones of Godot
    itself, such as another script to run.
    """

    def __init__(
        self,
        project: Path,
        options: Sequence[str],
        *,
        step_timeout_sec: float = STEP_TIMEOUT_SEC,
        engine: Sequence[str] = (),
    ) -> None:
        self._step_timeout_sec = step_timeout_sec
        godot = require_godot()
        project = import_project(project, godot=godot)
        with contextlib.ExitStack() as opened:
            folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="estragon-"))
            with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
                listener.settimeout(ACCEPT_SEC)
                port = listener.getsockname()[1]
                words: list[str | Path] = ["--headless", "--path", project, "--fixed-fps", "60"]
                self.process = opened.enter_context(
                    GodotProcess(
                        [*words, *engine, "--", f"--channel={port}", *options],
                        folder=Path(folder),
                        godot=godot,
                    )
                )
                connection = self.process.wait_for(
                    "it to connect", lambda: _accept(listener), START_TIMEOUT_SEC
                )
            self._channel = Channel(connection)
            opened.callback(self._channel.close)
            self.hello: dict[str, Any] = json.loads(self._receive("its hello"))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        """The game, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def exchange(self, frame: bytes, what: str) -> bytearray:
        """Send one frame and wait for the answer; `what` is for the error message."""
        try:
            self._channel.send(frame, self._step_timeout_sec)
        except ChannelError as error:
            raise self._closed(what) from error
        return self._receive(what)

    def close(self) -> None:
        """End the game."""
        self._opened.close()

    def _receive(self, what: str) -> bytearray:
        try:
            return self._channel.receive(self._step_timeout_sec)
        except ChannelClosedError as error:
            raise self._closed(what) from error
        except ChannelTimeoutError as error:
            raise self.process.timed_out(what, self._step_timeout_sec) from error
        except ChannelError as error:
            raise self.process.error(f"sent {error} for {what}") from error

    def _closed(self, what: str) -> GodotError:
        self.process.stop()
        return self.process.error(f"the game closed the channel before {what}")


def _accept(listener: socket.socket) -> socket.socket | None:
    try:
        return listener.accept()[0]
    except TimeoutError:
        return None
