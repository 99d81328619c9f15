"""`estragon bench` writes the figures as documented."""

import itertools
import json
import math
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from estragon.cli import main
from estragon.tag.arenas import Arenas
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import OBS, load_rules

KEYS = {"name", "value", "unit", "arenas", "agents", "repeat", "note"}
TRAINING = [
    "train_agent_steps_per_s",
    "sb3_default_agent_steps_per_s",
    "sb3_tuned_agent_steps_per_s",
    "sb3_with_ours_agent_steps_per_s",
    "train_over_sb3_default",
    "train_over_sb3_tuned",
    "train_over_sb3_with_ours",
    "train_agent_steps_per_s_256",
    "train_agent_steps_per_s_1024",
    "train_agent_steps_per_s_4096",
    "train_growth_256_to_4096",
    "seconds_to_strength",
    "seconds_to_strength_former",
    "seconds_to_strength_bots_only",
    "sb3_with_ours_seconds_to_strength",
    "sb3_tuned_seconds_to_strength",
    "seconds_to_strength_over_former",
    "sb3_tuned_over_ours_seconds_to_strength",
    "sb3_tuned_over_ours_seconds_to_strength_bots_only",
    "sb3_with_ours_over_ours_seconds_to_strength",
    "sb3_with_ours_over_ours_seconds_to_strength_bots_only",
]
if sys.platform != "win32":
    TRAINING.append("train_peak_memory_mb")


def test_a_short_run_leaves_every_figure(tmp_path: Path) -> None:
    output = tmp_path / "latest.json"
    assert main(["bench", "engine", "--seconds", "0.05", "--output", str(output)]) == 0
    figures = json.loads(output.read_text())
    assert all(set(figure) == KEYS and figure["value"] > 0 for figure in figures)
    assert figures[0]["name"] == "engine_agent_steps_per_s"
    arenas = [f["arenas"] for f in figures if f["name"].startswith("engine_agent_steps_per_s_")]
    assert arenas == sorted(arenas)
    assert (arenas[0], arenas[-1]) == (64, 8192)


def test_the_godot_figures_are_measured_in_godot(tmp_path: Path) -> None:
    output = tmp_path / "godot.json"
    assert main(["bench", "godot", "--seconds", "0.2", "--output", str(output)]) == 0
    figures = json.loads(output.read_text())
    assert [figure["arenas"] for figure in figures] == [1, 1, 1, 8, 8, 8, 32, 32, 32]
    assert all(set(figure) == KEYS and figure["value"] > 0 for figure in figures)


@pytest.mark.slow
def test_policies_in_godot_are_measured_beside_onnxruntime(tmp_path: Path) -> None:
    output = tmp_path / "onnx.json"
    assert main(["bench", "onnx", "--seconds", "0.05", "--output", str(output)]) == 0
    figures = json.loads(output.read_text())
    assert all(set(figure) == KEYS and figure["value"] > 0.0 for figure in figures)
    names = [figure["name"] for figure in figures]
    assert names[0] == "onnx_mlp_84_64_64_3_1"
    assert names[-1] == "plain_loops_mlp_84_64_64_3"
    assert len(names) == 17


@pytest.mark.prove
def test_live_play_is_measured_beside_the_game_without_a_wire(tmp_path: Path) -> None:
    output = tmp_path / "live.json"
    assert main(["bench", "live", "--seconds", "0.3", "--output", str(output)]) == 0
    figures = json.loads(output.read_text())
    sides = ["bare", "random", "inference", "learning", "inference_over_bare"]
    sides = [f"live_{side}_1" for side in [*sides, "learning_over_inference"]]
    assert [figure["name"] for figure in figures] == [*sides, "live_json"]
    assert all(set(figure) == KEYS and figure["value"] > 0 for figure in figures)


@pytest.mark.prove
def test_games_are_measured_beside_themselves_and_the_other_client(tmp_path: Path) -> None:
    output = tmp_path / "games.json"
    assert main(["bench", "games", "--seconds", "0.3", "--output", str(output)]) == 0
    figures = json.loads(output.read_text())
    sides = ["bare", "ours", "ours_json", "incumbent_60", "incumbent_8"]
    sides += ["ours_over_bare", "ours_over_incumbent", "ours_json_over_incumbent"]
    sides += ["parallel_1", "parallel_2"]
    names = [f"marble_{side}" for side in sides] + ["lookout_drawn"]
    assert [figure["name"] for figure in figures] == names
    assert all(set(figure) == KEYS and figure["value"] > 0 for figure in figures)


@pytest.mark.prove
def test_learning_is_measured_beside_the_other_client(tmp_path: Path) -> None:
    output = tmp_path / "trainers.json"
    assert main(["bench", "trainers", "--seconds", "0.3", "--output", str(output)]) == 0
    figures = json.loads(output.read_text())
    sides = ["ours", "incumbent_60", "incumbent_8", "ours_over_incumbent"]
    assert [figure["name"] for figure in figures] == [f"ppo_light_{side}" for side in sides]
    assert all(set(figure) == KEYS and figure["value"] > 0 for figure in figures)


@pytest.mark.prove
def test_training_is_measured_beside_stable_baselines(tmp_path: Path) -> None:
    output = tmp_path / "training.json"
    assert main(["bench", "training", "--seconds", "0.01", "--output", str(output)]) == 0
    figures = {figure["name"]: figure for figure in json.loads(output.read_text())}
    assert list(figures) == TRAINING
    for figure in figures.values():
        assert set(figure) == KEYS
        assert math.isfinite(figure["value"])
        assert figure["value"] > 0
    for name in ("seconds_to_strength", "sb3_tuned_seconds_to_strength"):
        assert figures[name]["value"] == pytest.approx(0.9)
        assert "not within 1 s" in figures[name]["note"]


def test_stable_baselines_sees_and_moves_as_our_policy_does() -> None:
    rules = load_rules()
    policy = FrozenPolicy.untrained(rules, "hider", seed=3)
    observations = Arenas(64, rules=rules, seed=1).reset()
    seen = np.ascontiguousarray(observations[:, 1])
    frame = import_module("benchmarks._sb3").HeadingFrame(rules.observation.size)
    features = frame.see(observations, np.ones(len(seen), dtype=np.int64))
    np.testing.assert_allclose(features, policy._turn(seen), atol=1e-6)
    scores = policy.scores(seen)
    picks = np.stack([scores[:, :-2].argmax(axis=1), scores[:, -2] > 0.0], axis=1).astype(np.int64)
    assert len(set(picks[:, 0])) > 1
    actions = frame.act(picks, seen[:, OBS.forward : OBS.forward + 2])
    np.testing.assert_allclose(actions, policy.act(seen), atol=1e-6)


def test_learning_is_timed_until_every_pupil_is_strong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    strength = import_module("benchmarks._strength")
    monkeypatch.setattr(strength, "share_of_wins", lambda _task, _role, share: share)
    seconds = itertools.count()
    monkeypatch.setattr(strength, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))

    def pupil(role: str, gain: float) -> Any:
        """Wins that much more of its matches after every update, which takes a second."""
        updates: list[None] = []
        return strength.Pupil(
            None, lambda: updates.append(None), lambda: {role: gain * len(updates)}
        )

    soon, late = pupil("seeker", 0.2), pupil("hider", 0.1)
    learned = strength.learn_until_strong("both", [soon, late], cap_sec=60.0)
    assert (soon.seconds, late.seconds) == (4, 7)  # judged every second, after whole updates
    assert learned == (11, True, "seeker 80%, hider 70%")
    assert len(capsys.readouterr().err.splitlines()) == 7
    learned = strength.learn_until_strong("never", [pupil("seeker", 0.01)], cap_sec=7.0)
    assert learned == (7.0, False, "seeker 8%")
