"""Whatever goes wrong is one clear line and an exit code, and nothing is overwritten."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.support.errors import UserError
from estragon.trainers.rllib.ray_session import _join, ray_session
from tests.trainers.conftest import Game
from tests.trainers.rllib.staging import ROUNDS, manifest, run_folder, train
from tests.trainers.sb3.test_faults import complaint, full_disk

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nope"], "Unrecognized options: --nope"),
        (["--algo", "a3c"], "invalid choice"),
        (["--timesteps", "0"], "--timesteps: expected at least 1, got 0"),
        (["--num_workers", "65"], "--num_workers: expected 0 to 64, got 65"),
        (["--gamma", "1.5"], "gamma: expected 0 to 1, got 1.5"),
        (["--lambda", "-1"], "lambda: expected 0 to 1, got -1"),
        (["--inference"], "give --restore"),
        (["--config_file", "gone.yaml"], "cannot read gone.yaml: No such file"),
        (["--restore", "gone"], "gone does not exist"),
        (["--restore", "."], "no checkpoints found in ."),
        (["--env_path", "gone.x86_64"], "gone.x86_64 does not exist"),
        (["--experiment_name", "../up"], "expected a name, not a path"),
        (["--onnx_export_path", "/proc/none"], "cannot write /proc/none"),
    ],
)
def test_wrong_words_begin_nothing(
    folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "rllib", "--env_path", "none", *words]) == 2
    assert said in complaint(capsys)
    assert not list(folder.rglob("*.*"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a list", "expected names and values, got list"),
        ("a: [", "is not YAML"),
        ("algorithm: A3C", "no algorithm a3c; choose one of ppo, appo, impala, dqn, sac"),
        ("framework: tf2", "framework: expected torch, got tf2"),
        ("env_config: {env_pth: x}", "env_config: unknown env_pth"),
        ("config: {lr: 1}\ngamma: 0.9", "gamma: put it under config"),
        ("stop: {moon: 1}\nconfig: {}", "stop: unknown moon"),
        ("multiagent: {policy_mapping_fn: 'def f(): pass'}", "expected def policy_mapping_fn"),
        ("multiagent: {policy_mapping_fn: 'return 1'}", "policy_mapping_fn: 'return' outside"),
        ("multiagent: {policies: [a], policies_to_train: [b]}", "policies_to_train: no policy b"),
    ],
)
def test_wrong_files_begin_nothing(
    folder: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "c.yaml").write_text(text)
    assert main(["train", "rllib", "--env_path", "none", "--config_file", "c.yaml"]) == 2
    assert said in complaint(capsys)


@pytest.mark.parametrize(
    ("kind", "text", "words", "said"),
    [
        (
            "box",
            "",
            ["--algo", "dqn"],
            "dqn cannot do 2 numbers (policy0); use --algo ppo",
        ),
        pytest.param(
            "discrete",
            "",
            ["--algo", "sac"],
            "sac cannot do one of 4 choices (policy0)",
            marks=pytest.mark.prove,
        ),
        pytest.param(
            "box",
            "learning_rate: 1",
            [],
            "PPO has no setting learning_rate",
            marks=pytest.mark.prove,
        ),
        ("box", "lr: fast", [], "lr: expected a number, got fast"),
        pytest.param(
            "box",
            "model: {fcnet_hidden: [8]}",
            [],
            "unknown fcnet_hidden (did you mean fcnet_hidde",
            marks=pytest.mark.prove,
        ),
        ("box", "multiagent: {policies: [a, b]}", [], "played by policy0, policy1, but there is"),
        (
            "image",
            "",
            [],
            "choose with key under env_config in the YAML file (obs, near, camera_2d)",
        ),
        pytest.param("box", "minibatch_size: 99999", [], "minibatch_size", marks=pytest.mark.prove),
    ],
)
@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
def test_what_cannot_be_built(
    folder: Path,
    game: Game,
    kind: str,
    text: str,
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "rllib_config.yaml").write_text(text or "env: godot")
    assert train(game(kind=kind), *words) == 2
    assert said in complaint(capsys)
    assert not run_folder(folder).exists()


def test_a_game_that_never_connects(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\necho I am here\nsleep 60\n")
    silent.chmod(0o755)
    assert train(silent, "--start_timeout", "0.5") == 2
    said = complaint(capsys)
    assert "timed out after 0.5 s waiting for a game to connect" in said
    assert "I am here" in said


@pytest.mark.prove
@pytest.mark.usefixtures("local_ray")
def test_a_checkpoint_of_another_algorithm_or_game_or_a_damaged_one(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(game(kind="box"), *ROUNDS, "--timesteps", "16") == 0
    checkpoint = run_folder(folder) / "checkpoint_000001"
    restore = ["--restore", str(checkpoint)]
    assert train(game(kind="box"), *restore, "--algo", "sac") == 2
    assert "was trained with ppo, not sac" in complaint(capsys)
    assert train(game(kind="multi"), *restore) == 2
    assert "is of another game: policy0 sees obs: 5 numbers and does 2 numbers" in complaint(capsys)
    state = checkpoint / "estragon.pt"
    state.write_bytes(state.read_bytes()[:-100])
    assert train(game(kind="box"), *restore) == 2
    assert "estragon.pt is damaged" in complaint(capsys)
    assert not run_folder(folder, "experiment_2").exists()


@pytest.mark.prove
@pytest.mark.usefixtures("local_ray")
def test_a_game_that_dies_again_and_again(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(kind="box", fault="die", at=9)
    assert train(path, *ROUNDS, "--timesteps", "1000") == 1
    assert "out of luck" in complaint(capsys)
    assert manifest(folder)["status"] == "failed"
    assert list(run_folder(folder).glob("checkpoint_*"))


@pytest.mark.prove
@pytest.mark.usefixtures("local_ray")
def test_a_full_disk(folder: Path, game: Game, capsys: pytest.CaptureFixture[str]) -> None:
    with ray_session(None, 4), full_disk(12_000):
        words = ["--checkpoint_frequency", "1", "--fcnet_hiddens", "64", "64"]
        assert train(game(kind="box"), *ROUNDS, *words) == 1
    error = capsys.readouterr().err
    assert "WARNING: no checkpoint at" in error
    assert error.splitlines()[-1].startswith("estragon: cannot write")
    assert not list(run_folder(folder).glob("*checkpoint*")), "something is left over"


@pytest.mark.prove
def test_a_ray_after_another_has_a_token_of_its_own() -> None:
    twice = (
        "import os\n"
        "from estragon.trainers.rllib.ray_session import ray_session\n"
        "for _ in range(2):\n"
        "    with ray_session(None, 1): print(os.environ.pop('RAY_AUTH_TOKEN'))\n"
    )
    words = [sys.executable, "-c", twice]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    assert len(set(said.stdout.split())) == 2


def test_no_cluster_there() -> None:
    with pytest.raises(UserError, match=r"--address 127.0.0.1:1: .*Connection"):
        _join("127.0.0.1:1")


def test_checkpoints_of_somebody_else_are_not_played(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "theirs").mkdir()
    (folder / "theirs" / "rllib_checkpoint.json").write_text(json.dumps({"type": "Algorithm"}))
    assert train(game(kind="box"), "--restore", "theirs", "--inference") == 2
    assert "was not made by Estragon" in complaint(capsys)
