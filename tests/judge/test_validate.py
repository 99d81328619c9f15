"""Training runs: found wherever trainers put them, thresholds, NaN, plateaus."""

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from torch.utils.tensorboard import SummaryWriter

from estragon.cli import main
from estragon.judge.validate import Validation, find_run, read_series, validate_run
from estragon.support.errors import UserError

RISING = np.linspace(-10.0, 5.0, 40).tolist()
Writer = Callable[[Path, Sequence[float]], None]


def write_events(folder: Path, rewards: Sequence[float]) -> None:
    with SummaryWriter(str(folder / "tensorboard" / "PPO_1")) as writer:
        for step, reward in enumerate(rewards):
            writer.add_scalar("rollout/ep_rew_mean", reward, step)
            writer.add_scalar("train/loss", 1.0 / (step + 1), step)


def write_json_lines(folder: Path, rewards: Sequence[float]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"kind": "iteration", "episode_reward_mean": reward, "policies": {"p": {"x": 1.0}}}
        for reward in rewards
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "run.metrics.jsonl").write_text(lines + '{"being": "wri')


def write_csv(folder: Path, rewards: Sequence[float]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{i},{reward},seeker" for i, reward in enumerate(rewards)]
    (folder / "metrics.csv").write_text("\n".join(["episode,reward_mean,winner", *lines]) + "\n")


@pytest.mark.parametrize("write", [write_events, write_json_lines, write_csv])
def test_every_kind_of_file_anywhere_in_the_folder(write: Writer, tmp_path: Path) -> None:
    write(tmp_path / "run", RISING)
    found = validate_run(tmp_path / "run", min_reward=4.0)
    assert found.passed
    assert validate_run(tmp_path / "run", min_reward=5.0).passed is False
    assert {each.name: each.text for each in found.checks}["trend"] == "still improving"


def test_an_experiment_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for age, name in enumerate(("walk_1", "walk_2", "walk_2_more", "walking_1")):
        write_csv(Path("rl_training/logs") / name, RISING)
        os.utime(Path("rl_training/logs") / name, (1e9 + age, 1e9 + age))
    assert find_run("walk") == Path("rl_training/logs/walk_2")
    assert find_run("walk_1") == Path("rl_training/logs/walk_1")
    assert find_run("rl_training/logs/walk_1") == Path("rl_training/logs/walk_1")
    with pytest.raises(UserError, match="no run 'fly'"):
        find_run("fly")
    assert main(["judge", "validate", "--experiment", "walk", "--min_reward", "0"]) == 0


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    broken = [*RISING[:30], *[math.nan] * 10]
    write_events(tmp_path / "events", broken)
    write_csv(tmp_path / "table", broken)
    for name in ("events", "table"):
        found = validate_run(tmp_path / name)
        assert not found.passed
        assert "from value 31 on" in found.checks[0].text
    lines = tmp_path / "lines"
    lines.mkdir()
    rows = [{"policies": {"p": {"learner_stats": {"loss": x, "kl": None}}}} for x in (1, 2, None)]
    (lines / "run.metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = validate_run(lines).checks[0].text
    assert "learner_stats/loss from value 3 on (1 series)" in text


@pytest.mark.parametrize(
    ("rewards", "text", "trend"),
    [
        ([*RISING, *[5.0, 5.1] * 40], "plateau at 5.05", "plateau"),
        ([1.0, 1.1, 0.9] * 20, "no better than at the start", "plateau"),
        ([*RISING, *RISING[:10:-1]], "declining", "decline"),
        (RISING[:5], "too few", None),
    ],
)
def test_trends(rewards: list[float], text: str, trend: str | None, tmp_path: Path) -> None:
    write_csv(tmp_path, rewards)
    assert text in validate_run(tmp_path).checks[-1].text
    assert validate_run(tmp_path).passed
    if trend is not None:
        words = ["judge", "validate", "--experiment", str(tmp_path), "--fail_on", trend]
        assert main(words) == 1


def test_physics_times(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "ratio")) as writer:
        for step, value in enumerate((0.5, 1.5, 0.5)):
            name = "performance/physics_frame_time_ratio"
            writer.add_scalar(name, value, step)
    assert validate_run(tmp_path, max_physics_ms=17.0).passed
    assert not validate_run(tmp_path, max_physics_ms=16.0).passed
    write_csv(tmp_path / "none", RISING)
    found = validate_run(tmp_path / "none", max_physics_ms=1.0)
    assert found.passed
    assert "not measured" in found.checks[1].text


def test_any_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_events(tmp_path, RISING)
    words = ["judge", "validate", "--experiment", str(tmp_path), "--json", str(tmp_path / "v")]
    assert main([*words, "--require", "train/loss<=0.1"]) == 0
    assert main([*words, "--require", "train/loss<=0.1", "train/loss >= 0.5"]) == 1
    assert not Validation.read(tmp_path / "v").passed
    capsys.readouterr()
    for bad in ("train/los>=1", "train/loss=1", "train/loss<=x"):
        assert main([*words, "--require", bad]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_resumed_runs_are_read_in_order(tmp_path: Path) -> None:
    write_events(tmp_path / "a", RISING[20:])
    write_events(tmp_path / "b", RISING[:20])
    for age, name in enumerate("ba"):
        for path in (tmp_path / name).rglob("events*"):
            os.utime(path, (1e9 + age, 1e9 + age))
    assert read_series(tmp_path)["rollout/ep_rew_mean"] == pytest.approx(RISING)
