"""The addon's sensors alone in an empty project: real pictures, and the scenes that show rays."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from estragon.godot.display import display
from estragon.godot.process import usable_user_folders
from tests.godot.staging import kept_project, write_project

ADDON = Path(__file__).parents[2] / "godot/addons/godot_rl_agents"
TIMEOUT_SEC = 60.0
WIDTH, HEIGHT = 64, 48
QUADRANTS = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]
"""From the upper left, row by row."""

PICTURES = """\
extends Node
## Four coloured quarters, seen by a camera sensor of each kind; prints what they look like.

const COLORS: Array[Color] = [Color.RED, Color.GREEN, Color.BLUE, Color.WHITE]
const SENSORS: String = "res://addons/godot_rl_agents/sensors/sensors_%dd/RGBCameraSensor%dD.tscn"
const SIZE: Vector2i = Vector2i(64, 48)

var _sensors: Array[Node] = []
var _ticks: int = 0


func _ready() -> void:
	for index: int in 4:
		var across: float = [-1, 1][index % 2]
		var down: float = [-1, 1][index / 2]
		var rect: ColorRect = ColorRect.new()
		rect.size = Vector2(500, 500)
		rect.position = Vector2(250 * across - 250, 250 * down - 250)
		rect.position += Vector2(3000, 0)
		rect.color = COLORS[index]
		add_child(rect)
		var quad: MeshInstance3D = MeshInstance3D.new()
		quad.mesh = QuadMesh.new()
		quad.mesh.size = Vector2(8, 8)
		quad.mesh.material = StandardMaterial3D.new()
		quad.mesh.material.shading_mode = BaseMaterial3D.SHADING_MODE_UNSHADED
		quad.mesh.material.albedo_color = COLORS[index]
		quad.position = Vector3(4 * across, -4 * down, -3)
		add_child(quad)
	for dimensions: int in [2, 3]:
		for downscale: bool in [false, true]:
			var sensor: Node = load(SENSORS % [dimensions, dimensions]).instantiate()
			sensor.render_image_resolution = 2 * SIZE if downscale else SIZE
			sensor.downscale_image = downscale
			sensor.resized_image_resolution = SIZE
			if dimensions == 2:
				sensor.position = Vector2(3000, 0)
			add_child(sensor)
			_sensors.append(sensor)


func _physics_process(_delta: float) -> void:
	_ticks += 1
	if _ticks in [2, 4]:
		for sensor: Node in _sensors:
			var pixels: PackedByteArray = sensor.get_camera_pixels()
			var quarters: Array = []
			for y: int in [SIZE.y / 4, 3 * SIZE.y / 4]:
				for x: int in [SIZE.x / 4, 3 * SIZE.x / 4]:
					var at: int = 3 * (y * SIZE.x + x)
					quarters.append(Array(pixels.slice(at, at + 3)))
			print(JSON.stringify({
				"tick": _ticks,
				"shape": sensor.get_camera_shape(),
				"bytes": pixels.size(),
				"quarters": quarters,
				"hex": sensor.get_camera_pixel_encoding() == pixels.hex_encode(),
			}))
	if _ticks == 4:
		get_tree().quit()
"""


@pytest.fixture(scope="module")
def empty_project(godot: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing but the addon."""
    folder = write_project(tmp_path_factory.mktemp("empty") / "my game", PICTURES)
    shutil.copytree(ADDON, folder / "addons/godot_rl_agents")
    return kept_project("sensors", folder)


def play(godot: Path, project: Path, *words: str, env: dict[str, str]) -> str:
    done = subprocess.run(
        [str(godot), "--path", str(project), "--fixed-fps", "60", *words],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SEC,
        check=False,
        env=dict(usable_user_folders(env)),
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


@pytest.mark.parametrize("options", [[], ["--disable-render-loop"]], ids=["drawn", "by request"])
def test_cameras_see_what_is_there(godot: Path, empty_project: Path, options: list[str]) -> None:
    words = ["--rendering-driver", "opengl3", "--audio-driver", "Dummy", "--resolution", "64x64"]
    with display(640, 480) as env:
        said = play(godot, empty_project, *words, *options, env=env)
    pictures: list[dict[str, Any]] = [
        json.loads(line) for line in said.splitlines() if line.startswith("{")
    ]
    assert [picture["tick"] for picture in pictures] == [2] * 4 + [4] * 4, said
    for picture in pictures:
        assert picture["shape"] == [HEIGHT, WIDTH, 3]
        assert picture["bytes"] == HEIGHT * WIDTH * 3
        assert picture["quarters"] == QUADRANTS, picture
        assert picture["hex"]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_the_scenes_that_show_rays_run(godot: Path, empty_project: Path, dimensions: int) -> None:
    scene = f"sensors/sensors_{dimensions}d/ExampleRaycastSensor{dimensions}D.tscn"
    words = ["--headless", "--quit-after", "60", f"res://addons/godot_rl_agents/{scene}"]
    said = play(godot, empty_project, *words, env=dict(os.environ))
    assert "ERROR" not in said
