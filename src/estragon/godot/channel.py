"""Frames over a local socket, both ways: a length, then that many bytes; every wait has an end.

Knows nothing of processes, and not what the frames mean.
"""

import socket
import struct
import time

LARGEST_FRAME = 256 * 2**20
LENGTH = struct.Struct("<I")
READ_AHEAD = 2**16
SHOWN_BYTES = 40


class ChannelError(Exception):
    """The channel cannot go on; the message says why."""


class ChannelClosedError(ChannelError):
    """The other side is gone."""


class ChannelTimeoutError(ChannelError):
    """The other side is silent."""


class Channel:
    """One connection; frames that were received are the caller's to keep."""

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
        """Send bytes that begin with their length already."""
        try:
            self._wait_for(timeout_sec)
            self._connection.sendall(data)
        except TimeoutError as error:
            raise ChannelTimeoutError("it takes nothing in any more") from error
        except OSError as error:
            raise ChannelClosedError(error.strerror or str(error)) from error

    def receive(self, timeout_sec: float) -> bytearray:
        """The next frame, without its length; may be called again after it was interrupted."""
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
        """Take in what has come, waiting for it if need be."""
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
        """A frame that is complete, if there is one."""
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
        """Whether nothing has been received that was not taken."""
        return self._have == 0 and self._frame is None

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
