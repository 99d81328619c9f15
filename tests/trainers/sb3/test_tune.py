"""A search for hyper-parameters: trials, a report, and going on."""

import json
from pathlib import Path

import pytest

from estragon.cli import main
from tests.trainers.conftest import Game

STUDY = Path("logs/tune/study")


def tune(game: Path, *words: str) -> int:
    short = ["--timesteps", "64", "--slices", "4", "--n_epochs", "1", "--policy_layers", "8"]
    return main(["tune", "--env_path", str(game), *short, *words])


def test_trials_are_made_reported_and_gone_on_with(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(kind="discrete")
    assert tune(path, "--trials", "2", "--gamma", "0.9") == 0
    best = json.loads((STUDY / "best.json").read_text())
    assert best["sb3_gamma"] == 0.9
    assert best["sb3_n_epochs"] == 1
    assert 1e-5 <= best["sb3_learning_rate"] <= 3e-3
    assert "2 trials, 2 completed, 0 pruned" in (STUDY / "report.md").read_text()
    assert "best: " in capsys.readouterr().out
    # What was found is what the controller's file takes.
    (folder / ".rlcontroller").mkdir()
    (folder / ".rlcontroller" / "training_config.json").write_text(json.dumps(best))
    assert main(["train", "sb3", "--env_path", str(path), "--timesteps", "64"]) == 0
    told = capsys.readouterr().err
    assert "not used: sb3_n_epochs" not in told

    assert tune(path, "--trials", "1", "--gamma", "0.9") == 0
    assert "3 trials" in (STUDY / "report.md").read_text()
    assert tune(path, "--trials", "1", "--gamma", "0.8") == 2
    assert "study 'study' is of another task" in capsys.readouterr().err


def test_what_makes_no_sense(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--trials", "0"]) == 2
    assert "expected at least 1" in capsys.readouterr().err
