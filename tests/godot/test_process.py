"""A real Godot under supervision: killed, stopped, orphaned, and told of in time."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon.godot.process import GodotError, GodotProcess
from tests.godot.staging import alive, until, write_project

START_SEC = 60.0
OWNER = """
import sys, pathlib, time
from estragon.godot.process import GodotProcess
project, godot = map(pathlib.Path, sys.argv[1:])
arguments = ["--headless", "--max-fps", "30", "--path", project]
process = GodotProcess(arguments, folder=project, godot=godot)
process.wait_for_line("the arena", lambda line: line.startswith("ready"), 60)
print(process.pid, flush=True)
time.sleep(600)
"""


def start(godot: Path, project: Path) -> GodotProcess:
    """A Godot that says it is ready and goes on for ever."""
    arguments = ["--headless", "--max-fps", "30", "--path", str(project)]
    process = GodotProcess(arguments, folder=project, godot=godot)
    process.wait_for_line("the arena", lambda line: line.startswith("ready"), START_SEC)
    return process


def test_godot_runs_and_ends_with_the_block(godot: Path, tmp_path: Path) -> None:
    with start(godot, write_project(tmp_path)) as process:
        assert process.status is None
        assert any(line.startswith("Godot Engine v4") for line in process.lines())
    assert process.status is not None
    assert not alive(process.pid)


def test_user_arguments_and_exit_code(godot: Path, tmp_path: Path) -> None:
    script = (
        "extends Node\n\nfunc _ready() -> void:\n"
        '\tprint("|".join(OS.get_cmdline_user_args()))\n\tget_tree().quit(5)\n'
    )
    write_project(tmp_path, script)
    arguments = ["--headless", "--path", str(tmp_path), "--", "a b", 'c"d']
    with GodotProcess(arguments, folder=tmp_path, godot=godot) as process:
        assert process.wait("its end", START_SEC) == 5
        assert 'a b|c"d' in process.lines()


def test_godot_killed_during_a_wait(godot: Path, tmp_path: Path) -> None:
    with start(godot, write_project(tmp_path)) as process:
        os.kill(process.pid, signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(GodotError, match=r"SIGKILL before an answer; .*ready in the arena"):
            process.wait_for("an answer", lambda: None, 30)
        assert time.monotonic() - began < 10
        assert not alive(process.pid)


def test_godot_stopped_during_a_wait(godot: Path, tmp_path: Path) -> None:
    with start(godot, write_project(tmp_path)) as process:
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(GodotError, match="timed out after 1 s waiting for an answer"):
            process.wait_for("an answer", lambda: None, 1)
        process.stop(grace_sec=0.5)
        assert not alive(process.pid)


def test_godot_ends_with_its_killed_owner(godot: Path, tmp_path: Path) -> None:
    write_project(tmp_path)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), str(godot)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    with owner.stdout:
        pid = int(owner.stdout.readline())
        assert alive(pid)
        owner.kill()
        owner.wait()
    until(lambda: not alive(pid), 2, "Godot's end")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Godot asks the system")
def test_godot_starts_without_a_home(
    godot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.setenv("ESTRAGON_HOME", str(tmp_path / "estragon"))
    with start(godot, write_project(tmp_path / "project")) as process:
        assert not any("Could not create" in line for line in process.lines())
