"""The addon as it is handed out; test_your_game.py plays with it."""

import subprocess
import sys
import zipfile
from pathlib import Path

from estragon.support import paths

BUILD = paths.godot_project().parent / "scripts" / "build_addon.py"


def build(target: Path) -> Path:
    subprocess.run([sys.executable, BUILD, target], check=True)
    return target


def test_it_is_the_same_every_time_and_has_nothing_of_the_editor(tmp_path: Path) -> None:
    first, second = build(tmp_path / "a.zip"), build(tmp_path / "b.zip")
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert all(name.startswith("addons/godot_rl_agents/") for name in names)
    assert {"plugin.cfg", "sync.gd", "LICENSE"} <= {name.split("/", 2)[2] for name in names}
    scripts = [name for name in names if name.endswith(".gd") and "script_templates" not in name]
    assert all(f"{name}.uid" in names for name in scripts)
