"""A trainer that speaks nonsense, vanishes or is not there: one line, and no game is left over."""

import os
import socket
import struct
import time
from pathlib import Path

import pytest

from estragon.godot.process import GodotProcess
from tests.godot.addon.peer import Peer, playing
from tests.godot.staging import until

IDLE = (0.0, 0.0, 0.0)
ACTIONS = struct.pack("<BxxxI", 0x41, 1)


def lines_of_the_end(peer: Peer, status: int = 1) -> list[str]:
    assert peer.process.wait("its end", 20.0) == status
    return [line for line in peer.process.lines() if line.startswith("Godot RL Agents: ")]


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"", "length: 0 bytes"),
        (b"B" + bytes(19), "kind 66"),
        (ACTIONS + bytes(16), "got 24 bytes, expected 20"),
        (struct.pack("<BxxxI", 0x41, 2) + bytes(12), "got 2 agents, expected 1"),
        (ACTIONS + struct.pack("<3f", 0, float("nan"), 0), "NaN or infinite"),
        (ACTIONS + struct.pack("<3f", 0, 0, 3), "is out of range"),
        (ACTIONS + struct.pack("<3f", 0, 0, 0.5), "is out of range"),
        (b"{", "invalid JSON"),
        (b'{"type":"dance"}', 'type "dance"'),
        (b'{"type":"call"}', "invalid call"),
        (b'{"type":"reset","seed":"x"}', "invalid seed in reset, expected an integer: x"),
        (b'{"type":"reset","x":' + b"[" * 40 + b"]" * 40 + b"}", "more than 32 deep"),
        (b'{"type":' + b"[" * 100_000, "invalid JSON"),
    ],
)
def test_a_frame_that_breaks_a_rule_ends_the_game_with_one_line(
    counter: Path, tmp_path: Path, frame: bytes, says: str
) -> None:
    with playing(counter, tmp_path) as peer:
        peer.greet("binary1")
        peer.reset()
        peer.send(frame)
        (line,) = lines_of_the_end(peer)
        assert says in line


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"\x00\x01", "starts with byte 0"),
        (b'{"type":"action"}', "expected a list for 1 agents"),
        (b'{"type":"action","action":[{"push":[1],"choice":0}]}', "expected 2 numbers, got [1"),
        (b'{"type":"action","action":[{"push":[1,1e999],"choice":0}]}', "expected 2 numbers"),
        (b'{"type":"action","action":[{"push":[1,2],"choice":9}]}', "expected a choice below 3"),
    ],
)
def test_the_same_in_json(counter: Path, tmp_path: Path, frame: bytes, says: str) -> None:
    with playing(counter, tmp_path) as peer:
        peer.greet()
        peer.old_reset()
        peer.send(frame)
        (line,) = lines_of_the_end(peer)
        assert says in line


def test_a_frame_larger_than_allowed_is_not_waited_for(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path) as peer:
        peer.greet("binary1")
        peer.connection.sendall(struct.pack("<I", 2**32 - 1))
        (line,) = lines_of_the_end(peer)
        assert "4294967295 bytes" in line


def cpu_sec(pid: int) -> float:
    """Of the process and what it started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux")
@pytest.mark.parametrize("half", [b"", struct.pack("<I", 100) + b"{"])
def test_waiting_for_a_slow_trainer_costs_little(
    counter: Path, tmp_path: Path, half: bytes
) -> None:
    with playing(counter, tmp_path) as peer:
        peer.greet("binary1")
        peer.reset()
        peer.connection.sendall(half)
        time.sleep(0.3)
        before = cpu_sec(peer.process.pid)
        time.sleep(2.0)
        assert cpu_sec(peer.process.pid) - before < 0.5


@pytest.mark.parametrize("when", ["at once", "while it waits", "while it plays"])
def test_a_game_whose_trainer_vanishes_ends(counter: Path, tmp_path: Path, when: str) -> None:
    with playing(counter, tmp_path) as peer:
        if when != "at once":
            peer.greet("binary1")
            peer.reset()
        if when == "while it plays":
            peer.send(ACTIONS + bytes(12))
        peer.connection.close()
        (line,) = lines_of_the_end(peer)
        assert "the trainer closed the connection" in line


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_a_game_that_was_told_a_port_where_nobody_listens_ends(
    counter: Path, tmp_path: Path
) -> None:
    port = free_port()
    words = ["--headless", "--path", str(counter), f"--port={port}"]
    with GodotProcess(words, folder=tmp_path) as process:
        assert process.wait("its end", 20.0) == 1
        assert any(f"127.0.0.1:{port}; quitting" in x for x in process.lines())


def test_without_a_trainer_people_control_the_agents(counter: Path, tmp_path: Path) -> None:
    words = ["--headless", "--path", str(counter), "--fixed-fps", "60", "--lifetime=5"]
    with GodotProcess(
        [*words, "--report=300", f"--wire={free_port()}"], folder=tmp_path
    ) as process:
        until(lambda: any("people control" in x for x in process.lines()), 20.0, "the line")
        until(lambda: any("heuristic human, done 59" in x for x in process.lines()), 20.0, "play")
