"""The HTTP client against answers of every kind."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from estragon.godot.channel import ChannelClosedError, ChannelError, ChannelTimeoutError
from estragon.godot.http import HttpConnection, free_port
from estragon.support.errors import UserError

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-LENGTH: 2\r\n\r\n{}"


@contextlib.contextmanager
def answering(*pieces: bytes) -> Iterator[tuple[HttpConnection, bytearray]]:
    """A connection to a server that sends these pieces, and what it received."""
    received = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                received.extend(peer.recv(65536))
                for piece in pieces:
                    peer.sendall(piece)
                done.wait(5.0)

        done = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        connection = HttpConnection(server.getsockname()[1], "secret", 5.0)
        try:
            yield connection, received
        finally:
            done.set()
            connection.close()
            thread.join()


def test_a_request_and_its_answer() -> None:
    with answering(OK) as (connection, received):
        answer = connection.request("POST", "/rl/step", b'{"a":1}', timeout_sec=5.0)
    assert (answer.status, bytes(answer.body)) == (200, b"{}")
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /rl/step HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nAuthorization: Bearer secret\r\n" in head
    assert head.endswith(b"Content-Length: 7")
    assert body == b'{"a":1}'


def test_answers_in_pieces_and_several_at_once() -> None:
    with answering(OK[:9], OK[9:70], OK[70:] + OK + b"HTTP/1.1 204 No Content\r\n\r\n") as (
        http,
        _,
    ):
        http.send("GET", "/", timeout_sec=5.0)
        assert [http.receive(5.0).status for _ in range(3)] == [200, 200, 204]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (b"\x00\x00\x00\x02{}\r\n\r\n", "not HTTP"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "without Content-Length",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", "a body of 9999999999 bytes"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000, "a head of more than"),
    ],
)
def test_what_is_no_answer(said: bytes, problem: str) -> None:
    with answering(said) as (connection, _), pytest.raises(ChannelError, match=problem):
        connection.request("GET", "/", timeout_sec=5.0)


def test_silence_and_hanging_up() -> None:
    with answering(b"HTTP/1.1 200") as (connection, _):
        connection.send("GET", "/", timeout_sec=5.0)
        with pytest.raises(ChannelTimeoutError):
            connection.receive(0.1)
    with pytest.raises(ChannelClosedError):
        HttpConnection(free_port(0), "", 1.0)
    with pytest.raises(ChannelError, match="no header can have"):
        HttpConnection(1, "a\r\nb", 1.0)


def test_errors_in_words() -> None:
    body = b'{"error":"forbidden","message":"not on the whitelist"}'
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(body)
    with answering(head + body) as (connection, _):
        answer = connection.request("POST", "/scene", timeout_sec=5.0)
    assert answer.error() == "HTTP 403 forbidden: not on the whitelist"


def test_free_ports() -> None:
    assert free_port(0) > 1023
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} .* stop the program"):
            free_port(port)
