"""Whatever goes wrong with a game is told in one line that says what to do, and in time."""

import os
import resource
import signal
import socket
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.envs import GodotEnv
from estragon.godot.process import GodotError
from estragon.support.errors import UserError
from tests.envs.staging import free_port

STILL = np.zeros((2, 2), np.float32)


def play(path: Path, fault: str, at: int = 2, **options: Any) -> None:
    """Steps until something happens."""
    arguments = {"fault": fault, "at": at}
    with closing(GodotEnv(path, arguments=arguments, restarts=0, **options)) as env:
        env.reset()
        for _ in range(at + 1):
            env.step(STILL)


def test_nothing_connects() -> None:
    port = free_port()
    with pytest.raises(GodotError, match=f"timed out after 0.3 s .* 127.0.0.1:{port}.*press Play"):
        GodotEnv(port=port, start_timeout_sec=0.3)


def test_a_taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(UserError, match=f"127.0.0.1:{port}: another program listens there"):
            GodotEnv("debug", port=port)


def test_a_game_that_crashes_at_the_start(old_game: Path) -> None:
    with pytest.raises(GodotError, match=r"exit code 3 before the handshake .*the roof fell"):
        play(old_game, "crash")


def test_a_game_that_never_connects(tmp_path: Path) -> None:
    game = tmp_path / "sleeper"
    game.write_text("#!/bin/sh\necho I sleep\nsleep 60\n")
    game.chmod(0o755)
    start = time.monotonic()
    with pytest.raises(GodotError, match=r"timed out after 1 s .*I sleep.*Sync node"):
        GodotEnv(game, start_timeout_sec=1.0)
    assert time.monotonic() - start < 10.0


@pytest.mark.parametrize(
    ("which", "fault", "says"),
    [
        ("old", "version", "protocol version 0.7"),
        ("old", "space", "agent 0: action 'move': expected a whole number as size, got 'big'"),
        ("new", "encoding", "encoding 'binary9', which was not offered"),
        ("old", "nan", r"observation 'obs'\[3\] of agent 1 is NaN"),
        ("old", "null", r"observation 'obs'\[3\] of agent 1 \(policy1\) is nan"),
        ("new", "nan", r"observation 'obs'\[3\] of agent 1 \(policy1\) is inf"),
        ("old", "short", r"observation 'obs' of agent 1 \(policy1\) has 4 numbers, but 5"),
        ("old", "missing", r"observation 'obs' of agent 0 \(policy0\) is missing"),
        ("old", "text", r"observation 'obs' of agent 0 \(policy0\) is 'deadbeef'"),
        ("old", "few", "1 reward for 2 agents"),
        ("new", "short", "bytes, expected at least"),
        ("new", "long", "bytes too many"),
        ("new", "kind", "kind 0x51, expected 0x53"),
        ("new", "flags", "flags 0xf0"),
        ("new", "rows", "4294967295 agents, expected at most 65536"),
        ("new", "empty", "a frame of 0 bytes"),
        ("new", "state", "flags 0x40"),
        ("new", "json", "kind 0x7b, expected 0x53"),
        ("old", "die", "exit code 9 before the result of a step.*out of luck"),
        ("new", "die", "exit code 9 before the result of a step.*out of luck"),
    ],
)
def test_what_a_game_does_wrong_is_named(
    old_game: Path, new_game: Path, which: str, fault: str, says: str
) -> None:
    with pytest.raises(GodotError, match=says):
        play(old_game if which == "old" else new_game, fault)


@pytest.mark.parametrize("which", ["old", "new"])
def test_a_game_that_hangs_is_ended_and_named(old_game: Path, new_game: Path, which: str) -> None:
    start = time.monotonic()
    says = "timed out after 1 s waiting for the result of a step.*sleeping now"
    with pytest.raises(GodotError, match=says):
        play(old_game if which == "old" else new_game, "hang", step_timeout_sec=1.0)
    assert time.monotonic() - start < 10.0


GARBAGE = [
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"",
    b"\x00\x00\x00\x00",
    b"\x05\x00\x00\x00hello",
    b'\x0f\x00\x00\x00{"type":"step"}',
    b"\xff\xff\xff\xff" * 1000,
]


def connected(port: int) -> socket.socket:
    """A client, as soon as somebody listens."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.01)


def test_strangers_on_the_port_do_not_keep_the_game_out(new_game: Path) -> None:
    port = free_port()
    strangers: list[socket.socket] = []

    def disturb() -> None:
        for garbage in GARBAGE:
            stranger = connected(port)
            strangers.append(stranger)
            stranger.sendall(garbage)
        all_sent.touch()

    all_sent = new_game.with_name("all_sent")
    patient = new_game.with_name("patient")
    patient.write_text(
        f'#!/bin/sh\nwhile [ ! -e "{all_sent}" ]; do sleep 0.02; done\nexec "{new_game}" "$@"\n'
    )
    patient.chmod(0o755)
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        with closing(GodotEnv(patient, port=port)) as env:
            env.reset()
            env.step(STILL)
    finally:
        thread.join()
        for stranger in strangers:
            stranger.close()


def test_a_stranger_alone_is_described() -> None:
    port = free_port()

    over = threading.Event()

    def ask() -> None:
        with connected(port) as stranger:
            stranger.sendall(GARBAGE[0])
            over.wait()

    thread = threading.Thread(target=ask)
    thread.start()
    with pytest.raises(GodotError, match=r"client sent a frame .* begins with b'GET / HTTP"):
        GodotEnv(port=port, start_timeout_sec=1.0)
    over.set()
    thread.join()


def test_a_closed_socket_costs_no_time() -> None:
    port = free_port()
    gone = threading.Event()

    def come_and_go() -> None:
        while not gone.is_set():
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                time.sleep(0.01)
            time.sleep(0.05)

    thread = threading.Thread(target=come_and_go)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    thread.start()
    with pytest.raises(GodotError):
        GodotEnv(port=port, start_timeout_sec=2.0)
    gone.set()
    thread.join()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 1.0


def test_env_path_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "my_game.x86_64").touch()
    with pytest.raises(UserError, match=r"does not exist.*did you mean .*my_game.x86_64"):
        GodotEnv(tmp_path / "my_gme.x86_64")
    with pytest.raises(UserError, match="make it executable"):
        GodotEnv(tmp_path / "my_game.x86_64")
    with pytest.raises(UserError, match=r"no project.godot"):
        GodotEnv(tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n_parallel": 0}, "n_parallel"),
        ({"port": 70000}, "port"),
        ({"port": 65535, "n_parallel": 2}, "port"),
        ({"action_repeat": 0}, "action_repeat"),
        ({"speedup": 0.0}, "speedup"),
        ({"step_timeout_sec": 0.0}, "step_timeout_sec"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        GodotEnv(**options)


def test_a_step_that_was_interrupted(new_game: Path) -> None:
    with closing(GodotEnv(new_game, key="obs", arguments={"fault": "slow"})) as env:
        env.reset()
        env._core.send(STILL)  # as if Ctrl-C came while the answer was awaited
        with pytest.raises(UserError, match="reset first"):
            env.step(STILL)
        observations, _ = env.reset(seed=3)
        assert not observations[:, 1].any()
        observations, *_ = env.step(STILL)
        assert observations[:, 1].tolist() == [1, 1]


def test_the_editor_may_be_anybody(new_game: Path) -> None:
    """A game that somebody else started, on the port they were told."""
    port = free_port()
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        words = [str(new_game), f"--port={port}", "--env_seed=4"]
        again_until_it_connects = 'for n in $(seq 300); do "$0" "$@" && exit; sleep 0.1; done'
        started.append(
            subprocess.Popen(
                ["sh", "-c", again_until_it_connects, *words],
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    thread = threading.Thread(target=start)
    thread.start()
    with closing(GodotEnv(port=port)) as env:
        env.reset()
        env.step(STILL)
        thread.join()
        os.killpg(started[0].pid, signal.SIGKILL)
        started[0].wait()
        env._pool._budget.restarts = 0
        with pytest.raises(GodotError, match=r"it closed the connection .*output in the editor"):
            env.step(STILL)
