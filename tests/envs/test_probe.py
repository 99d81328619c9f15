"""`estragon godot probe` on games of every kind: what it reports, and what it finds suspicious."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.cli import main
from estragon.envs.launch import Launch
from estragon.envs.probe import Diagnostics, probe
from estragon.envs.spaces import read_spaces
from estragon.envs.wire import TERMINATED, AgentInfo, AgentTable, Observations, StepResult
from tests.godot.addon import models


def report_of(path: Path, tmp_path: Path, *words: str) -> dict[str, Any]:
    report = tmp_path / "report.json"
    assert main(["godot", "probe", str(path), "--json", str(report), *words]) == 0
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_a_new_game(new_game: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = report_of(new_game, tmp_path, "--seconds", "0.5", "--n-parallel", "2")
    assert found["agents"] == 4
    assert found["encoding"] == "binary1"
    assert found["policies"] == {"policy0": 2, "policy1": 2}
    assert found["agent_steps"] == 4 * found["steps"]
    assert found["agent_steps_per_s"] > 0
    assert found["episodes"] == found["episodes_terminated"] + found["episodes_truncated"]
    assert found["episodes_terminated"] > found["episodes_truncated"] > 0
    assert 3 <= found["episode_length_mean"] <= 4
    about_obs, about_rewards = [text for text in found["warnings"] if "as large as" in text]
    assert "policy0: observation 'obs'" in about_obs
    assert about_rewards == "rewards are as large as 104; scale them to about -1 to 1"
    assert not any("older addon" in text for text in found["warnings"])
    shown = capsys.readouterr().out
    assert "agents      4 (policy0 × 2, policy1 × 2)" in shown
    assert "policy0 observes obs box 5; acts with move continuous 2" in shown
    shares = [found[f"time_{where}"] for where in ("in_game", "on_wire", "in_python")]
    assert sum(shares) == pytest.approx(1.0, abs=0.01)
    assert min(shares) >= 0.0
    assert found["time_in_python"] > 0.0
    assert found["step_ms"] == pytest.approx(1e3 * found["seconds"] / found["steps"], rel=0.1)
    for name in ("time        ", "observes    policy0 obs: ", "rewards     1 to 104, mean "):
        assert f"\n{name}" in shown
    if sys.platform == "linux":
        assert 5 < found["game_memory_mb"] < 500
        assert abs(found["game_memory_growth_mb"]) < 32


def test_models_are_compared_with_the_game(
    new_game: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fits = models.constant(tmp_path / "fits.onnx", 1, 0, sees=5)
    other = models.constant(tmp_path / "other.onnx", 1, 0, sees=84)
    words = ["--seconds", "0.2", "--model", str(fits), str(other)]
    found = report_of(new_game, tmp_path, *words)["models"]
    assert [each["fits"] for each in found] == ["policy0, policy1", ""]
    shown = capsys.readouterr().out
    assert f"model       {fits}: no metadata; fits policy0, policy1\n" in shown
    assert "does not fit: the model sees obs: 84 numbers, the game has obs: 5 numbers" in shown


def test_parameters(new_game: Path, dials: Path, tmp_path: Path, capsys: Any) -> None:
    found = report_of(dials, tmp_path, "--seconds", "0.3")
    assert [each["name"] for each in found["parameters"]] == ["speed", "wind", "map", "unsaid"]
    ranges = {"low": 1.0, "high": 9.0, "unit": "m/s", "choices": []}
    assert found["parameters"][0] == {"name": "speed", "default": 2.0} | ranges
    shown = capsys.readouterr().out
    assert "parameter   speed = 2 m/s (1 to 9)\nparameter   wind = 0\n" in shown
    assert "parameter   map = small (small, large)\nparameter   unsaid = 3\n" in shown
    assert report_of(new_game, tmp_path, "--seconds", "0.3")["parameters"] == []
    assert "parameter " not in capsys.readouterr().out


def test_an_old_game(old_game: Path, tmp_path: Path) -> None:
    found = report_of(old_game, tmp_path, "--seconds", "0.3")
    assert found["encoding"] == "json"
    assert found["episodes_truncated"] == 0
    assert any("older addon" in text for text in found["warnings"])


def test_a_game_that_breaks_off_is_reported_too(
    new_game: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(f'#!/bin/sh\nexec "{new_game}" "$@" --fault=nan --at=3\n')
    broken.chmod(0o755)
    report = tmp_path / "report.json"
    assert main(["godot", "probe", str(broken), "--json", str(report)]) == 2
    found = json.loads(report.read_text())
    assert "observation 'obs'[3] of agent 1 (policy1) is inf" in found["error"]
    assert found["steps"] == 0 or found["agent_steps"] > 0


def test_what_cannot_be_probed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["godot", "probe", str(tmp_path / "none")]) == 2
    assert main(["godot", "probe", str(tmp_path), "--seconds", "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_game_that_keeps_taking_memory_is_suspicious(new_game: Path) -> None:
    leaking = new_game.with_name("leaking")
    leaking.write_text(f'#!/bin/sh\nexec "{new_game}" "$@" --fault=leak --at=3\n')
    leaking.chmod(0o755)
    found = probe(Launch(leaking), 0.3)
    assert found["game_memory_growth_mb"] > 32
    assert any("memory grew by" in text for text in found["warnings"])


def test_masks_are_obeyed(new_game: Path) -> None:
    masked = new_game.with_name("masked")
    masked.write_text(f'#!/bin/sh\nexec "{new_game}" "$@" --kind=masked\n')
    masked.chmod(0o755)
    found = probe(Launch(masked), 0.3)
    assert found["spaces"][0]["action_space"][0]["masked"]
    assert found["error"] == ""


class FakeGame:
    """Steps with the numbers a test wants."""

    def __init__(self, space: dict[str, Any], agents: int = 2) -> None:
        spaces = read_spaces(space, {}, {}, trusted_images=True)
        self.table = AgentTable(tuple(AgentInfo(i, "p", spaces) for i in range(agents)))
        self.diagnostics = Diagnostics()

    def step(
        self, numbers: list[list[float]], reward: float = 1.0, state: int = 0, image: int = 0
    ) -> None:
        count = len(self.table)
        images = np.full(int(self.table.image_offsets[-1]), image, np.uint8)
        seen = Observations(self.table, np.array(numbers, np.float32).reshape(-1), images)
        self.diagnostics.add(
            0,
            StepResult(
                self.table,
                0,
                np.full(count, reward, np.float32),
                np.full(count, state, np.uint8),
                seen,
            ),
        )


def test_everything_suspicious_is_found() -> None:
    space = {
        "obs": {"size": [3], "space": "box", "low": -1, "high": 1},
        "near": {"size": 3, "space": "discrete"},
        "camera_2d": {"size": [2, 2, 3], "space": "box"},
    }
    game = FakeGame(space)
    for step in range(20):
        game.step([[0.5, step / 100, 3.0 - step, step % 5]] * 2)
    text = "\n".join(game.diagnostics.warnings())
    assert "p: observation 'obs' never changed at [0]" in text
    assert "p: observation 'obs' is out of its bounds at [2]: observed -16 to 3" in text
    assert "p: observation 'near' is out of its bounds at [0]: observed 0 to 4" in text
    assert "p: observation 'camera_2d' is all 0: the camera sees nothing" in text
    assert "every reward was 1" in text
    assert "no episode ended in 40 agent-steps" in text


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    game = FakeGame({"obs": {"size": [1], "space": "box"}})
    for step in range(20):
        game.step([[step / 20], [step / 20]], reward=step, state=TERMINATED * (step % 4 == 3))
    assert game.diagnostics.warnings() == []
    assert game.diagnostics.summary()["episodes"] == 10


def test_episodes_of_one_step_are_suspicious() -> None:
    game = FakeGame({"obs": {"size": [1], "space": "box"}})
    for step in range(20):
        game.step([[step], [step]], reward=step, state=TERMINATED)
    assert game.diagnostics.warnings() == [
        "every episode lasted one step: is `done` ever set back to false?"
    ]


def test_sparse_large_and_tiny_numbers_are_suspicious() -> None:
    game = FakeGame({"obs": {"size": [1], "space": "box"}}, agents=1)
    for step in range(2000):
        game.step([[step * 1e-6]], reward=250.0 * (step == 7), state=TERMINATED * (step % 9 == 8))
    assert game.diagnostics.warnings() == [
        "p: observation 'obs' is at most 0.001999; scale it to about -1 to 1",
        "only 1 of 2000 rewards were not 0; add smaller rewards on the way to the goal",
        "rewards are as large as 250; scale them to about -1 to 1",
    ]


def test_the_numbers() -> None:
    game = FakeGame({"obs": {"size": [3], "space": "box"}}, agents=1)
    for step, reward in enumerate([0.0, 1.0, 0.0, -2.0]):
        game.step([[0.5, step, -step]], reward=reward, state=TERMINATED * (step in (0, 3)))
    found = game.diagnostics.summary()
    assert found["observations"] == [
        {"policy": "p", "key": "obs", "size": 3, "min": -3.0, "max": 3.0, "constant": 1}
    ]
    assert (found["reward_mean"], found["reward_nonzero"]) == (-0.25, 0.5)
    assert found["reward_std"] == pytest.approx(np.std([0, 1, 0, -2]))
    assert (found["episode_length_min"], found["episode_length_max"]) == (1, 3)
