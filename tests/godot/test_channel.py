"""Frames over a socket, and a game that answers frame by frame: bounded waits, clear errors."""

import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from estragon.godot.channel import (
    LARGEST_FRAME,
    READ_AHEAD,
    Channel,
    ChannelClosedError,
    ChannelError,
    ChannelTimeoutError,
    Lockstep,
)
from estragon.godot.process import GodotError, GodotProcess
from estragon.godot.project import import_project
from estragon.support import paths
from tests.godot.staging import alive

BEGIN = b"R" + struct.pack("<II", 0, 0)


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


def games_of(lockstep: Lockstep) -> list[int]:
    """The game's process and everything below it."""
    found, fresh = [lockstep.process.pid], [lockstep.process.pid]
    while fresh:
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", ",".join(map(str, fresh))],
            capture_output=True,
            text=True,
            check=False,
        )
        fresh = [int(pid) for pid in listed.stdout.split()]
        found += fresh
    return found


def test_a_game_answers_until_it_is_killed() -> None:
    with Lockstep(paths.godot_project(), ["--arenas=2"]) as lockstep:
        assert lockstep.hello["arenas"] == 2
        assert lockstep.hello["godot"].startswith("4.")
        first = bytes(lockstep.exchange(BEGIN, "observations"))
        assert bytes(lockstep.exchange(BEGIN, "observations")) == first
        for pid in games_of(lockstep):
            os.kill(pid, signal.SIGKILL)
        start = time.monotonic()
        with pytest.raises(GodotError, match="observations"):
            lockstep.exchange(BEGIN, "observations")
        assert time.monotonic() - start < 10.0


def test_a_bad_option_is_told_with_the_games_own_words() -> None:
    with pytest.raises(GodotError, match="expected a whole number from 1 to 1024, got 'many'"):
        Lockstep(paths.godot_project(), ["--arenas=many"])


def test_a_game_that_hangs_is_a_clear_error_in_bounded_time() -> None:
    with Lockstep(paths.godot_project(), [], step_timeout_sec=1.0) as lockstep:
        pids = games_of(lockstep)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(GodotError, match="timed out after 1 s waiting for observations"):
            lockstep.exchange(BEGIN, "observations")
        assert time.monotonic() - start < 15.0
    assert not any(alive(pid) for pid in pids)


def test_a_port_where_nobody_listens_ends_the_game_with_a_reason(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    project = import_project(paths.godot_project())
    arguments = ["--headless", "--path", str(project), "--fixed-fps", "60", "--"]
    with GodotProcess([*arguments, f"--channel={port}"], folder=tmp_path) as process:
        assert process.wait("its end", 60.0) == 2
        assert f"estragon: nobody listens on 127.0.0.1:{port}" in process.tail()


@pytest.mark.parametrize("frame", [b"X", b"R12", b"S\x01short"])
def test_a_frame_that_makes_no_sense_ends_the_game_with_a_reason(frame: bytes) -> None:
    with (
        Lockstep(paths.godot_project(), []) as lockstep,
        pytest.raises(GodotError, match="closed the channel before an answer"),
    ):
        lockstep.exchange(frame, "an answer")
