"""A display for pictures: the one that is there, a virtual one, or an error that names it."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from estragon.errors import UserError
from estragon.godot.display import display, has_display
from estragon.godot.process import GodotProcess
from tests.godot.staging import write_program, write_project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is a display")
needs_xvfb = pytest.mark.skipif(shutil.which("Xvfb") is None, reason="apt-get install xvfb")


@pytest.fixture(autouse=True)
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


def test_no_display_and_no_xvfb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(UserError, match=r"no display and no Xvfb: .*apt-get install xvfb"),
        display(),
    ):
        pass


def test_an_xvfb_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path / "Xvfb", "echo no fonts; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(UserError, match=r"Xvfb: it ended with exit code 1 .*no fonts"), display():
        pass


@needs_xvfb
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


@needs_xvfb
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
