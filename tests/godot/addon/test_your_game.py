"""The page "Your own game in ten minutes" done to the letter, in an empty project."""

import re
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np

from estragon.envs.gymnasium_env import GodotEnv
from tests.godot.addon.test_zip import build
from tests.godot.staging import kept_project

PAGE = Path(__file__).resolve().parents[3] / "docs" / "your_game.md"
PROJECT = """config_version=5

[application]

config/name="My game"
run/main_scene="res://main.tscn"
config/features=PackedStringArray("4.4")
"""
SCENE = """[gd_scene load_steps=4 format=3]

[ext_resource type="Script" path="res://player.gd" id="1"]
[ext_resource type="Script" path="res://controller.gd" id="2"]
[ext_resource type="Script" path="res://addons/godot_rl_agents/sync.gd" id="3"]

[node name="Main" type="Node2D"]

[node name="Player" type="CharacterBody2D" parent="."]
position = Vector2(250, 0)
script = ExtResource("1")

[node name="AIController2D" type="Node2D" parent="Player"]
script = ExtResource("2")

[node name="Sync" type="Node" parent="."]
script = ExtResource("3")
"""
PLAYER = "extends CharacterBody2D\n\nvar wish: Vector2 = Vector2.ZERO\n\n\n"
PLAY = """	velocity = 300.0 * wish
	move_and_slide()
	$AIController2D.reward += 1.0
"""


def test_a_game_made_as_the_page_says_can_be_learned(godot: Path, tmp_path: Path) -> None:
    controller, player = re.findall(r"```gdscript\n(.*?)```", PAGE.read_text(), re.DOTALL)
    project = tmp_path / "my game"
    zipfile.ZipFile(build(tmp_path / "addon.zip")).extractall(project)
    (project / "project.godot").write_text(PROJECT)
    (project / "main.tscn").write_text(SCENE)
    (project / "controller.gd").write_text(controller)
    (project / "player.gd").write_text(PLAYER + player + PLAY)
    project = kept_project("my game", project)
    with closing(GodotEnv(project, log_folder=tmp_path / "logs", action_repeat=4)) as env:
        seen, _ = env.reset(seed=0)
        assert seen["obs"].tolist() == [[0.5, 0.0]]
        seen, rewards, terminated, truncated, _ = env.step(np.array([[1.0, 0.0]]))
    (x, speed) = seen["obs"][0]
    assert x > 0.5
    assert speed == 1.0
    assert rewards.tolist() == [4.0]
    assert not terminated.any()
    assert not truncated.any()
    log = (tmp_path / "logs" / "game.log").read_text()
    assert "ERROR" not in log
    assert "WARNING" not in log
