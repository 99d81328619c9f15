"""godot/export_presets.cfg: Godot accepts every preset, and packs the game and nothing else."""

import configparser
import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from estragon.godot.process import GodotProcess, private_user_folders
from estragon.godot.project import import_project
from estragon.support import paths
from tests.godot.staging import kept_files

PRESETS = ("Linux", "Windows", "macOS", "Web")
TIMEOUT_SEC = 120.0


def read_presets() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(comment_prefixes=";", interpolation=None)
    parser.read(paths.godot_project() / "export_presets.cfg", encoding="utf-8")
    return parser


class Export(NamedTuple):
    """What came of an export."""

    target: Path
    status: int
    """Godot's exit code."""
    said: str
    """Everything it printed."""


def export(how: str, preset: str) -> Export:
    """Export the game; once, until it changes."""
    project = import_project(paths.godot_project())

    def make(folder: Path) -> None:
        copy = Path(shutil.copytree(project, folder / "project"))  # the editor saves what it opens
        words: list[str | Path] = ["--headless", "--path", copy, how, preset, folder / "game.zip"]
        env = private_user_folders(dict(os.environ))
        with GodotProcess(words, folder=folder / "log", name="export", env=env) as process:
            status = process.wait("the export", TIMEOUT_SEC)
            assert status == 0 or how == "--export-release", process.lines()
        (folder / "status").write_text(str(status))
        shutil.rmtree(copy)

    folder = kept_files(f"{preset} {how.removeprefix('--')}", make, project)
    logs = [log.read_text(errors="replace") for log in (folder / "log").glob("*.log")]
    return Export(folder / "game.zip", int((folder / "status").read_text()), "\n".join(logs))


def test_the_presets_are_portable_and_alike() -> None:
    presets = read_presets()
    games = [presets[f"preset.{number}"] for number in range(len(PRESETS))]
    assert tuple(game["name"].strip('"') for game in games) == PRESETS
    assert len({(game["include_filter"], game["exclude_filter"]) for game in games}) == 1
    for section in presets.sections():
        for key, value in presets[section].items():
            text = value.strip('"')
            assert not re.match(r"/|[A-Za-z]:|~|user:|res:", text), f"{section}: {key}={value}"
            if re.search("password|secret|token|identity|keystore|custom_template", key):
                assert not text, f"{section}: {key}={value}"


def test_the_web_needs_neither_threads_nor_native_libraries() -> None:
    presets = read_presets()
    options = presets[f"preset.{PRESETS.index('Web')}.options"]
    assert options["variant/thread_support"] == "false"
    assert options["variant/extensions_support"] == "false"
    addon = paths.godot_project() / "addons" / "godot_rl_agents"
    kinds = {file.suffix for file in addon.rglob("*") if file.is_file() and file.stem[0] != "."}
    assert kinds <= {".gd", ".uid", ".tscn", ".cfg", ".svg", ".import"}, kinds
    settings = (paths.godot_project() / "project.godot").read_text()
    assert 'renderer/rendering_method="gl_compatibility"' in settings


@pytest.mark.parametrize(
    "preset", [pytest.param(p, marks=[pytest.mark.prove] * (p != "Linux")) for p in PRESETS]
)
def test_a_pack_holds_the_game_and_plays(preset: str, tmp_path: Path) -> None:
    target, status, said = export("--export-pack", preset)
    assert status == 0, said
    assert "ERROR" not in said, said
    with zipfile.ZipFile(target) as pack:
        names = set(pack.namelist())
    assert {f"tag/{name}" for name in ("rules.json", "layouts/colonnade.json")} <= names
    assert {"scenes/Main.tscn.remap", "addons/godot_rl_agents/sync.gd.remap"} <= names
    folders = {name.split("/")[0] for name in names}
    assert folders == {".godot", "addons", "project.binary", "scenes", "tag"}
    junk = [name for name in names if re.search(r"script_templates|\.(md|uid|tmp|log|py)$", name)]
    assert junk == []
    words: list[str | Path] = ["--headless", "--main-pack", target, "--fixed-fps", "60", "--"]
    words += ["--seeker=champion", "--hider=bot:evader", "--matches=2"]
    with GodotProcess(words, folder=tmp_path / "played") as process:
        assert process.wait("two matches", TIMEOUT_SEC) == 0, process.lines()
        assert any('"seeker":"champion"' in line for line in process.lines())


@pytest.mark.parametrize(
    "preset", [pytest.param(p, marks=[pytest.mark.prove] * (p != "macOS")) for p in PRESETS[1:]]
)
def test_only_the_export_template_is_missing(preset: str) -> None:
    _, status, said = export("--export-release", preset)
    if status == 0:
        return  # the template is installed here
    complaint = said.split("due to configuration errors:")[1].split("   at: ")[0]
    lines = [line for line in complaint.splitlines() if line.strip()]
    assert lines
    for line in lines:
        assert re.match(r"No export template found|.*export_templates/", line), complaint
