"""Metric lines: the controller's schema, in JSON that every reader takes."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estragon.trainers.controller import RunRecord
from estragon.trainers.metrics import (
    PREFIX,
    Counters,
    Episodes,
    Metrics,
    iteration_metric,
    without_nan,
)
from tests.trainers.staging import OF_A_POLICY, OF_AN_ITERATION, read_metrics

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def an_iteration() -> dict[str, Any]:
    left, right = Episodes(), Episodes()
    left.add(1.0, 10, {"hits": 2, "won": True, "name": "x", "seed": 5})
    left.add(3.0, 20, {"hits": 4})
    right.add(-5.0, 30, {"hits": 9})
    return iteration_metric(
        Counters(iteration=2, timesteps=200, env_steps=100, episodes=7, checkpoints=1),
        {"left": left, "right": right},
        {"left": {"vf_loss": math.nan, "entropy": 1.5}, "still": {}},
        env_steps=50,
        seconds=0.5,
        total_seconds=2.0,
    )


def test_an_iteration_in_the_controllers_words() -> None:
    metric = without_nan(an_iteration())
    assert set(metric) == OF_AN_ITERATION
    assert metric["kind"] == "iteration"
    assert metric["episodes_this_iter"] == 3
    assert metric["episode_reward_mean"] == pytest.approx(-1.0 / 3.0)
    assert (metric["episode_reward_min"], metric["episode_reward_max"]) == (-5.0, 3.0)
    assert metric["env_throughput"] == 100.0
    assert metric["num_agent_steps_trained"] == 200
    assert metric["custom_metrics"] == {"hits": 5.0, "won": 1.0}
    assert set(metric["policies"]) == {"left", "right", "still"}
    left, still = metric["policies"]["left"], metric["policies"]["still"]
    assert set(left) == OF_A_POLICY
    assert left["learner_stats"] == left["learner"] == {"vf_loss": None, "entropy": 1.5}
    assert left["custom_metrics"] == {"hits": 3.0, "won": 1.0}
    assert still["reward_mean"] is None
    assert still["completed_episodes"] == 0


@settings(max_examples=20)
@given(VALUES)
def test_whatever_is_told_is_json(value: Any) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(json.dumps(without_nan(value), allow_nan=False), parse_constant=refuse)


def test_numbers_of_numpy_are_numbers() -> None:
    told = {"a": np.float32(0.5), "b": np.float64("nan"), "c": [np.int64(3), np.array(math.inf)]}
    assert without_nan(told) == {"a": 0.5, "b": None, "c": [3, None]}


@pytest.mark.parametrize("wanted", [True, False])
def test_lines_are_printed_where_somebody_reads_them(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    wanted: bool,
) -> None:
    monkeypatch.setenv("CONTROLLER_METRICS", "controller" if wanted else "")
    record = RunRecord(tmp_path / "run.json", "x", {})
    Metrics([record]).emit(an_iteration())
    out = capsys.readouterr().out
    assert out.startswith(PREFIX) == wanted
    assert len(read_metrics(out)) == wanted
    kept = json.loads(record.metrics_path.read_text())
    assert kept["training_iteration"] == 2


def test_metrics_that_cannot_be_kept_are_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = RunRecord(tmp_path / "run.json", "x", {})
    record.metrics_path.mkdir()
    metrics = Metrics([record])
    metrics.emit(an_iteration())
    metrics.emit(an_iteration())
    assert capsys.readouterr().err.count("WARNING: no more metrics: cannot write") == 1


def test_episodes_of_nobody_are_no_numbers() -> None:
    nobody = Episodes()
    assert math.isnan(nobody.reward_mean)
    assert all(math.isnan(value) for value in nobody.as_metric().values())
    assert nobody.custom_means() == {}
