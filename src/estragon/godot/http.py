"""HTTP/1.1 to a game on this machine, over one connection that is kept open.

Requests may be sent ahead; answers come in their order. Every wait has a timeout.
"""

import re
import socket
import time
from typing import Any, NamedTuple

import msgspec

from estragon.godot.channel import (
    LARGEST_FRAME,
    ChannelClosedError,
    ChannelError,
    ChannelTimeoutError,
)
from estragon.support.errors import UserError

HOST = "127.0.0.1"
JSON_TYPE, BINARY_TYPE = "application/json", "application/octet-stream"
NO_CONTENT = 204
MAX_HEAD = 2**16
READ_BYTES = 2**16
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
LENGTH_HEADER = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,10})[ \t]*\r", re.IGNORECASE)


def free_port(port: int) -> int:
    """The port, or a free one for 0; UserError if another program listens there."""
    try:
        with socket.create_server((HOST, port)) as probe:
            return int(probe.getsockname()[1])
    except OSError as error:
        raise UserError(
            f"port {port} of {HOST}: {error.strerror}; stop the program that listens there, or use "
            "another port (0: a free one)"
        ) from error


class HttpAnswer(NamedTuple):
    """A status and a body."""

    status: int
    body: bytearray

    def error(self) -> str:
        """What the game says about a request that failed."""
        try:
            said = msgspec.json.decode(self.body, type=dict[str, Any])
            return f"HTTP {self.status} {said.get('error', '')}: {said.get('message', '')}"
        except msgspec.DecodeError:
            return f"HTTP {self.status}: {bytes(self.body[:120])!r}"


class HttpConnection:
    """One connection; `token` goes into every request, and nowhere else."""

    def __init__(self, port: int, token: str, timeout_sec: float) -> None:
        """Connect; ChannelClosedError if nothing listens there."""
        if not token.isascii() or not token.isprintable():
            raise ChannelError("a token with characters that no header can have")
        try:
            self._socket = socket.create_connection((HOST, port), timeout_sec)
        except OSError as error:
            raise ChannelClosedError(error.strerror or str(error)) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._timeout_sec: float | None = timeout_sec
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        self._headers = f"Host: {HOST}:{port}\r\n{authorization}"
        self._heads: dict[tuple[str, str, str], bytes] = {}
        self._received = bytearray()

    def send(
        self,
        method: str,
        path: str,
        body: bytes | bytearray | memoryview = b"",
        *,
        content_type: str = JSON_TYPE,
        timeout_sec: float,
    ) -> None:
        """Send a request."""
        key = method, path, content_type
        if (head := self._heads.get(key)) is None:
            text = f"{method} {path} HTTP/1.1\r\n{self._headers}Content-Type: {content_type}\r\n"
            head = self._heads[key] = f"{text}Content-Length: ".encode()
        try:
            self._wait_for(timeout_sec)
            self._socket.sendall(b"".join((head, b"%d\r\n\r\n" % len(body), body)))
        except TimeoutError as error:
            raise ChannelTimeoutError("it stopped reading") from error
        except OSError as error:
            raise ChannelClosedError(error.strerror or str(error)) from error

    def receive(self, timeout_sec: float) -> HttpAnswer:
        """The answer to the first request that has none yet; may be called again if interrupted."""
        received, start = self._received, 0.0
        while (answer := self._take() if received else None) is None:
            left = timeout_sec - (time.monotonic() - start) if start else timeout_sec
            if left <= 0.0:
                raise ChannelTimeoutError("no answer")
            start = start or time.monotonic()
            try:
                self._wait_for(left)
                data = self._socket.recv(READ_BYTES)
            except TimeoutError as error:
                raise ChannelTimeoutError("no answer") from error
            except OSError as error:
                raise ChannelClosedError(error.strerror or str(error)) from error
            if not data:
                raise ChannelClosedError("the other side closed it")
            received += data
        return answer

    def request(
        self, method: str, path: str, body: bytes = b"", *, timeout_sec: float
    ) -> HttpAnswer:
        """Send a request and wait for its answer."""
        self.send(method, path, body, timeout_sec=timeout_sec)
        return self.receive(timeout_sec)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _take(self) -> HttpAnswer | None:
        received = self._received
        end = received.find(b"\r\n\r\n")
        if end < 0:
            if len(received) > MAX_HEAD:
                raise ChannelError(f"a head of more than {MAX_HEAD} bytes")
            return None
        status = STATUS.match(received)
        if status is None:
            raise ChannelError(f"{bytes(received[:40])!r}, which is not HTTP")
        number = int(status[1])
        found = LENGTH_HEADER.search(received, 0, end + 2)
        if found is None and number != NO_CONTENT:
            raise ChannelError(f"an answer without Content-Length ({number})")
        length = int(found[1]) if found else 0
        if length > LARGEST_FRAME:
            raise ChannelError(f"a body of {length} bytes")
        start = end + 4
        if len(received) < start + length:
            return None
        body = received[start : start + length]
        del received[: start + length]
        return HttpAnswer(number, body)

    def _wait_for(self, timeout_sec: float) -> None:
        if timeout_sec != self._timeout_sec:
            self._socket.settimeout(timeout_sec)
            self._timeout_sec = timeout_sec
