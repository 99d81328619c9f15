"""A policy scores the same in a game by itself as when Python lets it play over the wire."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from estragon.cli import main
from estragon.envs.gymnasium_env import GodotEnv
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.onnx.compare import OnnxRuntime
from estragon.support import paths
from tests.godot.addon import models

COPIES, SEED, STEPS, REPEAT = 4, 7, 400, 8


def orchard(path: Path) -> Path:
    """Run to the fruit, and not where thorns are near."""
    angles = np.radians((np.arange(16) + 0.5) * 22.5 - 180.0)
    ways = np.array([[0, 0], [0, -1], [0, 1], [-1, 0], [1, 0]])
    rays = np.stack([np.cos(angles), np.sin(angles)], 1)
    fear = -6.0 * np.maximum(rays @ ways.T - 0.8, 0.0)
    return models.linear(path, np.concatenate([fear, 4.0 * ways.T]).tolist())


def marble(path: Path) -> Path:
    """Push to the goal; it does not brake, and falls now and then."""
    weights = np.zeros((36, 2))
    weights[32:34] = 3.0 * np.eye(2)
    weights[34:36] = 2.0 * np.eye(2)
    return models.linear(path, weights.tolist())


@pytest.fixture(scope="module")
def project(godot: Path) -> Path:
    return import_project(paths.godot_project(), godot=godot)


def from_python(project: Path, scene: str, model: Path) -> list[list[float]]:
    """The scores of every agent's episodes, played over the wire."""
    engine = OnnxRuntime()
    engine.load(model)
    memory = {
        port.name: np.zeros((COPIES, int(port.shape[1] or 0)), np.float32)
        for port in engine.inputs
        if port.name == "state_ins"
    }
    scores: list[list[float]] = [[] for _ in range(COPIES)]
    env = GodotEnv(project, scene=scene, seed=SEED, key="obs", arguments={"copies": COPIES})
    try:
        seen, _ = env.reset()
        for _ in range(STEPS):
            told = engine.run({"obs": seen, **memory})
            said = told["output"]
            action = said.argmax(1) if said.shape[1] == 5 else said.clip(-1.0, 1.0)
            seen, _, terminated, truncated, infos = env.step(action)
            memory = {name: told["state_outs"].copy() for name in memory}
            for agent in np.flatnonzero(terminated | truncated):
                scores[agent].append(int(infos["final_info"]["score"][agent]))
                for numbers in memory.values():
                    numbers[agent] = 0.0
    finally:
        env.close()
    return scores


def by_itself(project: Path, folder: Path, scene: str, model: Path) -> list[list[float]]:
    """The same in Godot alone."""
    words = ["--headless", "--path", str(project), "--fixed-fps", "60"]
    words += ["-s", "res://tests/scores.gd", f"--scene={scene}", f"--copies={COPIES}"]
    words += [f"--env_seed={SEED}", f"--onnx_model_path={model.name}"]
    words.append(f"--ticks={STEPS * (REPEAT + 1)}")
    with contextlib.chdir(model.parent), GodotProcess(words, folder=folder) as process:
        assert process.wait("its end", 60.0) == 0
        lines = process.lines()
    assert not [line for line in lines if "ERROR" in line]
    (line,) = [line for line in lines if line.startswith("[[")]
    scores: list[list[float]] = json.loads(line)
    return scores


@pytest.mark.parametrize(("make", "least", "most"), [(orchard, 3.0, 99.0), (marble, 0.2, 0.98)])
def test_the_same_scores(
    make: Callable[[Path], Path], least: float, most: float, project: Path, tmp_path: Path
) -> None:
    scene = f"res://examples/{make.__name__}/{make.__name__}.tscn"
    model = make(tmp_path / "policy.onnx")
    assert_same_scores(project, scene, model, tmp_path, least, most)


@pytest.mark.prove
def test_a_memory_that_stable_baselines_taught(
    godot: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scene, model = "res://examples/orchard/orchard.tscn", tmp_path / "policy.onnx"
    words = ["train", "sb3", "--env_path", str(project), "--scene", scene, "--algo"]
    words += ["recurrent_ppo", "--timesteps", "40000", "--n_steps", "32", "--batch_size", "512"]
    words += ["--learning_rate", "0.001", "--lstm_hidden_size", "32", "--seed", "3"]
    assert main([*words, "--onnx_export_path", str(model)]) == 0
    assert_same_scores(project, scene, model, tmp_path, 1.0, 99.0)


def assert_same_scores(
    project: Path, scene: str, model: Path, folder: Path, least: float, most: float
) -> None:
    right = from_python(project, scene, model)
    found = by_itself(project, folder, scene, model)
    both = [
        pair
        for ours, theirs in zip(found, right, strict=True)
        for pair in zip(ours, theirs, strict=False)
    ]
    assert len(both) >= 2 * COPIES
    assert np.mean([ours == theirs for ours, theirs in both]) >= 0.9, (right, found)
    assert least <= np.mean(both) < most
