"""Supervision: every wait ends, every end is reported, and nothing is left running."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon.godot.process import GodotError, GodotProcess, RestartBudget, SupervisedProcess
from tests.godot.staging import alive, until, write_project

OWNER = """
import os, sys, pathlib, time
from estragon.godot.process import SupervisedProcess
process = SupervisedProcess(["sleep", "600"], name="sleeper", folder=pathlib.Path(sys.argv[1]))
forked = os.fork() if sys.argv[2] == "forks" else 0
if forked or sys.argv[2] != "forks":
    print(process.pid, process._child._guard.pid, forked, flush=True)
time.sleep(600)
"""


def shell(folder: Path, script: str) -> SupervisedProcess:
    return SupervisedProcess(["sh", "-c", script], name="shell", folder=folder)


def test_what_it_says_and_how_it_ends(tmp_path: Path) -> None:
    with shell(tmp_path, "echo out; echo err >&2; exit 3") as process:
        assert process.wait("its end", 10) == 3
        assert process.lines() == ["out", "err", ""]
        assert process.status == 3


def test_it_has_no_input(tmp_path: Path) -> None:
    with shell(tmp_path, "cat") as process:
        assert process.wait("its end", 10) == 0


def test_a_line_is_waited_for_once(tmp_path: Path) -> None:
    with shell(tmp_path, "echo one; echo two; echo one again") as process:
        assert process.wait_for_line("a one", lambda line: "one" in line, 10) == "one"
        assert process.wait_for_line("a one", lambda line: "one" in line, 10) == "one again"


def test_a_timeout_names_what_was_waited_for_and_the_last_output(tmp_path: Path) -> None:
    with (
        shell(tmp_path, "echo thinking; sleep 600") as process,
        pytest.raises(GodotError) as caught,
    ):
        process.wait_for_line("a ready", lambda line: line == "ready", 0.5)
    message = str(caught.value)
    assert message.startswith(
        "shell: timed out after 0.5 s waiting for a ready; it said last: thinking; "
    )
    assert str(tmp_path / "shell.log") in message


@pytest.mark.parametrize(
    ("script", "says"),
    [("echo oops; exit 7", "exit code 7 before"), ("kill -SEGV $$", "ended by SIGSEGV before")],
)
def test_an_early_end_is_told_at_once(tmp_path: Path, script: str, says: str) -> None:
    began = time.monotonic()
    with shell(tmp_path, script) as process, pytest.raises(GodotError, match=says):
        process.wait_for("a ready", lambda: None, 60)
    assert time.monotonic() - began < 30


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(GodotError, match=r"cannot start .*nothing: No such file"):
        SupervisedProcess([tmp_path / "nothing"], name="nothing", folder=tmp_path)


def test_a_large_log_has_a_short_tail(tmp_path: Path) -> None:
    script = "yes 'a line of no interest' | head -n 300000; printf '\\033[31mred\\033[0m end\\n'"
    with shell(tmp_path, script) as process:
        process.wait("its end", 30)
        assert process.log_file.stat().st_size > 5_000_000
        assert len(process.tail()) == 8
        assert process.tail(1) == ["red end"]


def test_the_log_before_is_kept(tmp_path: Path) -> None:
    for word in ("first", "second", "third"):
        with shell(tmp_path, f"echo {word}") as process:
            process.wait("its end", 10)
    assert (tmp_path / "shell.log").read_text() == "third\n"
    assert (tmp_path / "shell.previous.log").read_text() == "second\n"
    assert len(list(tmp_path.iterdir())) == 2


def test_it_is_asked_before_it_is_killed(tmp_path: Path) -> None:
    script = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    with shell(tmp_path, script) as process:
        process.wait_for_line("it to be ready", lambda line: line == "ready", 10)
        process.stop()
        assert process.tail(1) == ["asked"]
        assert process.status == 0


def test_stop_ends_the_deaf_and_their_children(tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 600 & echo $!; wait; wait"
    with shell(tmp_path, script) as process:
        grandchild = int(process.wait_for_line("a child", str.isdecimal, 10))
        guard = process._child._guard.pid
        process.stop(grace_sec=0.2)
        for pid in (process.pid, guard):
            with pytest.raises(ProcessLookupError):  # not even a zombie
                os.kill(pid, 0)
        until(lambda: not alive(grandchild), 2, "the grandchild's end")
        assert process.status == -signal.SIGKILL


def test_what_it_leaves_behind_ends_too(tmp_path: Path) -> None:
    with shell(tmp_path, "sleep 600 & echo $!") as process:
        grandchild = int(process.wait_for_line("a child", str.isdecimal, 10))
        assert process.wait("its end", 10) == 0
        until(lambda: not alive(grandchild), 2, "the grandchild's end")


def test_stop_can_be_repeated(tmp_path: Path) -> None:
    process = shell(tmp_path, "sleep 600")
    process.stop()
    process.stop()
    assert process.status == -signal.SIGTERM


@pytest.mark.parametrize("forks", ["forks", "alone"])
def test_it_ends_with_its_killed_owner(tmp_path: Path, forks: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), forks],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    with owner.stdout:
        pid, guard, forked = map(int, owner.stdout.readline().split())
        assert alive(pid)
        owner.kill()
        owner.wait()
    try:
        until(lambda: not alive(pid), 2, "its end")
        until(lambda: not alive(guard), 2, "its guard's end")
    finally:
        if forked:
            os.kill(forked, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_it_ends_with_its_killed_guard(tmp_path: Path) -> None:
    with shell(tmp_path, "sleep 600 & echo $!; wait") as process:
        grandchild = int(process.wait_for_line("a child", str.isdecimal, 10))
        os.kill(process._child._guard.pid, signal.SIGKILL)
        until(lambda: not alive(process.pid), 2, "its end")
        with pytest.raises(GodotError, match="ended by SIGKILL"):
            process.wait_for("anything", lambda: None, 5)
        until(lambda: not alive(grandchild), 2, "the grandchild's end")


def test_a_stopped_group_is_ended(tmp_path: Path) -> None:
    with shell(tmp_path, "sleep 600") as process:
        os.killpg(process._child._guard.pid, signal.SIGSTOP)
        process.stop(grace_sec=0.1)
        until(lambda: not alive(process.pid), 2, "its end")


START_SEC = 60.0
GODOT_OWNER = """
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
        [sys.executable, "-c", GODOT_OWNER, str(tmp_path), str(godot)],
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


def test_more_restarts_than_allowed_in_the_window() -> None:
    now = 0.0
    budget = RestartBudget(2, 60.0, clock=lambda: now)
    budget.spend(GodotError("first"))
    now = 30.0
    budget.spend(GodotError("second"))
    now = 59.0
    with pytest.raises(GodotError, match="given up after 2 restarts within 60 s; third"):
        budget.spend(GodotError("third"))


def test_old_restarts_are_forgotten() -> None:
    now = 0.0
    budget = RestartBudget(2, 60.0, clock=lambda: now)
    while now < 300.0:
        budget.spend(GodotError("again"))
        now += 30.0
    budget.spend(GodotError("the second of this window"))
    with pytest.raises(GodotError, match="given up after 2 restarts"):
        budget.spend(GodotError("too often"))
