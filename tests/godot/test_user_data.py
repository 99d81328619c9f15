"""Old user data: found where each platform keeps it, copied once, never overwritten."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.godot.user_data import OWN_PROJECT, own_folders, played_folders
from estragon.support import paths


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home, and a folder to work in."""
    for name in ("AI_DATA_ROOT", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "home" / "AppData" / "Roaming"))
    monkeypatch.setenv("ESTRAGON_HOME", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def app_userdata(home: Path) -> Path:
    """Where this platform's Godot keeps `user://` of all projects."""
    if sys.platform == "win32":
        return home / "AppData" / "Roaming" / "Godot" / "app_userdata"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "Godot" / "app_userdata"
    return home / ".local" / "share" / "godot" / "app_userdata"


def written(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def old_game(game: Path) -> Path:
    """A project's user folder with things in it."""
    written(game / "trajectories" / "ep_1.jsonl", "one")
    written(game / "data" / "trajectories" / "ep_2.jsonl", "two")
    written(game / "frames" / "monday" / "frame_000000.png", "picture")
    written(game / "logs" / "godot.log", "said")
    written(game / "shader_cache" / "x.cache")
    written(game / "trajectories" / "notes.txt")
    return game


def imported() -> dict[str, str]:
    root = Path("data", "_imported")
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


COPIED = {
    "AI Tag Game/frames/monday/frame_000000.png": "picture",
    "AI Tag Game/logs/godot.log": "said",
    "AI Tag Game/trajectories/ep_1.jsonl": "one",
    "AI Tag Game/trajectories/ep_2.jsonl": "two",
}


def test_old_games_are_found_and_copied_once(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game = old_game(app_userdata(home) / "AI Tag Game")
    written(app_userdata(home) / "Chess" / "logs" / "godot.log", "another game's")
    assert main(["migrate-user-data"]) == 0
    assert imported() == COPIED
    target = Path("data", "_imported", "AI Tag Game")
    assert capsys.readouterr().out == (
        f"copied 2 trajectories, 1 frames, 1 logs from {game} into {target}\n"
    )
    assert main(["migrate-user-data"]) == 0
    assert imported() == COPIED
    assert "0 trajectories, 0 frames, 0 logs" in (said := capsys.readouterr().out)
    assert said.endswith("; 4 files existed already\n")
    assert (game / "trajectories" / "ep_1.jsonl").read_text() == "one"


def test_nothing_is_overwritten(home: Path) -> None:
    game = old_game(app_userdata(home) / "AI Tag Game")
    assert main(["migrate-user-data"]) == 0
    written(game / "trajectories" / "ep_1.jsonl", "played again")
    for _ in range(2):
        assert main(["migrate-user-data"]) == 0
        assert imported() == COPIED | {"AI Tag Game/trajectories/ep_1-2.jsonl": "played again"}


def test_a_folder_of_ones_own(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    game = old_game(tmp_path / "backup" / "Game")
    monkeypatch.setenv("AI_DATA_ROOT", str(tmp_path / "elsewhere"))
    assert main(["migrate-user-data", "--from", str(game)]) == 0
    copy = tmp_path / "elsewhere" / "_imported" / "Game" / "trajectories" / "ep_1.jsonl"
    assert copy.read_text() == "one"
    capsys.readouterr()
    assert main(["migrate-user-data", "--from", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err


def test_nothing_to_import_is_fine(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate-user-data"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("nothing to import from ")
    assert str(app_userdata(home)) in said
    assert main(["migrate-user-data", "--from", str(home.parent)]) == 0
    assert capsys.readouterr().out == f"nothing to import from {home.parent}\n"
    assert not Path("data").exists()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG folders")
def test_the_places_on_linux(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    places = [
        tmp_path / "xdg",
        home / ".var" / "app" / "org.godotengine.Godot" / "data",
        tmp_path / "cache" / "user" / "data",
    ]
    games = [old_game(place / "godot" / "app_userdata" / "Estragon") for place in places]
    assert played_folders() == games
    assert own_folders() == games
    settings = (paths.godot_project() / "project.godot").read_text()
    assert f'config/name="{OWN_PROJECT}"' in settings


@pytest.mark.skipif(sys.platform == "win32", reason="bash")
def test_the_script_of_this_name(home: Path, tmp_path: Path) -> None:
    game = old_game(tmp_path / "old data" / "AI Tag Game")
    script = Path(__file__).parents[2] / "scripts" / "migrate_user_data.sh"
    done = subprocess.run(
        ["bash", str(script), "--from", str(game)],
        env=os.environ | {"AI_DATA_ROOT": "data"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert imported() == COPIED
