"""What a file says about itself, and whether it fits a game."""

import json
from pathlib import Path

import pytest

from estragon.onnx.metadata import (
    about_policy,
    check_models,
    describe,
    misfit,
    read_metadata,
    with_metadata,
)
from estragon.support.errors import UserError
from tests.godot.addon import models

OBS = {"obs": {"space": "box", "size": [5]}}
TWO = OBS | {"near": {"space": "discrete", "size": [4]}}
MOVE = [{"key": "move", "action_type": "continuous", "size": 2}]
KICK = [{"key": "kick", "action_type": "discrete", "size": 3}]


def about(observations: dict = OBS, actions: list = MOVE) -> dict[str, str]:  # type: ignore[type-arg]
    return about_policy(
        algorithm="ppo",
        trainer="stable-baselines3",
        observations=observations,
        actions=actions,
        normalization="none",
        memory=0,
        training_steps=20_000,
    )


def test_it_is_kept_in_the_file(tmp_path: Path) -> None:
    path = models.constant(tmp_path / "model.onnx", 1, 0)
    path.write_bytes(with_metadata(path.read_bytes(), about() | {"run": "ours"}))
    path.write_bytes(with_metadata(path.read_bytes(), {"quantization": "int8"}))
    found = read_metadata(path)
    assert found == about() | {"run": "ours", "quantization": "int8"}
    assert describe(found) == (
        "ppo, 20,000 steps, sees obs: 5 numbers, does move: 2 continuous, int8"
    )


@pytest.mark.parametrize(
    ("model", "observations", "actions", "said"),
    [
        (about(), OBS, MOVE, ""),
        ({}, TWO, KICK, ""),
        ({"observation_space": "[}"}, TWO, KICK, ""),
        (about({"obs": {"space": "box", "size": [6]}}), TWO, MOVE, ""),
        (about(), OBS | {"obs": {"space": "box", "size": [84]}}, MOVE, "obs: 84 numbers"),
        (about(TWO), OBS, MOVE, "the game has obs: 5 numbers"),
        (about(), OBS, KICK, "does move: 2 continuous, the game takes kick: 3 discrete"),
        (about(actions=[{"action_type": "discrete", "size": 3}]), OBS, KICK, ""),
        (about(actions=[{"action_type": "continuous", "size": 5}]), OBS, [*MOVE, *KICK], ""),
        (about(actions=[{"action_type": "continuous", "size": 3}]), OBS, KICK, "kick: 3 discrete"),
        (about(actions=MOVE), OBS, [MOVE[0] | {"key": "turn"}], "turn: 2 continuous"),
    ],
)
def test_what_fits(model: dict, observations: dict, actions: list, said: str) -> None:  # type: ignore[type-arg]
    found = misfit(model, observations, actions)
    assert said in found
    assert bool(said) == bool(found)


def test_a_probe_says_what_fits(tmp_path: Path) -> None:
    path = models.constant(tmp_path / "model.onnx", 1, 0, sees=5)
    plain = models.constant(tmp_path / "plain.onnx", 1, 0, sees=7)
    path.write_bytes(with_metadata(path.read_bytes(), about()))
    seen = [{"key": "obs", "space": "box", "size": [5]}]
    spaces = [{"policy": "shared", "observation_space": seen, "action_space": MOVE}]
    first, second = check_models([path, plain], spaces)
    assert (first["fits"], first["problem"]) == ("shared", "")
    assert "the model sees obs: 7 numbers, the game has obs: 5 numbers" in second["problem"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    for content in (b"", b"no model", json.dumps({}).encode(), b"\x08\x07" * 999):
        path.write_bytes(content)
        with pytest.raises(UserError, match="is not an ONNX file"):
            read_metadata(path)
    with pytest.raises(UserError, match="cannot read"):
        read_metadata(tmp_path / "none.onnx")
