"""Whatever goes wrong is one clear line and an exit code, and nothing is overwritten."""

import resource
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import cloudpickle  # type: ignore[import-untyped]
import pytest
import torch
from stable_baselines3 import A2C, PPO

from estragon.cli import main
from estragon.envs.sb3_env import GodotVecEnv
from tests.trainers.conftest import Game
from tests.trainers.sb3.staging import manifest, model_path, train


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """No file may grow beyond that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """The last line on standard error, which is ours."""
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("estragon: ")
    assert not any("Traceback" in line for line in lines)
    return lines[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nope"], "Unrecognized options: --nope"),
        (["--algo", "ppo2"], "invalid choice"),
        (["--timesteps", "many"], "--timesteps"),
        (["--timesteps", "0"], "--timesteps: expected at least 1, got 0"),
        (["--n_parallel", "65"], "--n_parallel: expected 1 to 64, got 65"),
        (["--speedup", "101"], "--speedup: expected 1 to 100, got 101.0"),
        (["--gamma", "1.5"], "gamma: expected 0 to 1, got 1.5"),
        (["--policy_layers"], "--policy_layers: expected sizes"),
        (["--inference"], "--resume_model_path"),
        (["--env_path", "gone.x86_64"], "gone.x86_64 does not exist"),
        (["--resume_model_path", "gone.zip"], "cannot read gone.zip: No such file"),
        (["--save_model_path", "/proc/none/m.zip"], "cannot write /proc/none/m.zip"),
        (["--experiment_name", "../up"], "expected a name, not a path"),
        (["--algo", "sac", "--policy_type", "lstm"], "only ppo supports it, not sac"),
    ],
)
def test_wrong_words_begin_nothing(
    folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "sb3", "--env_path", "none", *words]) == 2
    assert said in complaint(capsys)
    assert not list(folder.rglob("*.*"))


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x03\x04 and then nothing"])
def test_what_is_no_model_is_not_opened(
    folder: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "m.zip").write_bytes(content)
    assert train("none", "--resume_model_path", "m.zip") == 2
    assert "m.zip is not a model" in complaint(capsys)


def test_another_archive_is_no_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(folder / "m.zip", "w") as archive:
        archive.writestr("holiday.jpg", b"...")
    assert train("none", "--resume_model_path", "m.zip") == 2
    assert "m.zip is not a model: not saved by Stable-Baselines3" in complaint(capsys)


def test_a_model_of_another_algorithm_or_game(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(game(kind="box"), "--timesteps", "16") == 0
    before = model_path(folder).read_bytes()
    resume = ["--resume_model_path", str(model_path(folder))]
    assert train(game(kind="box"), *resume, "--algo", "sac") == 2
    assert "model.zip was trained with ppo, not sac" in complaint(capsys)
    assert train(game(kind="multi"), *resume) == 2
    said = complaint(capsys)
    assert "actions 2 numbers" in said
    assert "of this game are obs: 5 numbers, and one of 3 choices and" in said
    assert train(game(kind="box"), *resume, "--normalize") == 2
    assert "was trained without" in complaint(capsys)
    assert model_path(folder).read_bytes() == before
    assert not model_path(folder, "experiment_2").exists()


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        (
            "box",
            ["--algo", "dqn"],
            "dqn does not support actions that are 2 numbers; use ppo, a2c, sac",
        ),
        ("multi", ["--algo", "dqn"], "use ppo, a2c, recurrent_ppo, maskable_ppo"),
        ("discrete", ["--algo", "td3"], "td3 does not support actions that are one of 4 choices"),
        ("box", ["--policy_type", "cnn"], "no observation of the game is an image (obs: 5 numbers"),
    ],
)
def test_what_an_algorithm_cannot_play(
    folder: Path,
    game: Game,
    kind: str,
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert train(game(kind=kind), *words) == 2
    assert said in complaint(capsys)


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


def test_a_game_that_dies_again_and_again(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "m.zip").write_bytes(b"the best model so far")
    words = ["--timesteps", "1000", "--save_model_path", "m.zip"]
    assert train(game(kind="box", fault="die", at=9), *words) == 1
    assert "out of luck" in complaint(capsys)
    assert manifest(folder)["status"] == "failed"
    assert PPO.load(model_path(folder)).num_timesteps > 0
    assert (folder / "m.zip").read_bytes() == b"the best model so far"


def test_a_full_disk(folder: Path, game: Game, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.zip").write_bytes(b"the best model so far")
    words = ["--save_checkpoint_frequency", "16", "--save_model_path", "m.zip"]
    with full_disk(12_000):
        assert train(game(kind="box"), *words) == 1
    error = capsys.readouterr().err
    assert "WARNING: no checkpoint at 16 steps: cannot write" in error
    assert error.splitlines()[-1].startswith("estragon: cannot write")
    assert (folder / "m.zip").read_bytes() == b"the best model so far"
    assert not model_path(folder).exists()
    assert not list(folder.rglob(".*zip*")), "something is left over"


def test_a_foreign_model_is_loaded_only_with_trust(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(kind="discrete")
    with closing(GodotVecEnv(path)) as env:
        shape = {"net_arch": [6], "activation_fn": torch.nn.ReLU}
        model = A2C("MultiInputPolicy", env, n_steps=4, policy_kwargs=shape)
        model.learn(16).save(folder / "theirs.zip")
    words = ["--resume_model_path", "theirs", "--gamma", "0.6"]
    for more in ([], ["--inference"]):
        assert train(path, *words, *more) == 2
        said = complaint(capsys)
        assert "theirs.zip was not made by Estragon" in said
        assert "--trust" in said
    assert not (folder / "logs").exists()
    assert train(path, *words, "--trust") == 0
    resumed = A2C.load(model_path(folder))
    assert resumed.gamma == 0.6
    assert resumed.num_timesteps == 16 + 64
    # How to build it is still unknown: it stays foreign.
    resume = ["--resume_model_path", str(model_path(folder))]
    assert train(path, *resume) == 2
    assert train(path, *resume, "--trust") == 0
    again = A2C.load(model_path(folder, "experiment_2"))
    assert again.gamma == 0.6
    assert again.policy_kwargs == shape


def test_a_foreign_pickle_is_not_opened(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the algorithm nor anything else is found out by unpickling."""
    monkeypatch.setattr(cloudpickle, "loads", lambda *_: pytest.fail("unpickled"))
    with zipfile.ZipFile(folder / "m.zip", "w") as archive:
        archive.writestr("data", b'{"clip_range": {":type:": "x", ":serialized:": "gASVEmF0"}}')
    for words in (["train", "sb3", "--resume_model_path", "m.zip"], ["export", "sb3", "m.zip"]):
        assert main(words) == 2
        assert "--trust" in complaint(capsys)


def test_ours_are_never_unpickled(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is pickled in a model of ours may be anything: it is not read."""
    path = game(kind="discrete")
    assert train(path, "--timesteps", "16") == 0
    with zipfile.ZipFile(model_path(folder)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["data"] = b'{"learning_rate": {":type:": "x", ":serialized:": "gASVEmF0dGFjaw=="}}'
    with zipfile.ZipFile(folder / "m.zip", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    assert train(path, "--resume_model_path", "m.zip", "--timesteps", "16") == 0
    assert PPO.load(model_path(folder, "experiment_2")).num_timesteps == 32
