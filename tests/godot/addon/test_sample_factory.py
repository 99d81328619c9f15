"""Sample Factory trains a game with our addon, from an environment of its own."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks._incumbent import NEWEST_PYTHON
from estragon.godot.project import import_project
from estragon.support import paths
from tests.prove import Recorder, run_folder

PACKAGES = ["godot-rl==0.8.2", "sample-factory==2.1.1", "torch==2.13.0"]
STEPS = 30_000
SETTINGS = "--num_workers 1 --num_envs_per_worker 1 --worker_num_splits 1 --batch_size 512"
SETTINGS += " --rollout 32 --recurrence 1 --use_rnn False --device cpu"
INSTALL_SEC, TRAIN_SEC = 900.0, 600.0


@pytest.mark.prove
@pytest.mark.skipif(sys.version_info[:2] > NEWEST_PYTHON, reason="the other client is older")
def test_it_trains_marble(godot: Path, tmp_path: Path, record_result: Recorder) -> None:
    venv = run_folder("sample-factory")
    python = venv / "bin" / "python"
    gdrl = venv / "bin" / "gdrl"
    if not gdrl.exists():
        run([sys.executable, "-m", "venv", "--clear", str(venv)], INSTALL_SEC)
        run([str(python), "-m", "pip", "install", "-q", *PACKAGES], INSTALL_SEC)
    project = import_project(paths.godot_project(), godot=godot)
    words = [godot, "--headless", "--path", project, "--fixed-fps", "60"]
    command = shlex.join([*map(str, words), "res://examples/marble/marble.tscn"])
    game = tmp_path / "game.x86_64"
    game.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    game.chmod(0o755)
    words = [gdrl, "--trainer", "sf", "--env", "gdrl", "--env_path", game]
    words += ["--train_for_env_steps", str(STEPS), "--experiment_dir", tmp_path / "logs"]
    run([*map(str, words), *SETTINGS.split()], TRAIN_SEC)
    (saved,) = (tmp_path / "logs").rglob("checkpoint_*_*.pth")
    steps = int(saved.stem.split("_")[2])
    record_result("Sample Factory trains a game", f"{steps:,} steps of Marble, saved")
    assert steps >= STEPS


def run(words: list[str], timeout_sec: float) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=timeout_sec)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
