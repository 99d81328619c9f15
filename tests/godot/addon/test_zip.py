"""The addon as it is handed out works alone, in a project in which there is nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

from estragon.support import paths
from tests.godot.addon.peer import playing, staged

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


def test_it_is_unpacked_into_a_project_and_plays(tmp_path: Path) -> None:
    zipfile.ZipFile(build(tmp_path / "addon.zip")).extractall(tmp_path / "unpacked")
    addon = tmp_path / "unpacked" / "addons" / "godot_rl_agents"
    project = staged("counter", tmp_path / "a new game", addon=addon)
    with playing(project, tmp_path) as peer:
        peer.greet("binary1")
        peer.reset()
        assert [row.reward for row in peer.step(0.0, 0.0, 0.0)] == [4]
        peer.say(type="close")
        assert peer.process.wait("its end", 10.0) == 0
        assert not [line for line in peer.process.lines() if "ERROR" in line or "WARNING" in line]
