"""A real Godot for the tests that need one."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from estragon.godot.display import has_display, require_xvfb
from estragon.godot.find import require_godot

if sys.platform == "win32":
    collect_ignore_glob = ["test_*.py"]  # they stage shell scripts and signals


@pytest.fixture(scope="session")
def godot() -> Path:
    """The Godot of this machine, installed if there is none."""
    return require_godot(install=True)


@pytest.fixture(scope="session")
def drawing() -> None:
    """Pictures can be drawn; Xvfb is installed if there is neither a display nor one."""
    if not has_display():
        require_xvfb()


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which there is no Godot: an empty home, and none on the PATH."""
    monkeypatch.delenv("GODOT_BIN", raising=False)
    without = [
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not any(shutil.which(name, path=folder) for name in ("godot", "godot4"))
    ]
    monkeypatch.setenv("PATH", os.pathsep.join(without))
    home = tmp_path / "a home"
    monkeypatch.setenv("ESTRAGON_HOME", str(home))
    return home
