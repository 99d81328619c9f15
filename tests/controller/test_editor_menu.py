"""The entry of the addon in the editor's menu starts the controller for the open project."""

import contextlib
import json
import os
import re
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
PLUGIN = """[plugin]
name="Press"
description=""
author=""
version=""
script="press.gd"
"""
PRESS = """@tool
extends EditorPlugin

func _ready() -> void:
	for program in ["", OS.get_environment("LATER")]:
		OS.set_environment("ESTRAGON_BIN", program)
		await get_tree().create_timer(1.0).timeout
		_press("Train with Estragon…")
		await get_tree().process_frame
		for each in _all("AcceptDialog"):
			if each.visible:
				print("DIALOG ", each.dialog_text.replace("\\n", " "))
				each.hide()
	await get_tree().process_frame
	print("LEFT ", _all("AcceptDialog").filter(func(each): return "Estragon" in each.title).size())
	get_tree().quit()

func _press(title: String) -> void:
	for menu in _all("PopupMenu"):
		for index in menu.item_count:
			if menu.get_item_text(index) == title:
				print("PRESSED ", title)
				menu.index_pressed.emit(index)

func _all(type: String) -> Array[Node]:
	return get_tree().root.find_children("*", type, true, false)
"""
"""A person at the editor, first without Estragon, then with it."""


def test_it_opens_the_controller_or_says_how_to_install_it(godot: Path, tmp_path: Path) -> None:
    project = Project.create(tmp_path / "my game", "Mine", "orchard")
    plugin = project.path / "addons" / "press"
    plugin.mkdir()
    (plugin / "plugin.cfg").write_text(PLUGIN)
    (plugin / "press.gd").write_text(PRESS)
    settings = project.path / "project.godot"
    text, count = re.subn(
        r"^enabled=PackedStringArray\(", r'\g<0>"res://addons/press/plugin.cfg", ',
        settings.read_text(), flags=re.MULTILINE,
    )  # fmt: skip
    assert count == 1
    settings.write_text(text)
    home = make_home(tmp_path / "home")
    env = environment() | {"ESTRAGON_HOME": str(home), "BROWSER": "true", "HOME": str(tmp_path)}
    env |= {"PATH": str(tmp_path), "LATER": str(Path(sys.executable).with_name("estragon"))}
    words = ["--headless", "--editor", "--path", str(project.path)]
    with GodotProcess(words, folder=tmp_path, env=env) as editor:
        editor.wait("the editor", 120.0)
        said = editor.lines()
    found = re.search(r"opens in the browser, as process (\d+)", "\n".join(said))
    assert found, said
    try:
        assert "[Godot RL Agents] Plugin loaded" in said
        assert said.count("PRESSED Train with Estragon…") == 2
        (dialog,) = [line for line in said if line.startswith("DIALOG")]
        assert "Estragon was not found." in dialog
        assert "pip install 'estragon[ui,sb3,onnx]'" in dialog
        assert "LEFT 0" in said
        assert not [line for line in said if "SCRIPT ERROR" in line or "train_menu" in line]
        deadline = time.monotonic() + 60.0
        while not (home / "controller" / "server.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        known = json.loads((home / "controller" / "settings.json").read_text())
        assert known["current"] == str(project.path)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(found[1]), signal.SIGKILL)
