"""Evaluations: the same episodes for the same seed, of every kind of model, with provenance."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.cli import main
from estragon.judge.evaluation_file import Evaluation
from estragon.support import paths
from tests.envs.conftest import program
from tests.godot.addon.test_episodes import seed_of

MARBLE = ["--game", str(paths.godot_project()), "--scene", "res://examples/marble/marble.tscn"]


def evaluate(output: Path, *words: str) -> Evaluation:
    assert main(["judge", "evaluate", "--output", str(output), *words]) == 0
    return Evaluation.read(output)


def episodes(found: Evaluation) -> list[tuple[Any, ...]]:
    return [(each.seed, each.reward, each.length, each.success) for each in found.episodes]


@pytest.mark.skipif(sys.platform == "win32", reason="stages a shell script")
@pytest.mark.parametrize("name", ["new_game", "old_game"])
def test_any_game(name: str, tmp_path: Path) -> None:
    """Also one with an older addon, which tells neither seeds nor success."""
    words = ["--model", "random", "--game", str(program(tmp_path, name)), "--episodes", "5"]
    found = evaluate(tmp_path / "a.json", *words, "--seed", "3")
    assert [(each.agent, each.number) for each in found.episodes] == [
        (str(agent), number) for number in range(3) for agent in range(2)
    ]
    if name == "new_game":
        seeds = [each.seed for each in found.episodes]
        assert seeds == [seed_of(3, agent, number) for number in range(3) for agent in range(2)]
    else:
        assert {each.seed for each in found.episodes} == {None}
    assert found.success_rate is None
    assert found.mean_episode_length == np.mean([each.length for each in found.episodes])
    again = evaluate(tmp_path / "b.json", *words, "--seed", "3")
    assert episodes(again) == episodes(found)
    other = evaluate(tmp_path / "c.json", *words, "--seed", "4")
    assert set(found.keys()) == set(again.keys())
    assert not set(found.keys()) & set(other.keys())
    assert found.build.digest == again.build.digest != ""
    compare = ["judge", "regress", "--baseline", str(tmp_path / "a.json"), "--current"]
    assert main([*compare, str(tmp_path / "b.json")]) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="stages a shell script")
def test_a_crash_is_counted_and_its_episodes_are_not(tmp_path: Path) -> None:
    game = program(tmp_path, "new_game")
    words = ["--model", "random", "--game", str(game), "--episodes", "8"]
    found = evaluate(tmp_path / "a.json", *words, "--argument", "fault=die", "at=7")
    assert found.game_crashes > 0
    assert found.arguments == {"fault": "die", "at": "7"}


def test_a_godot_game_with_its_performance(tmp_path: Path, godot: Path) -> None:
    words = ["--model", "random", *MARBLE, "--episodes", "8", "--argument", "copies=8"]
    found = evaluate(tmp_path / "a.json", *words)
    assert len(found.episodes) == 8
    assert len({each.seed for each in found.episodes}) == 8
    assert found.success_rate is not None
    assert {name for each in found.episodes for name in each.metrics} == {"score"}
    assert sum(each.steps for each in found.segments) == max(e.length for e in found.episodes)
    if sys.platform == "linux":
        assert all((each.step_cpu_ms or 0.0) > 0.0 for each in found.segments)
        assert all((each.step_cpu_ms or 0.0) <= each.step_ms * 1.1 for each in found.segments)
        assert all(20.0 < (each.memory_mb or 0.0) < 2000.0 for each in found.segments)
    again = evaluate(tmp_path / "b.json", *words)
    assert episodes(again) == episodes(found)
    assert found.build.commit == again.build.commit


def test_a_game_with_the_http_api_says_how_fast_it_is(tmp_path: Path, godot: Path) -> None:
    words = ["--preset", "vr_locomotion", "--wire", "http", "--episodes", "2"]
    limits = ["--argument", "parameter.max_sec=2", "parameter.rigs=2"]
    found = evaluate(tmp_path / "a.json", "--model", "random", *words, *limits)
    assert len(found.episodes) == 2
    assert {"physics_process_time", "static_memory_usage"} <= set(found.reported)


@pytest.mark.parametrize("model", ["bot:chaser", "random", "champion_seeker.onnx"])
def test_tag(model: str, tmp_path: Path) -> None:
    path = paths.policies_folder() / model
    words = ["--game", "tag", "--model", str(path) if path.exists() else model]
    found = evaluate(tmp_path / "a.json", *words, "--episodes", "40", "--seed", "5")
    assert len(found.episodes) == 40
    assert found.opponent == "bot:evader"
    rate = np.mean([bool(each.success) for each in found.episodes])
    assert found.success_rate == rate
    assert rate < 0.2 if model == "random" else rate > 0.05
    batch = evaluate(tmp_path / "b.json", *words, "--episodes", "10", "--seed", "5")
    assert episodes(batch) == episodes(found)[:10]
    assert bool(found.model_digest) == path.exists()


def test_tag_as_hider_is_the_same_match(tmp_path: Path) -> None:
    words = ["--game", "tag", "--episodes", "20"]
    one = evaluate(tmp_path / "a.json", *words, "--model", "bot:chaser")
    two = evaluate(
        tmp_path / "b.json",
        *words,
        *("--model", "bot:evader", "--opponent", "bot:chaser", "--role", "hider"),
    )
    assert [each.success for each in two.episodes] == [not each.success for each in one.episodes]
    assert [each.length for each in two.episodes] == [each.length for each in one.episodes]


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "random"],
        ["--model", "random", "--game", "nowhere"],
        ["--model", "random", *MARBLE, "--argument", "copies"],
        ["--model", "random", *MARBLE, "--episodes", "0"],
        ["--model", "random", *MARBLE, "--seed", "-1"],
        ["--model", "bot:nobody", "--game", "tag"],
    ],
)
def test_bad_options(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "evaluate", "--output", str(tmp_path / "e.json"), *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="stages a shell script")
def test_episodes_that_never_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = program(tmp_path, "new_game")
    words = ["--model", "random", "--game", str(game), "--output", str(tmp_path / "e.json")]
    assert main(["judge", "evaluate", *words, "--max_steps", "2"]) == 2
    assert "--max_steps" in capsys.readouterr().err
    found = evaluate(tmp_path / "e.json", *words[:4], "--max_steps", "20", "--episodes", "50")
    assert not found.complete
