"""A release build of the VR scene: no HTTP API unless it is asked for."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon.godot.process import usable_user_folders
from estragon.godot.project import import_project
from estragon.support import paths
from tests.envs.exporting import can_export, environment, export_game
from tests.godot.staging import kept_files
from tests.spacetime.http_game import LOCOMOTION, TOKEN, TRACKING, Client, free_port

TIMEOUT_SEC = 60.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="exports for Linux"),
]


@pytest.fixture(scope="module")
def release() -> Path:
    """The project with the VR scene as its main scene, exported; its own presets leave it out."""
    if not can_export():
        pytest.skip("no export template fits this Godot")

    def make(folder: Path) -> None:
        copy = Path(shutil.copytree(project, folder / "project"))
        _replace(copy / "export_presets.cfg", r"exclude_filter=.*", 'exclude_filter="tests/*"')
        _replace(copy / "export_presets.cfg", r"include_filter=.*", 'include_filter="*.json"')
        _replace(copy / "project.godot", r"run/main_scene=.*", f'run/main_scene="{LOCOMOTION}"')
        export_game(copy, folder / "vr.x86_64")
        shutil.rmtree(copy)

    project = import_project(paths.godot_project())
    return kept_files("exported vr", make, project) / "vr.x86_64"


def _replace(file: Path, pattern: str, line: str) -> None:
    text, count = re.subn(f"^{pattern}$", line, file.read_text(), flags=re.MULTILINE)
    assert count
    file.write_text(text)


@pytest.mark.parametrize("asks", ["not", "option", "environment"])
def test_a_release_build_serves_only_if_asked(release: Path, tmp_path: Path, asks: str) -> None:
    port, log = free_port(), tmp_path / "log"
    words = [release, "--headless", "--fixed-fps", "60", "--quit-after", "300"]
    words += ["--http-api"] if asks == "option" else []
    env = usable_user_folders(os.environ) | environment()
    env |= {"API_TOKEN": TOKEN, "GODOT_HTTP_PORT": str(port)}
    env |= {"GODOT_ENABLE_HTTP_API": "1"} if asks == "environment" else {}
    served, deadline = False, time.monotonic() + TIMEOUT_SEC
    with (
        log.open("wb") as out,
        subprocess.Popen(list(map(str, words)), env=env, stdout=out, stderr=out) as process,
    ):
        while process.poll() is None and not served:
            assert time.monotonic() < deadline, log.read_text()
            with contextlib.suppress(OSError), Client(port) as client:
                assert client.get("/status")["environment"] == "production"
                assert client.request("POST", "/scene", {"scene_path": TRACKING}).status == 403
                served = True
        process.kill()
    said = log.read_text()
    assert served == (asks != "not"), said
    if not served:  # a release build that is killed has not written its output
        assert "Sync node initialized" in said
        assert "HTTP API" not in said
