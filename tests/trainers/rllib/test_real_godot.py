"""Real games on real Godot, with env runners that are processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.support import paths
from estragon.trainers.metrics import mean
from tests.envs.staging import assert_gone, games_of
from tests.trainers.rllib.cluster import env_runners
from tests.trainers.rllib.staging import manifest, run_folder
from tests.trainers.staging import read_metrics

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "rllib_training_script.py"
TAG = """
env: godot
env_config:
  scene: res://tag/train/TagTraining.tscn
  arguments: {arenas: 2}
multiagent:
  policies:
    seeker: {}
    hider: {lr: 0.0001}
  policy_mapping_fn: {seeker: seeker, hider: hider}
num_env_runners: 2
train_batch_size: 512
minibatch_size: 128
num_epochs: 2
"""


@pytest.mark.prove
def test_two_policies_of_tag_a_lost_env_runner_and_an_interrupt(godot: Path, folder: Path) -> None:
    """Every line that a controller reads is whole; what dies is replaced; Ctrl-C saves all."""
    (folder / "tag.yaml").write_text(TAG)
    known = set(env_runners())
    words = ["--config_file", "tag.yaml", "--env_path", str(paths.godot_project())]
    with (folder / "out.txt").open("w") as out:
        training = subprocess.Popen(
            [sys.executable, SCRIPT, *words, "--onnx_export_path", "policies"],
            cwd=folder,
            env=dict(os.environ) | {"CONTROLLER_METRICS": "1"},
            stdout=out,
        )
    try:
        wait_for_lines(training, folder / "out.txt", 2)
        runners = [pid for pid in env_runners() if pid not in known]
        assert len(runners) == 2
        games = [game for runner in runners for game in games_of(runner)]
        assert len(games) == 2
        os.kill(runners[0], signal.SIGKILL)
        os.kill(games_of(runners[1])[0], signal.SIGKILL)
        wait_for_lines(training, folder / "out.txt", 5)
        training.send_signal(signal.SIGINT)
        assert training.wait(60.0) == 130
    finally:
        training.kill()
        training.wait()
    assert_gone([*runners, *games])
    metrics = read_metrics((folder / "out.txt").read_text())
    assert [metric["training_iteration"] for metric in metrics] == [*range(1, len(metrics) + 1)]
    assert all(set(metric["policies"]) == {"seeker", "hider"} for metric in metrics)
    for policy in ("seeker", "hider"):
        assert sum(metric["policies"][policy]["completed_episodes"] for metric in metrics) > 0
        assert metrics[-1]["policies"][policy]["learner_stats"]["entropy"] is not None
    assert metrics[-1]["policies"]["hider"]["learner_stats"]["cur_lr"] == 0.0001
    assert manifest(folder)["status"] == "interrupted"
    latest = manifest(folder)["checkpoint"]
    assert (folder / latest / "estragon.json").is_file()
    for policy in ("seeker", "hider"):
        assert main(["onnx", "compare", f"policies/{policy}.onnx"]) == 0


@pytest.mark.prove
@pytest.mark.usefixtures("local_ray")
def test_ppo_learns_with_two_env_runners(godot: Path, folder: Path) -> None:
    words = ["--env_path", str(paths.godot_project()), "--num_workers", "2"]
    words += ["--scene", "res://examples/orchard/orchard.tscn", "--timesteps", "8000"]
    words += ["--train_batch_size", "1024", "--sgd_minibatch_size", "256", "--num_sgd_iter", "10"]
    assert main(["train", "rllib", *words, "--lr", "0.001"]) == 0
    lines = (run_folder(folder) / "run.metrics.jsonl").read_text().splitlines()
    rewards = [json.loads(line)["episode_reward_mean"] for line in lines]
    told = [reward for reward in rewards if reward is not None]
    assert told[0] < -0.4
    assert mean(told[-2:]) > told[0] + 0.3


def wait_for_lines(training: "subprocess.Popen[bytes]", path: Path, count: int) -> None:
    deadline = time.monotonic() + 180.0
    while path.read_text().count("@METRIC") < count:
        assert training.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
