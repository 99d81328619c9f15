"""A display for pictures: the one that is there, a virtual one, or an error that names it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from estragon.godot.display import X_SOCKETS, _answers, _servers, display, has_display, require_xvfb
from estragon.godot.process import GodotProcess
from estragon.support.errors import UserError
from tests.godot.staging import until, write_program, write_project

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is a display"),
    pytest.mark.usefixtures("drawing"),
]
HOLD = """
import time
from estragon.godot.display import display
with display(64, 64) as env:
    print(env["DISPLAY"], flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("install", "says"),
    [
        (True, r"could not be installed \(.*no apt-get on PATH.*apt-get install xvfb"),
        (False, "no display and no Xvfb: run estragon godot install"),
    ],
)
def test_no_display_and_no_xvfb(
    install: bool, says: str, empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=says), display(install=install):
        pass


def test_an_xvfb_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path / "Xvfb", "echo no fonts; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(UserError, match=r"Xvfb: it ended with exit code 1 .*no fonts"), display():
        pass


def test_the_systems_xvfb_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path / "Xvfb", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert require_xvfb() == program


@pytest.mark.parametrize("stale", ["", ":4711", "nonsense"])
def test_a_virtual_display_for_the_while(stale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", stale)
    assert not has_display()
    with display() as env:
        monkeypatch.setenv("DISPLAY", env["DISPLAY"])
        assert has_display()
        with display() as inner:
            assert inner["DISPLAY"] == env["DISPLAY"]
    assert not has_display()


def test_one_server_for_all_of_one_size() -> None:
    with display(64, 48) as one:
        with display(64, 48) as two, display(48, 64) as other:
            assert one["DISPLAY"] == two["DISPLAY"] != other["DISPLAY"]
        assert has_display(one)
        assert not has_display(other)
    assert not has_display(one)


def test_a_server_that_was_killed_is_not_shared() -> None:
    with display(64, 48) as one:
        server = _servers[64, 48].process
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.status is not None, 10, "its end")
        with display(64, 48) as two:
            assert has_display(two)
    assert not has_display(one)
    assert not _servers


def test_no_server_outlives_its_owner() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        env = {"DISPLAY": owner.stdout.readline().strip()}
        assert has_display(env)
        owner.send_signal(signal.SIGKILL)
    until(lambda: not has_display(env), 10, "the server's end")


def test_where_sockets_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then there is only the abstract one."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with display(64, 48) as env:
        assert has_display(env)
        assert not _answers(f"{X_SOCKETS}{env['DISPLAY'][1:]}")


def test_godot_draws_a_picture(godot: Path, tmp_path: Path) -> None:
    write_project(tmp_path)
    picture = tmp_path / "movie" / "frame.png"
    picture.parent.mkdir()
    arguments = ["--path", str(tmp_path), "--rendering-driver", "opengl3"]
    arguments += ["--audio-driver", "Dummy", "--resolution", "320x180"]
    arguments += ["--write-movie", str(picture), "--fixed-fps", "60", "--quit-after", "3"]
    with (
        display(640, 360) as env,
        GodotProcess(arguments, folder=tmp_path, godot=godot, env=env) as process,
    ):
        assert process.wait("three frames", 120) == 0, process.tail()
    frames = sorted(picture.parent.glob("*.png"))
    assert frames
    assert frames[0].read_bytes().startswith(b"\x89PNG")
