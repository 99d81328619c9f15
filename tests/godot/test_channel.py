"""Frames over a socket: whole, in order, of any size, and never waited for without end."""

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from estragon.godot.channel import (
    LARGEST_FRAME,
    READ_AHEAD,
    Channel,
    ChannelClosedError,
    ChannelError,
    ChannelTimeoutError,
)


@pytest.fixture
def pair() -> Iterator[tuple[Channel, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    theirs.close()


def framed(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


@pytest.mark.parametrize("size", [0, 1, READ_AHEAD - 4, READ_AHEAD - 3, READ_AHEAD, 3_000_000])
def test_frames_of_any_size_keep_their_order(
    pair: tuple[Channel, socket.socket], size: int
) -> None:
    channel, theirs = pair
    frames = [bytes([i]) * size for i in range(3)]
    sender = threading.Thread(target=lambda: theirs.sendall(b"".join(map(framed, frames))))
    sender.start()
    received = [channel.receive(5.0) for _ in frames]
    sender.join()
    assert received == frames
    assert channel.is_empty


def test_a_frame_byte_by_byte(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair

    def drip() -> None:
        for byte in framed(b"hello"):
            theirs.sendall(bytes([byte]))
            time.sleep(0.01)

    sender = threading.Thread(target=drip)
    sender.start()
    assert channel.receive(5.0) == b"hello"
    sender.join()


def test_what_is_received_is_kept(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    theirs.sendall(framed(b"one") + framed(b"two"))
    first = channel.receive(1.0)
    channel.receive(1.0)
    assert first == b"one"


def test_silence_has_an_end_and_is_no_loss(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    theirs.sendall(framed(b"hello")[:6])
    start = time.monotonic()
    with pytest.raises(ChannelTimeoutError):
        channel.receive(0.2)
    assert time.monotonic() - start < 2.0
    theirs.sendall(framed(b"hello")[6:])
    assert channel.receive(1.0) == b"hello"


def test_drops_without_end_have_an_end(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    done = threading.Event()

    def drip() -> None:
        theirs.sendall(struct.pack("<I", 1000))
        while not done.is_set():
            theirs.sendall(b".")
            time.sleep(0.05)

    sender = threading.Thread(target=drip)
    sender.start()
    with pytest.raises(ChannelTimeoutError):
        channel.receive(0.5)
    done.set()
    sender.join()


def test_a_closed_connection(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    theirs.sendall(framed(b"hello")[:6])
    theirs.close()
    with pytest.raises(ChannelClosedError):
        channel.receive(1.0)
    with pytest.raises(ChannelClosedError):
        channel.send(bytes(10_000_000), 1.0)


def test_a_length_that_cannot_be(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    theirs.sendall(b"GET / HTTP/1.1\r\n")
    with pytest.raises(ChannelError, match="b'GET / HTTP"):
        channel.receive(1.0)
    assert int.from_bytes(b"GET ", "little") > LARGEST_FRAME


def test_a_side_that_takes_nothing_in(pair: tuple[Channel, socket.socket]) -> None:
    channel, _ = pair
    with pytest.raises(ChannelTimeoutError):
        channel.send(bytes(64_000_000), 0.3)
