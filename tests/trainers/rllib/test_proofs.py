"""RLlib learns an example game on real Godot to a stated score, and outlives what dies."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon.support import paths
from tests.envs.staging import assert_gone, games_of
from tests.prove import Recorder, run_folder
from tests.trainers.rllib.cluster import cluster, env_runners

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "rllib_training_script.py"
ORCHARD = [
    "--env_path",
    str(paths.godot_project()),
    "--scene",
    "res://examples/orchard/orchard.tscn",
]
ROUNDS = ["--train_batch_size", "1024", "--sgd_minibatch_size", "256", "--num_sgd_iter", "10"]
NUMBERS = [*ROUNDS, "--lr", "0.001", "--entropy_coeff", "0.005"]
STEPS, WANTED, PLAYED = 100_000, 7.0, 8_000
"""Steps of PPO, the fruit to eat after them, and for how many steps that is measured."""
STEPS_ON_CLUSTER = 40_000


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, SCRIPT, *ORCHARD, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def play(folder: Path, checkpoint: Path) -> tuple[float, int]:
    """The mean score of a policy at play, and of how many episodes."""
    told = run(
        folder,
        *["--inference", "--restore", str(checkpoint), "--timesteps", str(PLAYED)],
        *["--seed", "12345"],
    )
    found = re.search(r"(\d+) episodes: .* score ([\d.]+)", told)
    assert found is not None, told
    return float(found[2]), int(found[1])


@pytest.mark.prove
def test_ppo_reaches_its_score_with_two_env_runners(godot: Path, record_result: Recorder) -> None:
    folder = run_folder("rllib-ppo")
    folder.mkdir(parents=True, exist_ok=True)
    told = run(folder, *NUMBERS, "--timesteps", str(STEPS), "--num_workers", "2", "--seed", "1")
    found = re.findall(r"^checkpoint saved to (.+)$", told, re.MULTILINE)
    score, episodes = play(folder, folder / found[-1])
    seconds = json.loads((folder / found[-1]).parent.joinpath("run.json").read_text())["last"]
    rate = seconds["num_agent_steps_sampled"] / seconds["time_total_s"]
    result = (
        f"{score:.2f} fruit in orchard after {STEPS:,} steps of two env runners, {rate:,.0f} "
        f"steps/s (wanted: {WANTED:g}; {episodes} episodes)"
    )
    record_result("RLlib: ppo", result, held=score >= WANTED)
    assert score >= WANTED


@pytest.mark.prove
def test_a_cluster_goes_on_when_an_env_runner_and_a_game_die(
    godot: Path, record_result: Recorder
) -> None:
    folder = run_folder("rllib-cluster")
    folder.mkdir(parents=True, exist_ok=True)
    known = set(env_runners())
    with cluster(nodes=2) as (address, environment):
        log = folder / "run.log"
        words = [*NUMBERS, "--timesteps", str(STEPS_ON_CLUSTER), "--num_workers", "2"]
        with log.open("w") as stream:
            training = subprocess.Popen(
                [sys.executable, SCRIPT, *ORCHARD, *words, "--address", address],
                cwd=folder,
                env=environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for_iteration(training, log, 5)
            runners = [pid for pid in env_runners() if pid not in known]
            assert len(runners) == 2
            assert raylets(runners) == 2, "one env runner on each node"
            lost_games = games_of(runners[0])
            os.kill(runners[0], signal.SIGKILL)
            wait_for_iteration(training, log, 12)
            (game,) = games_of(runners[1])
            os.kill(game, signal.SIGKILL)
            at_kill = iterations(log)
            assert training.wait(900.0) == 0, log.read_text()
        finally:
            training.kill()
            training.wait()
        assert_gone([*lost_games, game])
        later = iterations(log) - at_kill
        mended = json.loads(newest_manifest(folder).read_text())
    assert mended["status"] == "finished"
    assert mended["timesteps"] >= STEPS_ON_CLUSTER
    score = mended["last"]["custom_metrics"]["score"]
    result = (
        f"an env runner and a game killed: {mended['timesteps']:,} steps on two nodes, {later} "
        f"iterations after the kills, {score:.2f} fruit in the last"
    )
    record_result("RLlib: a cluster of two nodes", result, held=later > 5)
    assert later > 5


def wait_for_iteration(training: "subprocess.Popen[bytes]", log: Path, number: int) -> None:
    deadline = time.monotonic() + 300.0
    while iterations(log) < number:
        assert training.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def iterations(log: Path) -> int:
    return len(re.findall(r"^iteration \d+:", log.read_text(), re.MULTILINE))


def raylets(runners: list[int]) -> int:
    """How many processes have started them."""
    told = subprocess.run(
        ["ps", "-o", "ppid=", "-p", ",".join(map(str, runners))],
        capture_output=True,
        text=True,
        check=True,
    )
    return len(set(told.stdout.split()))


def newest_manifest(folder: Path) -> Path:
    return max(folder.rglob("run.json"), key=lambda path: path.stat().st_mtime)
