"""scripts/setup_venv.py for real: real venvs and a real pip, on a project that needs no network."""

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "setup_venv.py"

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1"
"""

# Builds a wheel by hand. On its way it does what files in the project's folder ask for.
BACKEND = """\
import pathlib, time, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    with open("builds", "a") as builds:
        builds.write("x")
    if pathlib.Path("fail").exists():
        raise SystemExit("the tiny backend was told to fail")
    while pathlib.Path("hang").exists():
        time.sleep(0.05)
    root = pathlib.Path.cwd()
    with zipfile.ZipFile(f"{folder}/tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.pth", str(root))
        wheel.writestr(
            "tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n"
        )
        wheel.writestr(
            "tiny-1.dist-info/WHEEL",
            "Wheel-Version: 1.0\\nGenerator: tiny\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        )
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return "tiny-1-py3-none-any.whl"

def build_wheel(*args, **kwargs):
    raise NotImplementedError
"""


@pytest.fixture(scope="module")
def script() -> Any:
    """The script as a module, for what is quicker to ask than to run."""
    spec = importlib.util.spec_from_file_location("setup_venv", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_project(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "constraints.txt").write_text("# nothing\n")
    (folder / "backend.py").write_text(BACKEND)
    return folder


def start(project: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), "--root", str(project), "--extras", ""],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def setup(project: Path) -> tuple[int, str]:
    """Run the script to its end: its exit status and what it printed."""
    process = start(project)
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


def builds(project: Path) -> int:
    path = project / "builds"
    return len(path.read_text()) if path.exists() else 0


def wait_for_builds(project: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while builds(project) < count:
        assert time.monotonic() < deadline, "pip never came to the build"
        time.sleep(0.05)


def installed(script: Any, project: Path) -> bool:
    python = script.python_of(project / ".venv")
    command = [python, "-c", "import sys; print(sys.prefix); import backend"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project.parent)
    return done.returncode == 0 and Path(done.stdout.strip()) == project / ".venv"


@pytest.mark.slow
def test_life_of_a_venv(script: Any, tmp_path: Path) -> None:
    """Made by one of two runs, left alone, updated, mended: all in one, as making takes seconds."""
    project = make_project(tmp_path / "tiny project")  # with a space in its name
    (project / "hang").touch()
    first = start(project)
    wait_for_builds(project, 1)
    with start(project) as second:
        assert second.stdout is not None
        assert second.stdout.readline().startswith("Another setup is at work")
        (project / "hang").unlink()
        output, _ = first.communicate(timeout=120)
        assert first.returncode == 0, output
        assert second.wait(60) == 0
        assert second.stdout.read() == ""  # it found the work done
    assert [line.split()[0] for line in output.splitlines()] == ["Making", "Installing", "Ready:"]
    assert installed(script, project)
    assert builds(project) == 1

    assert setup(project) == (0, "")  # nothing changed
    assert builds(project) == 1

    kept = project / ".venv" / "kept"
    kept.touch()
    (project / "fail").touch()
    (project / "constraints.txt").write_text("# something\n")
    status, output = setup(project)
    assert status == 1
    assert "the tiny backend was told to fail" in output
    assert output.splitlines()[-1].startswith("Setup failed: could not install")
    (project / "fail").unlink()
    status, output = setup(project)
    assert status == 0, output
    assert "Making" not in output
    assert builds(project) == 3
    assert kept.exists()  # a failure of pip's own is no reason to start from nothing
    assert installed(script, project)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
@pytest.mark.prove
def test_killed_in_the_middle(script: Any, tmp_path: Path) -> None:
    """Where only the script dies, pip lives on: the next run waits for it, then starts over."""
    project = make_project(tmp_path / "tiny")
    hang = project / "hang"
    hang.touch()
    with start(project) as killed:
        wait_for_builds(project, 1)
        killed.kill()
    half = project / ".venv" / "half"
    half.touch()
    with start(project) as second:
        assert second.stdout is not None
        assert second.stdout.readline().startswith("Another setup is at work")
        hang.unlink()
        output, _ = second.communicate(timeout=120)
    assert second.returncode == 0, output
    assert "the last setup was interrupted" in output
    assert not half.exists()
    assert installed(script, project)
    assert setup(project) == (0, "")


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """The outline of a venv, enough to decide about."""
    folder = make_project(tmp_path) / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "Scripts").mkdir()
    (folder / "bin" / "python").touch()
    (folder / "Scripts" / "python.exe").touch()
    version = ".".join(map(str, sys.version_info[:3]))
    (folder / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {version}\n")
    (folder / "lib" / "python3" / "site-packages" / "pip").mkdir(parents=True)
    return folder


def test_venv_made_by_hand_is_kept(script: Any, venv: Path) -> None:
    assert script.reason_to_remake(venv, script.stamp_of(venv.parent, "all")) == ""


@pytest.mark.parametrize("version", ["3.1.1", "3.99.0"])
def test_venv_of_another_python_is_remade(script: Any, venv: Path, version: str) -> None:
    (venv / "pyvenv.cfg").write_text(f"version = {version}\n")
    reason = script.reason_to_remake(venv, script.stamp_of(venv.parent, "all"))
    assert reason == "it was made with another Python"


def test_venv_without_python_or_pip_is_remade(script: Any, venv: Path) -> None:
    stamp = script.stamp_of(venv.parent, "all")
    (venv / "lib" / "python3" / "site-packages" / "pip").rmdir()
    assert script.reason_to_remake(venv, stamp) == "it has no pip"
    script.python_of(venv).unlink()
    assert script.reason_to_remake(venv, stamp) == "its Python is gone"
    (venv / "pyvenv.cfg").unlink()
    assert script.reason_to_remake(venv, stamp) == "there is none yet"


def test_venv_that_was_moved_is_remade(script: Any, venv: Path) -> None:
    script.write_stamp(venv, script.stamp_of(make_project(venv.parent / "elsewhere"), "all"))
    reason = script.reason_to_remake(venv, script.stamp_of(venv.parent, "all"))
    assert reason == "it was made for another folder or another Python"


def test_what_a_link_leads_to_is_left_alone(script: Any, venv: Path) -> None:
    (root := venv.parent / "clone").mkdir()
    (root / "pyproject.toml").touch()
    (root / "constraints.txt").touch()
    (root / ".venv").symlink_to(venv)
    before = sorted(path.name for path in venv.rglob("*"))
    with pytest.raises(script.SetupError, match="is a link to"):
        script.set_up(root, "")
    assert sorted(path.name for path in venv.rglob("*")) == before


def test_stamp_follows_everything_that_matters(script: Any, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    stamps = {script.stamp_of(project, "all"), script.stamp_of(project, "train")}
    for name in ("pyproject.toml", "constraints.txt"):
        with (project / name).open("a") as file:
            file.write("# more\n")
        stamps.add(script.stamp_of(project, "all"))
    assert len(stamps) == 4
    assert script.stamp_of(project, "all") in stamps


def test_finished_only_with_its_stamp_and_its_python(script: Any, venv: Path) -> None:
    stamp = script.stamp_of(venv.parent, "all")
    assert not script.is_current(venv, stamp)
    script.write_stamp(venv, script.UNFINISHED)
    assert not script.is_current(venv, stamp)
    script.write_stamp(venv, stamp)
    assert script.is_current(venv, stamp)
    script.python_of(venv).unlink()
    assert not script.is_current(venv, stamp)


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 14, 0), (4, 0, 0)])
def test_other_pythons_are_refused(
    script: Any,
    venv: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: tuple[int, int, int],
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    assert script.main(["--root", str(venv.parent)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert "needs Python 3.11 to 3.13" in line
    assert ".".join(map(str, version)) in line


def test_missing_files_are_named(
    script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(["--root", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "pyproject.toml" in line
