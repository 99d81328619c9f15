"""The entry of the addon in the editor's menu starts the controller for the open project."""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from estragon.controller.project import Project
from estragon.godot.process import GodotProcess
from tests.controller.staging import environment, make_home

pytest.importorskip("nicegui")
pytestmark = pytest.mark.slow
SCRIPT = """extends SceneTree
func _initialize() -> void:
	var menu: Script = load("res://addons/godot_rl_agents/train_menu.gd")
	print("PID ", menu.start(ProjectSettings.globalize_path("res://")))
	quit()
"""


def started(project: Project, env: dict[str, str], folder: Path) -> int:
    """The process that the menu's entry started."""
    (folder / "press.gd").write_text(SCRIPT)
    words = ["--headless", "--path", str(project.path), "--script", str(folder / "press.gd")]
    with GodotProcess(words, folder=folder, env=env) as godot:
        assert godot.wait("the script", 60.0) == 0, godot.lines()
        return next(int(line.split()[1]) for line in godot.lines() if line.startswith("PID"))


def test_it_opens_the_controller_or_says_that_it_is_missing(godot: Path, tmp_path: Path) -> None:
    project = Project.create(tmp_path / "my game", "Mine", "orchard")
    home = make_home(tmp_path / "home")
    env = environment() | {"ESTRAGON_HOME": str(home), "BROWSER": "true", "HOME": str(tmp_path)}
    assert started(project, env | {"PATH": str(tmp_path)}, tmp_path) == -1
    program = Path(sys.executable).with_name("estragon")
    pid = started(project, env | {"ESTRAGON_BIN": str(program)}, tmp_path)
    try:
        settings = home / "controller" / "settings.json"
        deadline = time.monotonic() + 60.0
        while not (home / "controller" / "server.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert json.loads(settings.read_text())["current"] == str(project.path)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_the_editor_loads_the_plugin(godot: Path, tmp_path: Path) -> None:
    project = Project.create(tmp_path / "game", "Mine", "orchard")
    words = ["--headless", "--editor", "--path", str(project.path), "--quit-after", "3"]
    with GodotProcess(words, folder=tmp_path) as editor:
        editor.wait("the editor", 120.0)
        said = editor.lines()
    assert "[Godot RL Agents] Plugin loaded" in said
    assert not [line for line in said if "SCRIPT ERROR" in line or "train_menu" in line]
