"""Games with planted bugs, for tests of the hunt."""

import shutil
from pathlib import Path

from estragon.support import paths

MARBLE = "res://examples/marble/marble.tscn"
ORCHARD = "res://examples/orchard/orchard.tscn"
BALL = "examples/marble/marble_ball.gd"
PROJECT = """config_version=5

[application]

config/name="Walker"
run/main_scene="res://main.tscn"

[input]

walk_left={"deadzone": 0.5, "events": [Object(InputEventKey,"physical_keycode":65)]}
walk_right={"deadzone": 0.5, "events": [Object(InputEventKey,"physical_keycode":68)]}
"""
SCENE = """[gd_scene load_steps=2 format=3]

[ext_resource type="Script" path="res://main.gd" id="1"]

[node name="Main" type="Node2D"]
script = ExtResource("1")
"""
SCRIPT = """extends Node2D

var walker: CharacterBody2D
var opened: bool = false


func _ready() -> void:
	walker = CharacterBody2D.new()
	walker.name = "Walker"
	add_child(walker)
	var button: Button = Button.new()
	button.text = "Open"
	button.size = Vector2(80, 30)
	button.position = Vector2(20, 20)
	button.pressed.connect(func() -> void: opened = true)
	add_child(button)


func _physics_process(_delta: float) -> void:
	walker.velocity = Vector2(200.0 * Input.get_axis("walk_left", "walk_right"), 0.0)
	walker.move_and_slide()
	if opened and walker.position.x > 120.0:
		push_error("walked through the open door")
"""


def planted(folder: Path, patches: dict[str, list[tuple[str, str]]]) -> Path:
    """A copy of the project with these replacements, by file."""
    copy, project = folder / "game", paths.godot_project()
    for name in ("addons", "examples"):
        shutil.copytree(project / name, copy / name)
    shutil.copyfile(project / "project.godot", copy / "project.godot")
    for name, pairs in patches.items():
        file = copy / name
        text = file.read_text()
        for old, new in pairs:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        file.write_text(text)
    return copy


def stranger(folder: Path) -> Path:
    """A game that was never meant for it: no addon, no Sync node."""
    game = folder / "walker"
    game.mkdir()
    (game / "project.godot").write_text(PROJECT)
    (game / "main.tscn").write_text(SCENE)
    (game / "main.gd").write_text(SCRIPT)
    return game
