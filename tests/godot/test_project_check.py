"""A game is played without its decoration, and refused when its scene or scripts do not load."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.envs.launch import GameProgram, Launch
from estragon.godot.process import GodotError
from estragon.godot.project import ReadyProject, import_project, ready_project
from estragon.godot.project_check import Failure, judge, write_placeholders
from estragon.support.errors import UserError
from tests.godot.addon.peer import ADDON, GAMES
from tests.godot.staging import write_program, write_project

SCENE = "res://training.tscn"
DOES_NOT_COMPILE = "extends Node\n\n\nfunc _ready( -> void:\n\tpass\n"
MISSING = {
    "art/evening.hdr",  # in a sub-resource: Godot refuses the whole scene
    "art/planks.png",
    "art/house.blend",  # without Blender
    "art/crane.glb",  # broken
    "art/waves.mp3",
    "art/crash.wav",  # preloaded: the script does not compile
    "art/horn.ogg",
}


class Harbour:
    """The game without its decoration, never imported before, and how often Godot imports it."""

    def __init__(self, folder: Path, godot: Path) -> None:
        self.project = folder / "harbour"
        shutil.copytree(
            GAMES / "harbour", self.project, ignore=shutil.ignore_patterns(".godot", "*.import")
        )
        shutil.copytree(ADDON, self.project / "addons" / "godot_rl_agents")
        (self.project / "storm.gd").write_text(DOES_NOT_COMPILE)
        self.sources = self.files()
        self._starts = folder / "starts"
        self.godot = write_program(
            folder / "counted godot", f'echo "$*" >> "{self._starts}"\nexec "{godot}" "$@"'
        )
        self.ready: ReadyProject = ready_project(self.project, SCENE, godot=self.godot)

    def files(self) -> dict[str, bytes]:
        """What is in the project, without Godot's own folder."""
        return {
            path.relative_to(self.project).as_posix(): path.read_bytes()
            for path in self.project.rglob("*")
            if path.is_file() and ".godot" not in path.parts
        }

    def starts(self, word: str) -> int:
        """How often Godot was started with this word."""
        return sum(word in line for line in self._starts.read_text().splitlines())


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory, godot: Path) -> Iterator[Harbour]:
    folder = tmp_path_factory.mktemp("a harbour")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTRAGON_HOME", str(folder / "home"))
        found = Harbour(folder, godot)
        patch.setenv("GODOT_BIN", str(found.godot))
        yield found


@pytest.mark.slow
def test_a_game_without_its_decoration_plays(
    harbour: Harbour, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert set(harbour.ready.missing) == MISSING
    assert harbour.ready.unused == ("art/sketch.png",)
    assert harbour.starts("--import") == 2  # the plugin's icon is there the second time
    checks = harbour.starts("project_check.gd") - harbour.starts("--import")
    assert checks == 2  # in the project, and in the copy with placeholders
    assert ready_project(harbour.project, SCENE, godot=harbour.godot) == harbour.ready
    assert harbour.starts("--import") + checks == 4
    logs = [folder / ".godot" / "check.log" for folder in (harbour.project, harbour.ready.folder)]
    assert not any("has played the game" in log.read_text() for log in logs)

    report = tmp_path / "report.json"
    words = ["godot", "probe", str(harbour.project), "--scene", SCENE, "--seconds", "0.5"]
    assert main([*words, "--json", str(report)]) == 0
    found = json.loads(report.read_text())
    assert found["agents"] == 1
    assert found["agent_steps"] > 0
    (warning,) = [each for each in found["warnings"] if "cannot load" in each]
    assert "+2 more; the game is played without them; placeholders replace them in" in warning
    assert "cannot import art/sketch.png, which the scene does not refer to" in warning
    errors = [each for each in found["warnings"] if "ERROR" in each]
    assert all("addons/telemetry" in each for each in errors), errors  # an autoload of no use
    assert warning in capfd.readouterr().out


@pytest.mark.slow
def test_the_users_files_stay_as_they_are(harbour: Harbour) -> None:
    now = harbour.files()
    assert {name: now[name] for name in harbour.sources} == harbour.sources
    added = now.keys() - harbour.sources.keys()
    assert all(name.endswith((".import", ".uid")) for name in added)
    assert "art/house.blend.import" not in added  # whoever has Blender can still import it


@pytest.mark.slow
def test_what_is_essential_is_refused_by_name(harbour: Harbour) -> None:
    with pytest.raises(
        GodotError,
        match=r"cannot be played: res://storm\.gd, needed by res://storm\.tscn, does not compile: "
        r"Parse Error: .* at res://storm\.gd:4; the whole log is .*check\.log",
    ):
        ready_project(harbour.project, "res://storm.tscn", godot=harbour.godot)
    with pytest.raises(
        GodotError, match=r"res://pier\.tscn, needed by res://bay\.tscn, does not exist;"
    ):
        ready_project(harbour.project, "res://bay.tscn", godot=harbour.godot)
    assert harbour.starts("--import") == 2


@pytest.mark.slow
def test_strict_import_refuses_anything_broken(
    harbour: Harbour, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["godot", "import", str(harbour.project), "--scene", SCENE]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert all(f"missing     {name}\n" in shown for name in MISSING)
    assert main([*words, "--strict-import"]) == 2
    assert "does not import: ERROR: cannot load" in capsys.readouterr().err
    monkeypatch.setenv("ESTRAGON_STRICT_IMPORT", "1")
    with pytest.raises(GodotError, match="does not import: ERROR: cannot load"):
        import_project(harbour.project, godot=harbour.godot)


def test_the_copy_follows_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTRAGON_HOME", str(tmp_path / "home"))
    project = write_project(tmp_path / "project")
    (project / ".godot").mkdir()
    (project / "old.gd").write_text("extends Node\n")
    wall, sky = (
        failure(f"res://{name}.png", placeholder="ImageTexture") for name in ("wall", "sky")
    )
    copy = write_placeholders(project, [wall, sky])
    assert (copy / "wall.png.remap").is_file()
    (project / "old.gd").unlink()
    (project / "wall.png").write_text("a picture at last")
    (project / "main.gd").write_text("extends Node\n\n# changed\n")
    assert write_placeholders(project, [sky]) == copy
    names = {path.name for path in copy.iterdir()}
    assert names == {
        *(".godot", "project.godot", "main.gd", "main.tscn"),
        *("wall.png", "sky.png.remap"),
    }
    assert (copy / "main.gd").read_text().endswith("# changed\n")


def test_a_scene_without_sync_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    project = tmp_path / "harbour"
    shutil.copytree(GAMES / "harbour", project, ignore=shutil.ignore_patterns(".godot"))
    began = time.monotonic()
    with pytest.raises(
        UserError, match=r"res://menu\.tscn has no Sync node, .*: .*--scene res://training\.tscn"
    ):
        GameProgram(Launch(project), project, "")
    assert time.monotonic() - began < 5.0
    assert not (project / ".godot").exists()


def test_a_project_of_godot_3(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    settings = project / "project.godot"
    settings.write_text(settings.read_text().replace("config_version=5", "config_version=4"))
    with pytest.raises(UserError, match=r"is a project of Godot 3 \(config_version=4\)"):
        ready_project(project)


def failure(file: str, *references: str, placeholder: str = "", required: bool = True) -> Failure:
    return Failure(file, "main.tscn", required, True, placeholder, list(references))


def test_reasons_are_told_from_what_they_cause() -> None:
    texture = failure("wall.png", placeholder="ImageTexture")
    scene = failure("main.tscn", "wall.png", "main.gd")
    found = judge([scene, texture])
    assert (found.essential, found.decoration) == ([], [texture])
    assert found.needs_placeholders
    assert not judge([texture]).needs_placeholders  # Godot only leaves it out
    assert judge([failure("house.blend", placeholder="PackedScene")]).needs_placeholders


def test_scripts_that_only_blame_each_other_are_all_essential() -> None:
    one, two = failure("one.gd", "two.gd"), failure("two.gd", "one.gd")
    assert judge([one, two]).essential == [one, two]
    texture = failure("wall.png", placeholder="ImageTexture")
    one = failure("one.gd", "two.gd", "wall.png")
    assert judge([one, two, texture]).essential == []


def test_what_nobody_requires_is_not_essential() -> None:
    unused = failure("unused.gd", required=False)
    assert judge([unused]).essential == []
    assert judge([failure("main.gd", "unused.gd"), unused]).essential == [unused]
