"""The channel to a running game: bounded waits, clear errors, no orphans."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon.godot.channel import Lockstep
from estragon.godot.process import GodotError, GodotProcess
from estragon.godot.project import import_project
from estragon.support import paths

BEGIN = b"R" + struct.pack("<II", 0, 0)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


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


def test_it_introduces_itself_and_answers() -> None:
    with Lockstep(paths.godot_project(), ["--arenas=2"]) as lockstep:
        assert lockstep.hello["arenas"] == 2
        assert lockstep.hello["godot"].startswith("4.")
        first = bytes(lockstep.ask(BEGIN, "observations"))
        assert bytes(lockstep.ask(BEGIN, "observations")) == first
        pids = games_of(lockstep)
    assert not any(is_running(pid) for pid in pids)


def test_a_bad_option_is_told_with_the_games_own_words() -> None:
    with pytest.raises(GodotError, match="expected a whole number from 1 to 1024, got 'many'"):
        Lockstep(paths.godot_project(), ["--arenas=many"])


def test_a_killed_game_is_a_clear_error_at_once() -> None:
    with Lockstep(paths.godot_project(), []) as lockstep:
        for pid in games_of(lockstep):
            os.kill(pid, signal.SIGKILL)
        start = time.monotonic()
        with pytest.raises(GodotError, match="observations"):
            lockstep.ask(BEGIN, "observations")
        assert time.monotonic() - start < 10.0


def test_a_game_that_hangs_is_a_clear_error_in_bounded_time() -> None:
    with Lockstep(paths.godot_project(), [], step_timeout_sec=2.0) as lockstep:
        pids = games_of(lockstep)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(GodotError, match="timed out after 2 s waiting for observations"):
            lockstep.ask(BEGIN, "observations")
        assert time.monotonic() - start < 15.0
    assert not any(is_running(pid) for pid in pids)


def test_a_port_where_nobody_listens_ends_the_game_with_a_reason(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    project = import_project(paths.godot_project())
    arguments = ["--headless", "--path", str(project), "--fixed-fps", "60", "--"]
    with GodotProcess([*arguments, f"--channel={port}"], folder=tmp_path) as process:
        assert process.wait("its end", 60.0) == 2
        assert f"estragon: nobody listens on 127.0.0.1:{port}" in process.tail()


@pytest.mark.parametrize("frame", [b"X", b"R12", b"S\x01short", b"S"])
def test_a_frame_that_makes_no_sense_ends_the_game_with_a_reason(frame: bytes) -> None:
    with (
        Lockstep(paths.godot_project(), []) as lockstep,
        pytest.raises(GodotError, match="closed the channel before an answer"),
    ):
        lockstep.ask(frame, "an answer")


def test_the_game_ends_when_its_parent_is_killed() -> None:
    script = (
        "import sys, time\n"
        "from estragon.support import paths\n"
        "from estragon.godot.channel import Lockstep\n"
        "lockstep = Lockstep(paths.godot_project(), [])\n"
        "print(lockstep.process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert is_running(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5.0
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)
