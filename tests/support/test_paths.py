"""Paths: the same for shell, Python and Godot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from estragon.support import paths

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "scripts" / "lib" / "data_paths.sh"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")


def told(words: str, folder: Path, **environment: str) -> list[str]:
    """What a script that sources the paths says, line by line."""
    kept = {key: os.environ[key] for key in ("HOME", "PATH")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f'. "{LIBRARY}"\n{words}'],
        cwd=folder,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_everything_lies_in_the_checkout(tmp_path: Path) -> None:
    names = ("AI_DATA_ROOT", "trajectories", "frames", "imported", "charts", "debug", "trainer")
    words = f'printf "%s\\n" {" ".join(f"${name}" for name in names)}'
    folders = ("data", "data/trajectories", "data/frames", "data/_imported")
    expected = [ROOT / folder for folder in (*folders, "charts", "debug", "trainer")]
    assert told(words, tmp_path) == [str(path) for path in expected]


def test_the_data_folder_can_be_elsewhere(tmp_path: Path) -> None:
    words = 'echo "$trajectories"; env | grep AI_DATA_ROOT'
    assert told(words, tmp_path, AI_DATA_ROOT="/my data") == [
        "/my data/trajectories",
        "AI_DATA_ROOT=/my data",
    ]
    assert told(words, tmp_path, AI_DATA_ROOT="here")[0] == f"{tmp_path}/here/trajectories"


def test_the_programs_are_found(tmp_path: Path) -> None:
    assert told("find_godot", tmp_path, GODOT_BIN="/opt/godot 4") == ["/opt/godot 4"]
    (estragon,) = told('command -v "$estragon"', tmp_path)
    assert Path(estragon).name == "estragon"


def test_a_godot_that_cannot_be_found_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        told("estragon=false; godot=$(find_godot); echo reached", tmp_path)


def test_the_cache_is_where_it_always_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ESTRAGON_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    if sys.platform == "linux":
        assert paths.home() == tmp_path / ".cache" / "estragon"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert paths.home() == tmp_path / "xdg" / "estragon"
    monkeypatch.setenv("ESTRAGON_HOME", str(tmp_path / "mine"))
    assert paths.home() == tmp_path / "mine"


def test_paths_are_importable_as_documented() -> None:
    from estragon import paths as documented

    assert documented is paths
