"""Clients that misbehave: each gets its close code, and nobody else notices."""

import contextlib
import logging
import socket
import time
import urllib.request
from collections.abc import Callable

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.live.staging import (
    PATIENCE_SEC,
    Game,
    SpyBrain,
    frame,
    serving,
    shake_hands,
    wait_until,
    websocket_frame,
)
from tests.live.test_protocol import BAD

ACT = {"type": "act", "obs": [1.0, 2.0, 3.0, 4.0, 5.0]}


@pytest.mark.parametrize("make", [make for make, _ in BAD.values()], ids=BAD)
def test_a_bad_frame_ends_the_connection(make: Callable[[], bytes]) -> None:
    with serving() as server, Game(server.port) as other, Game(server.port) as game:
        other.hello()
        game.hello()
        game.decide(frame(7))
        game.socket.send(make())
        code, reason = game.closed()
        assert code == 1007
        assert reason
        assert other.decide(frame(0))[0] == 0
        assert server.counts.bad_messages == 1


@pytest.mark.parametrize("introduced", [True, False])
def test_a_frame_that_nobody_agreed_to(introduced: bool) -> None:
    with serving() as server, Game(server.port) as game:
        if introduced:
            game.hello(encoding="json")
        game.socket.send(frame(0))
        assert game.closed()[0] == 1003


@pytest.mark.parametrize("kind", [bytes, str])
def test_a_message_too_large(kind: type) -> None:
    with serving() as server, Game(server.port) as game:
        data = b"1" * (16 * 2**20 + 1)
        with contextlib.suppress(Exception):
            game.socket.send(data if kind is bytes else data.decode())
        assert game.closed()[0] == 1009


def test_text_that_is_none() -> None:
    with serving() as server, Game(server.port) as game:
        game.socket.send(b"\xff\xfe", text=True)
        assert game.closed()[0] == 1007


def test_too_many_connections() -> None:
    with serving(connections=2) as server, Game(server.port) as one, Game(server.port) as two:
        assert one.ask(ACT)["type"] == two.ask(ACT)["type"] == "action"
        with Game(server.port) as three:
            assert three.closed()[0] == 1013
        one.socket.close()
        wait_until(lambda: server.clients == 1)
        with Game(server.port) as four:
            assert four.ask(ACT)["type"] == "action"


def test_a_client_that_never_reads_holds_up_nobody() -> None:
    """Its answers fill the pipes; it is dropped after a while, and others do not notice."""
    spy = SpyBrain()
    with serving(lambda _: spy, send_sec=4.0) as server, Game(server.port) as other:
        other.hello()
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SEC) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            shake_hands(deaf)
            deaf.settimeout(0.5)
            echo = websocket_frame(b'{"type":"echo me","filling":"' + b"x" * 60_000 + b'"}')
            seq = 0
            with contextlib.suppress(TimeoutError):
                while seq < 2000:
                    deaf.sendall(echo)
                    start = time.monotonic()
                    assert other.decide(frame(seq))[0] == seq
                    assert time.monotonic() - start < 3.0
                    seq += 1
            assert seq < 2000
            assert server.clients == 2
            wait_until(lambda: server.clients == 1)
        assert other.decide(frame(seq))[0] == seq


def test_a_silent_client_holds_up_nobody() -> None:
    with (
        serving(open_sec=1.0) as server,
        socket.create_connection(("127.0.0.1", server.port), PATIENCE_SEC) as silent,
        Game(server.port) as game,
    ):
        assert game.ask(ACT)["type"] == "action"
        assert silent.recv(100) == b""  # the handshake must not last for ever


def test_a_client_that_does_not_answer_a_ping_is_dropped() -> None:
    with (
        serving(ping_every_sec=0.2, ping_sec=0.2, close_sec=0.2) as server,
        socket.create_connection(("127.0.0.1", server.port), PATIENCE_SEC) as dead,
    ):
        shake_hands(dead)
        wait_until(lambda: server.counts.connections == 1)
        wait_until(lambda: server.clients == 0)


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "/a?b=c"])
def test_a_browser_is_told_what_this_is(path: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with serving() as server:
        url = f"http://127.0.0.1:{server.port}{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE_SEC) as answer:
            text = answer.read().decode()
        assert answer.status == 200
        assert f"ws://127.0.0.1:{server.port}" in text
        assert "docs/ws_protocol.md" in text
    lines = [record for record in caplog.records if "HTTP request" in record.getMessage()]
    assert len(lines) == 1
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    "request_text",
    [
        b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
        b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nOrigin: http://[\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"\r\n\r\n",
        b"",
    ],
)
def test_a_failed_handshake_makes_no_fuss(
    request_text: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(open_sec=0.5) as server:
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SEC) as raw:
            raw.sendall(request_text)
            with contextlib.suppress(ConnectionError):
                while raw.recv(1000):
                    pass
        with Game(server.port) as game:
            assert game.ask(ACT)["type"] == "action"
    assert not any(record.exc_info for record in caplog.records)
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("origin", ["http://localhost:8060", "http://127.0.0.1"])
def test_pages_of_this_machine_may_play(origin: str) -> None:
    with (
        serving() as server,
        connect(
            f"ws://127.0.0.1:{server.port}", additional_headers={"Origin": origin}
        ) as websocket,
    ):
        websocket.send('{"type":"ping"}')
        assert "echo" in str(websocket.recv(PATIENCE_SEC))


@pytest.mark.parametrize(
    "origin", ["https://example.org", "http://localhost.example.org", "http://[", "null"]
)
def test_pages_from_elsewhere_stay_outside(origin: str) -> None:
    headers = {"Origin": origin}
    with (
        serving() as server,
        pytest.raises(InvalidStatus, match="403"),
        connect(f"ws://127.0.0.1:{server.port}", additional_headers=headers),
    ):
        pass
