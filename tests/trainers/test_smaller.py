"""int8 and distillation of any game's policy, played in that game."""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from estragon.cli import main
from estragon.onnx.compare import GodotRuntime
from estragon.onnx.metadata import read_metadata
from estragon.trainers import smaller
from tests.trainers.conftest import Game
from tests.trainers.sb3.staging import model_path, train


@pytest.fixture(autouse=True)
def shared_godot(godot_runtime: GodotRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Speed is measured in the Godot process of all tests."""
    monkeypatch.setattr(
        "estragon.onnx.bench.GodotRuntime", lambda: contextlib.nullcontext(godot_runtime)
    )
    monkeypatch.setattr("estragon.onnx.quantize.BENCH_SEC", 0.01)
    monkeypatch.setattr(smaller, "CALIBRATION_STEPS", 40)
    monkeypatch.setattr(smaller, "EPOCHS", 3)


@pytest.mark.parametrize("kind", ["discrete", "mixed"])
def test_a_model_becomes_int8_and_is_distilled(
    kind: str, folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(kind=kind)
    assert train(path, "--normalize") == 0
    model = str(model_path(folder))
    capsys.readouterr()
    words = ["export", "sb3", model, "-o", "policy.onnx", "--episodes", "8"]
    assert main([*words, "--quantize", "int8"]) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "policy.int8.onnx: " in said
    assert "of actions changed; mean return" in said
    assert "(8 episodes each)" in said
    about = read_metadata(folder / "policy.int8.onnx")
    assert (about["quantization"], about["algorithm"]) == ("int8", "ppo")
    words = ["distill", "policy.onnx", "--student", "8x4", "--steps", "200", "--episodes", "8"]
    assert main([*words, "--game", str(path)]) == 0, capsys.readouterr().err
    assert "policies/policy-8x4.onnx: " in capsys.readouterr().out
    about = read_metadata(folder / "policies" / "policy-8x4.onnx")
    assert about["distilled_from"] == "ppo, 64 steps"
    assert about["observation_space"] == read_metadata(folder / "policy.onnx")["observation_space"]


def test_a_student_learns_what_its_teacher_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smaller, "EPOCHS", 20)
    random = np.random.default_rng(0)
    seen = random.normal(size=(2000, 6)).astype(np.float32)
    said = np.stack([10 * seen[:, 0], -seen[:, 1], seen[:, 2]], axis=1).astype(np.float32)
    lessons = smaller._Lessons([seen], [said])
    does: Any = spaces.Discrete(3)
    student = None
    for _ in range(4):
        student = smaller._learn(student, lessons, (16,), does, random)
    assert student is not None
    with torch.no_grad():
        chosen = student.outputs(torch.from_numpy(seen)).argmax(dim=1).numpy()
    assert np.mean(chosen == said.argmax(axis=1)) > 0.9
    row = torch.from_numpy(seen)
    with torch.no_grad():
        before = student.outputs(row)
        assert torch.allclose(student.fold().outputs(row), before, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.onnx"], "none.onnx"),
        (["bad.onnx"], "is not an ONNX file"),
        (["bad.zip", "--game", "g"], "is not a model"),
        (["bad.npz"], "is not an Estragon policy"),
        (["a.npz", "--student", "32x0"], "expected sizes such as 32x32, got '32x0'"),
        (["a.npz", "--student", "9999"], "got '9999'"),
        (["a.zip"], "give --game"),
        (["a.zip", "b.zip", "--game", "g"], "one teacher at a time, got 2"),
        ([], "give a teacher"),
    ],
)
def test_what_cannot_be_distilled(
    words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("bad.onnx", "bad.zip", "bad.npz"):
        (folder / name).write_bytes(json.dumps({"no": "model"}).encode())
    assert main(["distill", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
