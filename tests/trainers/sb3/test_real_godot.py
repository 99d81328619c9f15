"""The example games on real Godot, learned for as long as a test may take."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon.support import paths
from estragon.trainers.metrics import mean
from tests.envs.staging import assert_gone, children
from tests.trainers.sb3.staging import manifest, model_path, train

ORCHARD = ["--scene", "res://examples/orchard/orchard.tscn"]
ROUNDS = ["--n_steps", "32", "--batch_size", "128", "--learning_rate", "0.001"]
pytestmark = pytest.mark.slow


def rewards(folder: Path, run: str) -> list[float]:
    """Of every iteration in which an episode ended."""
    path = model_path(folder, run).with_name("run.metrics.jsonl")
    metrics = [json.loads(line) for line in path.read_text().splitlines()]
    told = [metric for metric in metrics if metric["episodes_this_iter"]]
    assert all("score" in metric["custom_metrics"] for metric in told)
    return [metric["episode_reward_mean"] for metric in told]


def test_ppo_learns_is_killed_goes_on_and_plays(
    godot: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game = paths.godot_project()
    words = ["train", "sb3", "--env_path", str(game), *ORCHARD, *ROUNDS, "--timesteps", "1000000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "estragon", *words, "--save_checkpoint_frequency", "1000"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    checkpoints = model_path(folder).with_name("checkpoints")
    deadline = time.monotonic() + 120.0
    try:
        while not (checkpoints / "rl_model_1008_steps.zip").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        games = children(process.pid)
        process.kill()
        process.wait()
    assert games
    assert_gone(games)
    assert manifest(folder)["status"] == "running"  # it could not say that it is over
    latest = max(checkpoints.iterdir(), key=lambda path: path.stat().st_mtime)
    before = {path: path.read_bytes() for path in checkpoints.iterdir()}

    resume = ["--resume_model_path", str(latest), "--save_checkpoint_frequency", "1000"]
    assert train(game, *ORCHARD, *resume, *ROUNDS, "--timesteps", "8000", short=False) == 0
    assert {path: path.read_bytes() for path in checkpoints.iterdir()} == before
    first, second = rewards(folder, "experiment_1"), rewards(folder, "experiment_2")
    assert first[0] < -0.4
    assert mean(second) > first[0] + 0.4

    capsys.readouterr()
    play = ["--inference", "--resume_model_path", str(model_path(folder, "experiment_2"))]
    assert train(game, *ORCHARD, *play, "--timesteps", "3200", short=False) == 0
    told = capsys.readouterr().out
    found = re.search(r"episodes: reward (\S+) .*, score \S+", told)
    assert found is not None, told
    assert float(found[1]) > 0.2


@pytest.mark.prove  # in a game that is made up: test_training.py
def test_dqn_learns(godot: Path, folder: Path) -> None:
    words = ["--algo", "dqn", "--timesteps", "6000", "--learning_starts", "800"]
    words += ["--batch_size", "128", "--learning_rate", "0.001", "--gradient_steps", "4"]
    words += ["--target_update_interval", "800", "--exploration_fraction", "0.5", "--gamma", "0.97"]
    assert train(paths.godot_project(), *ORCHARD, *words, short=False) == 0
    found = rewards(folder, "experiment_1")
    assert found[0] < -0.4
    assert mean(found[-2:]) > 0.4
