"""Sessions: detached processes, found again, queued, stopped; and files that are damaged."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon.controller.project import Project, Workspace
from estragon.controller.runs import list_runs
from estragon.controller.sessions import Session, Sessions, Status, read_log
from estragon.support.errors import UserError

DEMO = ["demo", "--iterations=100", "--interval=0.2"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create(tmp_path / "game", "A game", "marble")


def wait_for(sessions: Sessions, session: Session, status: Status, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while sessions.status(session) != status:
        assert time.monotonic() < deadline, (sessions.status(session), sessions.log(session))
        sessions.tick()
        time.sleep(0.05)


def test_a_session_outlives_the_controller_that_started_it(project: Project) -> None:
    code = f"""
from pathlib import Path
import os, signal
from estragon.controller.project import Project
from estragon.controller.sessions import Sessions
Sessions(Project(Path({str(project.path)!r}))).add("demo", {DEMO!r})
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    sessions = Sessions(project)
    (session,) = sessions.all()
    wait_for(sessions, session, "running")
    while not (lines := read_log(sessions.log(session))[0]):
        time.sleep(0.05)
    assert "made-up" in lines[0]
    sessions.stop(session)
    wait_for(sessions, session, "stopped")


def test_a_queue_runs_one_at_a_time(project: Project) -> None:
    sessions = Sessions(project)
    first = sessions.add("first", ["demo", "--iterations=3", "--interval=0.1"], queued=True)
    second = sessions.add("second", ["demo", "--iterations=1", "--interval=0"], queued=True)
    sessions.tick()
    assert (sessions.status(first), sessions.status(second)) == ("running", "queued")
    other = Sessions(project)  # another controller starts nothing twice
    other.tick()
    assert other.status(second) == "queued"
    wait_for(sessions, second, "finished")
    assert sessions.status(first) == "finished"


def test_a_queued_session_brings_its_own_training_config(project: Project) -> None:
    sessions = Sessions(project)
    config = {"mode": "single_agent", "timesteps": 5}
    queued = sessions.add("later", ["demo", "--iterations=0"], queued=True, config=config)
    project.write_training_config(config | {"timesteps": 7})  # of one that was started meanwhile
    assert sessions.all() == [queued]
    wait_for(sessions, queued, "finished")
    assert project.read_settings("training_config.json")["timesteps"] == 5


def test_a_stop_file_ends_no_other_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "heeds_stop_file", True)
    sessions = Sessions(project)
    first, second = (sessions.add(name, DEMO) for name in ("first", "second"))
    for session in (first, second):
        while not read_log(sessions.log(session))[0]:
            time.sleep(0.05)
    sessions.stop(first)
    wait_for(sessions, first, "stopped")
    assert not (project.folder / "STOP").exists()
    assert sessions.running() == [second]
    # Alone, it is asked by the file, and interrupted when that does not help.
    monkeypatch.setattr("estragon.controller.sessions.PATIENCE_SEC", 600.0)
    sessions.stop(second)
    assert (project.folder / "STOP").exists()
    (project.folder / "STOP").unlink()  # as a run does that starts
    sessions.tick()
    assert (project.folder / "STOP").exists()
    assert sessions.running() == [second]
    sessions._stopping[second.id].due = 0.0
    wait_for(sessions, second, "stopped")
    sessions.tick()
    assert not (project.folder / "STOP").exists()


def test_a_process_that_died_is_told_apart(project: Project) -> None:
    sessions = Sessions(project)
    session = sessions.add("demo", DEMO)
    while (pid := sessions.pid(session)) is None:
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    wait_for(sessions, session, "died")
    failed = sessions.add("bad", ["demo", "--iterations=-1"])
    wait_for(sessions, failed, "failed")
    assert "expected 0 or more" in "".join(read_log(sessions.log(failed))[0])


def test_a_run_whose_process_died_is_told_apart(project: Project) -> None:
    code = "import time; print(1, flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()  # before it begins, it has no name
    about = {
        "name": "old",
        "status": "running",
        "backend": "sb3",
        "folder": "logs",
        "pid": child.pid,
    }
    path = project.folder / "runs" / "20260101-000000_old.json"
    path.parent.mkdir()
    path.write_text(json.dumps(about))
    (path.parent / "20260102-000000_damaged.json").write_text("{")
    sessions = Sessions(project)
    assert [run.status for run in list_runs(project, sessions)] == ["running"]
    child.kill()
    child.communicate()
    assert [run.status for run in list_runs(project, sessions)] == ["died"]
    assert json.loads(path.read_text()) == about


def test_a_full_disk_loses_nothing(project: Project) -> None:
    resource = pytest.importorskip("resource")
    sessions = Sessions(project)
    kept = sessions.add("kept", ["demo", "--iterations=0"], queued=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(UserError, match=r"cannot write .*sessions\.json"):
            sessions.add("lost", ["demo"], queued=True)
        with pytest.raises(UserError, match="cannot write"):
            project.write_settings("training_config.json", {"experiment_name": "x" * 200})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sessions.all() == [kept]


def test_damaged_files_are_reported_and_stay(project: Project, tmp_path: Path) -> None:
    sessions = Sessions(project)
    sessions.file.write_text("[{")
    with pytest.raises(UserError, match=r"sessions\.json"):
        sessions.add("new", ["demo"])
    assert sessions.file.read_text() == "[{"
    (project.folder / "project.json").write_text('{"name": 7}')
    with pytest.raises(UserError, match=r"project\.json: name"):
        _ = project.file
    with pytest.raises(UserError, match=r"project\.json"):
        Project.open(project.path)
    workspace = Workspace(tmp_path, tmp_path / "home")
    workspace.use(project)
    project.path.rename(tmp_path / "moved")
    with pytest.raises(UserError, match="is missing"):
        _ = workspace.projects()[0].file
    with pytest.raises(UserError, match="is missing"):
        sessions.add("new", ["demo"])
    workspace.forget(project)
    assert workspace.projects() == []


def test_a_log_is_read_in_whole_lines_from_where_it_was_left(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"one\n\x1b[31mtwo\x1b[0m\n10%\r20%\r30%\nunfin")
    lines, offset = read_log(path)
    assert lines == ["one", "two", "30%"]
    with path.open("ab") as log:
        log.write(b"ished\n" + b"x" * 100_000 + b"\nlast\n")
    lines, offset = read_log(path, offset)
    assert lines[-1] == "last"
    assert read_log(path, offset) == ([], offset)
