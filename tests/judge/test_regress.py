"""Verdicts: right signs, noise and tolerance, pairs, baselines and their history."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from estragon.cli import main
from estragon.judge import statistics
from estragon.judge.evaluation_file import Evaluation
from estragon.judge.regress import Finding, RegressionRules, Verdict, check_regression, describe
from estragon.support.errors import UserError
from tests.judge.staging import evaluation, segments

RANDOM = np.random.default_rng(7)
NOISE = RANDOM.normal(0.0, 1.0, 80)
OTHER_SEEDS = list(range(1000, 1080))


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 999)


def found(current: Evaluation, baseline: Evaluation, **rules: Any) -> dict[str, Finding]:
    verdict = check_regression(current, baseline, RegressionRules(**rules))
    assert verdict.passed == (not verdict.regressions)
    return {each.name: each for each in verdict.findings}


@pytest.mark.parametrize("level", [-20.0, 0.0, 20.0], ids=["negative", "zero", "positive"])
@pytest.mark.parametrize("paired", [True, False], ids=["paired", "independent"])
def test_worse_is_lower_whatever_the_sign_of_the_baseline(level: float, paired: bool) -> None:
    before = evaluation(NOISE + level)
    seeds = None if paired else OTHER_SEEDS
    changes = {-5.0: "regression", 5.0: "improved"}
    for change, status in changes.items():
        now = evaluation(RANDOM.permutation(NOISE) + level + change, seeds=seeds)
        finding = found(now, before)["mean_reward"]
        assert finding.status == status
        assert finding.method == ("paired by seed" if paired else "independent episodes")
        assert finding.current - finding.baseline == pytest.approx(change)


def test_a_difference_within_the_tolerance_is_no_regression() -> None:
    before, now = evaluation(NOISE + 20.0), evaluation(NOISE + 19.0)
    assert found(now, before)["mean_reward"].status == "ok"
    assert found(now, before, tolerance=0.01)["mean_reward"].status == "regression"
    assert found(now, before, given={"mean_reward": "higher:0.01"})["mean_reward"].status == (
        "regression"
    )


def test_a_difference_within_the_noise_is_no_regression() -> None:
    """Six episodes that differ much: 30% lower, but that is what chance does."""
    before = evaluation([0.0, 20.0, 0.0, 20.0, 0.0, 20.0])
    now = evaluation([0.0, 14.0, 0.0, 14.0, 0.0, 14.0], seeds=range(10, 16))
    finding = found(now, before)["mean_reward"]
    assert finding.status == "ok"
    assert finding.detectable is not None
    assert finding.detectable > 3.0  # which is why


def test_identical_episodes() -> None:
    before = evaluation(NOISE, success=NOISE > 0.0)
    verdict = check_regression(before, before, RegressionRules())
    by_name = {each.name: each for each in verdict.findings}
    assert verdict.passed
    assert by_name["mean_reward"].status == by_name["success_rate"].status == "identical"
    share = by_name["mean_reward"].detectable_share
    assert share is not None
    assert 0.05 < share < 0.15
    assert "identical" in describe(verdict)


def test_constant_rewards() -> None:
    before = evaluation([5.0] * 30, seeds=range(30))
    worse = evaluation([4.0] * 30, seeds=range(100, 130))
    assert found(before, before)["mean_reward"].status == "identical"
    assert found(worse, before)["mean_reward"].status == "regression"
    assert found(before, worse)["mean_reward"].status == "improved"
    again = evaluation([5.0] * 30, seeds=range(100, 130))
    assert found(again, before)["mean_reward"].status == "ok"


def test_shorter_episodes_are_not_worse_unless_asked_for() -> None:
    lengths = [int(50 + 5 * each) for each in NOISE]
    before = evaluation(NOISE, lengths=lengths)
    now = evaluation(NOISE, lengths=[each - 20 for each in lengths])
    name = "mean_episode_length"
    assert found(now, before)[name].status == "changed"
    assert check_regression(now, before, RegressionRules()).passed
    assert found(now, before, given={name: "higher"})[name].status == "regression"
    assert found(now, before, given={name: "lower"})[name].status == "improved"
    assert found(now, before, given={name: "same"})[name].status == "regression"
    assert name not in found(now, before, given={name: "ignore"})


def test_a_judged_metric_that_is_gone_is_not_passed_over() -> None:
    before, now = evaluation(NOISE, success=NOISE > 0.0), evaluation(NOISE)
    with pytest.raises(UserError, match="success_rate is in the baseline, but not in"):
        check_regression(now, before, RegressionRules())
    assert "success_rate" not in found(now, before, given={"success_rate": "ignore"})


def test_one_episode_is_too_little() -> None:
    verdict = check_regression(evaluation([1.0]), evaluation([2.0], seeds=[7]), RegressionRules())
    assert verdict.findings[0].status == "not compared"
    assert "too few episodes" in verdict.notes[-1]


def test_several_metrics_share_one_risk() -> None:
    """One of twenty metrics at p = 0.03 is what chance does."""
    metrics = {f"metric{i}": RANDOM.normal(0.0, 1.0, 80) for i in range(20)}
    before = evaluation(NOISE, metrics=metrics)
    changed = dict(metrics)
    changed["metric3"] = metrics["metric3"] - 0.5 + RANDOM.normal(0.0, 2.0, 80)
    now = evaluation(NOISE, metrics=changed)
    alone = {"mean_reward": "ignore", "metric3": "higher:0"}
    p_alone = found(now, before, given=alone)["metric3"].p_value
    every = dict.fromkeys(metrics, "higher:0")
    p_together = found(now, before, given=every)["metric3"].p_value
    assert p_alone is not None
    assert p_together is not None
    assert p_together == pytest.approx(min(1.0, 21 * p_alone))  # all others are identical


def test_episodes_are_paired_by_seed_in_any_order() -> None:
    before = evaluation(NOISE)
    order = RANDOM.permutation(80)
    now = evaluation(NOISE[order], seeds=[int(each) for each in order])
    assert found(now, before)["mean_reward"].status == "identical"


def test_other_settings_are_not_paired() -> None:
    before, now = evaluation(NOISE), evaluation(NOISE)
    now.arguments = {"copies": "4"}
    assert found(now, before)["mean_reward"].method == "independent episodes"
    now = evaluation(NOISE)
    now.episodes[3].parameters = {"wind": 1.0}
    assert found(now, before)["mean_reward"].method == "independent episodes"


def test_times_are_relative_to_the_calibration_and_judged_on_request() -> None:
    before = evaluation(NOISE, segments=segments())
    half_as_fast = evaluation(NOISE, segments=segments(cpu_ms=4, slowest_ms=6, calibration_ms=2))
    spike = evaluation(NOISE, segments=segments(slowest_ms=20.0))
    slower = evaluation(NOISE, segments=segments(cpu_ms=3.0))
    by_name_too = {"step_cpu_ms": "lower:0.25"}
    assert found(half_as_fast, before, given=by_name_too)["step_cpu_ms"].status == "ok"
    assert found(spike, before)["slowest_step_ratio"].status == "worse"
    assert check_regression(spike, before, RegressionRules()).passed
    by_name = found(spike, before, timing=True)
    assert by_name["slowest_step_ratio"].status == "regression"
    assert by_name["step_cpu_ms"].status == "ok"
    assert found(slower, before, timing=True)["step_cpu_ms"].status == "worse"
    assert found(slower, before, given=by_name_too)["step_cpu_ms"].status == "regression"


def test_a_leak_and_a_crash_are_regressions() -> None:
    before = evaluation(NOISE, segments=segments())
    leak = evaluation(NOISE, segments=segments(leak_mb=2.0))
    assert found(leak, before)["memory_growth_mb"].status == "regression"
    little = evaluation(NOISE, segments=segments(leak_mb=0.05))
    assert found(little, before)["memory_growth_mb"].status == "ok"
    crashed = evaluation(NOISE)
    crashed.game_crashes = 1
    assert found(crashed, before)["game_crashes"].status == "regression"
    assert found(before, crashed)["game_crashes"].status == "improved"


MEANS = {"mean_reward": -5.0, "mean_episode_length": 100.0, "success_rate": 0.0}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"mean_reward": -5.4}, 0),
        ({"mean_reward": -6.0}, 1),
        ({"mean_reward": -4.0}, 0),
        ({"mean_episode_length": 10.0}, 0),
        ({"success_rate": 0.5}, 0),
    ],
)
def test_files_with_means_only(changes: dict[str, float], code: int, tmp_path: Path) -> None:
    (tmp_path / "before.json").write_text(json.dumps(MEANS))
    (tmp_path / "now.json").write_text(json.dumps(MEANS | changes))
    words = ["--current", str(tmp_path / "now.json"), "--baseline", str(tmp_path / "before.json")]
    assert main(["judge", "regress", *words]) == code


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, now, verdict = (tmp_path / name for name in ("b.json", "c.json", "v.json"))
    evaluation(NOISE + 20.0, success=NOISE < 9.0).write(before)
    evaluation(NOISE + 10.0, success=NOISE < 9.0).write(now)
    words = ["judge", "regress", "--baseline", str(before), "--current"]
    assert main([*words, str(before)]) == 0
    assert "PASS" in capsys.readouterr().out
    assert main([*words, str(now), "--json", str(verdict)]) == 1
    assert "FAIL: regression in mean_reward\n" in capsys.readouterr().out
    assert [each.name for each in Verdict.read(verdict).regressions] == ["mean_reward"]
    assert main([*words, str(now), "--metric", "mean_reward=ignore"]) == 0
    capsys.readouterr()
    for bad in (["x"], ["x=higher"], ["mean_reward=up"], ["mean_reward=higher:-1"]):
        assert main([*words, str(now), "--metric", *bad]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_baseline_keeps_its_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, now = tmp_path / "b.json", tmp_path / "c.json"
    new = evaluation(NOISE)
    new.build.commit, new.machine, new.command = "abc", "a machine", "estragon judge evaluate"
    new.write(now)
    words = ["judge", "regress", "--current", str(now), "--baseline", str(before), "--update"]
    assert main(words) == 2
    assert "--reason" in capsys.readouterr().err
    assert main([*words, "--reason", "first"]) == 0
    assert main([*words, "--reason", "faster marbles"]) == 0
    history = Evaluation.read(before).baseline
    assert [each.reason for each in history] == ["faster marbles", "first"]
    assert (history[0].commit, history[0].machine, history[0].command) == (
        "abc",
        "a machine",
        "estragon judge evaluate",
    )
    assert history[0].date
    assert msgspec.structs.replace(Evaluation.read(before), baseline=[]) == Evaluation.read(now)
    assert main(words[:-1]) == 0
