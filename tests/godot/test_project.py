"""A project is imported once, again when it changed, and says why when it cannot be."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from estragon.godot.process import GodotError, GodotProcess
from estragon.godot.project import import_project, ready_project
from estragon.support.errors import UserError
from tests.godot.staging import until, write_program, write_project

IMPORT = """
import sys, pathlib
from estragon.godot.project import import_project
print(import_project(pathlib.Path(sys.argv[1]), godot=pathlib.Path(sys.argv[2])))
"""
AUTOLOAD = '[autoload]\n\nBoot="*res://boot.gd"\n'
USES_A_CLASS = """\
extends Node

func _ready() -> void:
	print("arena of %d" % Arena.new().size)
	get_tree().quit()
"""


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """A program that passes for a Godot whose imports succeed at once; leaves its arguments."""
    log = tmp_path / "imports"
    body = f'case "$*" in *--import*) echo "$*" >> "{log}" ;; esac\necho 4.6.3.stable.quick'
    return write_program(tmp_path / "quick godot", body)


def test_imported_once_and_again_when_changed(tmp_path: Path) -> None:
    """Also after an import that was stopped, and by two processes at once."""
    project = write_project(tmp_path / "project")
    imports, hang = tmp_path / "imports", tmp_path / "hang"
    wait = f'while [ -e "{hang}" ]; do sleep 0.05; done'
    body = f'case "$*" in *--import*) echo x >> "{imports}"; {wait} ;; esac\necho 4.6.3.stable.slow'
    slow = write_program(tmp_path / "slow godot", body)
    hang.touch()
    with pytest.raises(GodotError, match=r"import: timed out after 0\.2 s .*the import of"):
        import_project(project, godot=slow, timeout_sec=0.2)
    imports.write_text("")
    words = [sys.executable, "-c", IMPORT, str(project), str(slow)]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    until(imports.read_text, 60, "the first import's beginning")
    time.sleep(0.5)  # so that the other waits for it
    hang.unlink()
    assert [process.communicate(timeout=120)[0] for process in both] == [f"{project}\n"] * 2
    assert import_project(project, godot=slow) == project
    assert imports.read_text() == "x\n"
    (project / "main.gd").write_text("extends Node\n\n# changed\n")
    import_project(project, godot=slow)
    import_project(project, godot=slow)
    assert imports.read_text() == "x\nx\n"


@pytest.mark.slow
def test_what_was_imported_is_known_to_the_game(godot: Path, tmp_path: Path) -> None:
    project = write_project(tmp_path / "project", USES_A_CLASS)
    (project / "arena.gd").write_text("class_name Arena\nextends RefCounted\n\nvar size := 30\n")
    import_project(project, godot=godot)
    with GodotProcess(["--headless", "--path", str(project)], folder=tmp_path) as process:
        assert process.wait("its end", 60) == 0
        assert "arena of 30" in process.lines()


def test_not_a_project(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a Godot project: it has no project\.godot"):
        import_project(tmp_path)


def test_a_broken_project_file(godot: Path, tmp_path: Path) -> None:
    (tmp_path / "project.godot").write_text("this is [[[ not = a project\n")
    with pytest.raises(GodotError, match=r"does not import: ERROR: Error parsing .*import\.log"):
        import_project(tmp_path, godot=godot)


@pytest.mark.prove
def test_an_autoload_that_does_not_parse(godot: Path, tmp_path: Path) -> None:
    project = write_project(tmp_path, settings=AUTOLOAD)
    (project / "boot.gd").write_text("extends Node\n\nfunc _ready( -> void:\n\tpass\n")
    with pytest.raises(GodotError, match=r"Parse Error: .*res://boot\.gd:3"):
        import_project(project, godot=godot)
    (project / "boot.gd").write_text("extends Node\n\nfunc _ready() -> void:\n\tpass\n")
    import_project(project, godot=godot)


@pytest.mark.prove
def test_an_image_that_cannot_be_imported_is_told_every_time(godot: Path, tmp_path: Path) -> None:
    project = write_project(tmp_path)
    (project / "wall.png").write_text("no picture")
    for _ in range(2):
        assert ready_project(project, godot=godot).unused == ("wall.png",)
        with pytest.raises(GodotError, match=r"does not import: .*wall\.png"):
            ready_project(project, godot=godot, strict=True)


def test_an_import_that_is_killed(godot: Path, tmp_path: Path) -> None:
    project = write_project(tmp_path / "project")
    log = project / ".godot" / "import.log"
    program = write_program(
        tmp_path / "godot", f'[ "$1" = --version ] && exec "{godot}" "$@"; echo $$; exec sleep 60'
    )

    def kill() -> None:
        until(lambda: log.exists() and log.read_text().endswith("\n"), 60, "the import's beginning")
        os.kill(int(log.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(GodotError, match="ended by SIGKILL during the import of"):
        import_project(project, godot=program)
    killer.join()


def test_an_installed_project_is_copied(
    quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTRAGON_HOME", str(tmp_path / "home"))
    project = write_project(tmp_path / "site-packages" / "estragon" / "_game")
    before = sorted(project.rglob("*"))
    copy = import_project(project, godot=quick)
    assert copy.parent == tmp_path / "home" / "projects"
    assert import_project(project, godot=quick) == copy
    assert (tmp_path / "imports").read_text() == f"--headless --path {copy} --import\n"
    assert sorted(project.rglob("*")) == before
    (project / "main.gd").write_text("extends Node\n")
    assert import_project(project, godot=quick) != copy


@pytest.fixture
def read_only_project(tmp_path: Path) -> Iterator[Path]:
    """A project in a folder that not even root may write in."""
    project = write_project(tmp_path / "project")
    project.chmod(0o555)
    frozen = shutil.which("chattr") is not None and (
        subprocess.run(["chattr", "+i", project], capture_output=True, check=False).returncode == 0
    )
    if os.access(project, os.W_OK) and not frozen:
        pytest.skip("this user may write everywhere")
    yield project
    if frozen:
        subprocess.run(["chattr", "-i", project], check=True)
    project.chmod(0o755)


def test_a_read_only_project_is_copied(
    quick: Path, read_only_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTRAGON_HOME", str(tmp_path / "home"))
    copy = import_project(read_only_project, godot=quick)
    assert copy.parent == tmp_path / "home" / "projects"
    assert not (read_only_project / ".godot").exists()
    for name in ("project.godot", "main.tscn", "main.gd"):
        assert (copy / name).read_bytes() == (read_only_project / name).read_bytes()
        assert os.access(copy / name, os.W_OK)
