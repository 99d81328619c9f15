"""A `.onnx` file in a project is a resource, and plays in a game that was exported."""

import inspect
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from estragon.godot.find import require_godot
from estragon.godot.process import GodotProcess
from estragon.support import paths
from tests.godot.staging import kept_files
from tests.onnx.networks import export

TIMEOUT_SEC = 120.0
ADDON = Path("addons/godot_rl_agents")
PROJECT = """\
config_version=5

[application]

config/name="Staged"
run/main_scene="res://main.tscn"

[editor_plugins]

enabled=PackedStringArray("res://addons/godot_rl_agents/plugin.cfg")
"""
SCENE = """\
[gd_scene load_steps=2 format=3]

[ext_resource type="Script" path="res://main.gd" id="1"]

[node name="Main" type="Node"]
script = ExtResource("1")
"""
MAIN = """\
extends Node


func _ready() -> void:
	var model: GodotRLModel = GodotRLModel.new()
	var wrapped: ONNXModel = ONNXModel.new("res://policies/policy.onnx", 1)
	var is_loaded: bool = model.load("res://policies/policy.onnx")
	var resource: Resource = load("res://policies/policy.onnx")
	is_loaded = is_loaded and GodotRLModel.new().load_resource(resource)
	var obs: PackedFloat32Array = []
	obs.resize(12)
	obs.fill(0.5)
	var there: bool = FileAccess.file_exists("res://policies/policy.onnx")
	var found: Dictionary = wrapped.run_inference({"obs": Array(obs)}, 1.0)
	var same: bool = found["output"] == Array(model.predict(obs)["output"])
	print("played ", is_loaded, " raw ", there, " same ", same, " ", model.error)
	get_tree().quit()
"""
PRESETS = """\
[preset.0]

name="Linux"
platform="Linux"
runnable=true
export_filter="all_resources"
export_path="game.pck"

[preset.0.options]
"""


class Imported(NamedTuple):
    project: Path
    lines: list[str]
    """What Godot printed."""
    pack: Path
    """The same game exported."""


def run(folder: Path, *words: str | Path, name: str = "godot") -> list[str]:
    words = ("--headless", *words)
    with GodotProcess(words, folder=folder, name=name, godot=require_godot()) as process:
        process.wait("its end", TIMEOUT_SEC)
        return process.lines()


@pytest.fixture(scope="module")
def imported() -> Imported:
    """Kept: starting Godot's editor takes seconds."""
    addon = paths.godot_project() / ADDON
    kept = kept_files("onnx", make, addon, Path(inspect.getfile(export)))
    lines = (kept / "log" / "import.log").read_text(errors="replace").splitlines()
    return Imported(kept / "game", lines, kept / "game.pck")


def make(kept: Path) -> None:
    """A game with the addon, a policy of two files, a damaged one, and nothing else; exported."""
    folder = kept / "game"
    shutil.copytree(paths.godot_project() / ADDON, folder / ADDON)
    files = {
        Path("project.godot"): PROJECT,
        Path("main.tscn"): SCENE,
        Path("main.gd"): MAIN,
        Path("export_presets.cfg"): PRESETS,
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "policies").mkdir()
    export("gru", folder / "policies" / "policy.onnx", dynamo=False, opset=13)
    damaged = folder / "policies" / "damaged.onnx"
    damaged.write_bytes(b"\x0a\xff\xff")
    run(kept / "log", "--path", folder, "--import", name="import")
    damaged.unlink()
    damaged.with_suffix(".onnx.import").unlink(missing_ok=True)
    said = run(kept / "log", "--path", folder, "--export-pack", "Linux", kept / "game.pck")
    assert (kept / "game.pck").is_file(), said


@pytest.mark.slow
def test_a_model_is_imported_and_plays(imported: Imported, tmp_path: Path) -> None:
    assert (imported.project / "policies" / "policy.onnx.import").is_file()
    lines = run(tmp_path, "--path", imported.project)
    assert any(line.startswith("played true raw true same true") for line in lines), lines


@pytest.mark.slow
def test_an_exported_game_plays_with_it(imported: Imported, tmp_path: Path) -> None:
    lines = run(tmp_path, "--main-pack", imported.pack)
    assert any(line.startswith("played true raw false same true") for line in lines), lines


@pytest.mark.slow
def test_a_damaged_model_is_not_imported(imported: Imported) -> None:
    said = [line for line in imported.lines if "damaged.onnx: a number is cut off" in line]
    assert said, imported.lines
