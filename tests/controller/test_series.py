"""Metrics files: read as they grow, damaged or not, and thinned without losing peaks."""

import json
from pathlib import Path

import numpy as np
import pytest

from estragon.controller.series import MetricsFile, Points, smooth, thin
from estragon.support.errors import UserError
from estragon.trainers.metrics import line_of


def row(step: int, reward: float | None, lesson: str = "") -> dict[str, object]:
    found: dict[str, object] = {"kind": "iteration", "timesteps_total": step}
    found |= {"episode_reward_mean": reward, "custom_metrics": {"a b": step / 2}}
    found["policies"] = {"left": {"learner_stats": {"entropy": 1.5}, "learner": {"entropy": 1.5}}}
    return found | ({"lesson_name": lesson} if lesson else {})


def test_rows_are_read_as_they_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "run.metrics.jsonl"
    file = MetricsFile(path)
    assert file.points("episode_reward_mean").x.size == 0
    lines = [json.dumps(row(step, None if step == 2 else step)) + "\n" for step in range(4)]
    path.write_text("".join(lines[:3]) + lines[3][:20])
    assert file.points("episode_reward_mean").y.tolist() == [0.0, 1.0]
    with path.open("a") as stream:
        stream.write(lines[3][20:])
    assert file.points("episode_reward_mean").x.tolist() == [0.0, 1.0, 3.0]
    assert file.points("policies/left/learner_stats/entropy").y.tolist() == [1.5] * 4
    assert file.points("custom_metrics/a b").y.tolist() == [0.0, 0.5, 1.0, 1.5]
    names = file.names()
    assert "policies/left/learner_stats/entropy" in names
    assert not [name for name in names if "learner/" in name]
    path.write_text(lines[1])  # a new run under the same name
    assert file.points("episode_reward_mean").y.tolist() == [1.0]
    assert [each["timesteps_total"] for each in file.last_rows(5)] == [1]


def test_logs_and_tables_are_read_too(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text(f"hello\n{line_of(row(5, 2.0))}\nWARNING: x\n{line_of(row(6, 3.0))}\n")
    assert MetricsFile(log).points("episode_reward_mean").y.tolist() == [2.0, 3.0]
    table = tmp_path / "metrics.csv"
    table.write_text(
        "episode,winner,agent_steps,reward_mean\n1,seeker,10,0.5\n2,hider,20,\n3,x,30,1\n"
    )
    file = MetricsFile(table)
    assert file.names() == ["episode", "agent_steps", "reward_mean"]
    assert file.points("reward_mean").x.tolist() == [10.0, 30.0]
    assert file.last_rows(1)[0]["winner"] == "x"


def test_lessons_are_found(tmp_path: Path) -> None:
    path = tmp_path / "run.metrics.jsonl"
    lessons = ["near", "near", "far", "far"]
    rows = [row(step, 0.0, lesson) for step, lesson in enumerate(lessons)]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    assert MetricsFile(path).lessons() == [(0.0, "near"), (2.0, "far")]


def test_garbage_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "run.metrics.jsonl"
    path.write_bytes(b"\xff\xfe garbage\n")
    assert MetricsFile(path).names() == []
    with pytest.raises(UserError, match=r"run\.metrics\.jsonl: not the metrics"):
        MetricsFile(path).points("episode_reward_mean")


def test_thinning_keeps_every_peak() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=100_000)
    y[54_321], y[99_999] = 50.0, -50.0
    points = thin(Points(np.arange(100_000.0), y))
    assert len(points.x) <= 1000
    assert (points.y.max(), points.y.min()) == (50.0, -50.0)
    assert (np.diff(points.x) > 0).all()
    few = Points(np.arange(5.0), np.arange(5.0))
    assert thin(few) is few


def test_smoothing_is_a_running_mean() -> None:
    points = Points(np.arange(10.0), np.arange(10.0))
    assert smooth(points, 0.2).y.tolist() == [0.0, *np.arange(0.5, 9.0)]
    assert smooth(points, 0.0) is points
