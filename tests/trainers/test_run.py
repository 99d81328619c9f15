"""The run loop of every trainer: limits, stop requests, failures, records, exit codes."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from estragon.support.errors import UserError
from estragon.trainers.controller import Controller
from estragon.trainers.metrics import Counters, Episodes
from estragon.trainers.run import Run, StopLimits, new_run_folder

STEPS = 10


class FakeLearner:
    """Makes 10 steps and one episode, of reward 1, 2, 3 …, per iteration."""

    resume_flag: ClassVar[str] = "--resume"
    failures: ClassVar[tuple[type[Exception], ...]] = (ZeroDivisionError,)

    def __init__(self, act: Callable[[int], object] = lambda _: None, first: int = 0) -> None:
        self.counters = Counters(iteration=first, timesteps=first * STEPS)
        self._act = act

    def train(self, run: Run) -> None:
        while not run.is_over():
            self.counters.iteration += 1
            self.counters.timesteps += STEPS
            self.counters.env_steps += STEPS // 2
            self._act(self.counters.iteration)
            episodes = Episodes()
            episodes.add(float(self.counters.iteration), 3, {"score": 4})
            run.end_iteration({"policy": episodes}, {}, trained=True, checkpoint=True)

    def save_checkpoint(self, folder: Path) -> Path:
        if self.counters.iteration == 2:
            raise UserError("cannot write it")
        self.counters.checkpoints += 1
        return folder / f"checkpoint_{self.counters.iteration}"

    def save(self, folder: Path) -> Path:
        path = folder / "model.zip"
        path.touch()
        return path

    def export(self, saved: Path) -> dict[str, str]:
        return {"onnx": "policy.onnx"}


def execute(learner: FakeLearner, limits: StopLimits) -> tuple[int, dict[str, Any]]:
    """The exit code and the manifest."""
    controller = Controller()
    with new_run_folder(Path("logs"), "x", controller) as folder:
        code = Run(learner, folder, controller, "x", limits=limits, about={"a": 1}).execute()
        return code, json.loads((folder / "run.json").read_text())


@pytest.mark.parametrize(
    ("limits", "iterations"),
    [
        (StopLimits(timesteps=3 * STEPS), 3),
        (StopLimits(timesteps=3 * STEPS - 1, iterations=5), 3),
        (StopLimits(iterations=2), 2),
        (StopLimits(reward=9.0), 4),
        (StopLimits(seconds=0.0), 0),
    ],
)
def test_limits_count_from_the_start_of_the_run(
    folder: Path, limits: StopLimits, iterations: int
) -> None:
    code, manifest = execute(FakeLearner(first=5), limits)
    assert code == 0
    assert manifest["status"] == "finished"
    assert manifest["timesteps"] == (5 + iterations) * STEPS
    assert manifest["episodes"] == iterations
    assert manifest["onnx"] == "policy.onnx"
    assert Path(manifest["model"]).name == "model.zip"


def test_metrics_and_warnings(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTROLLER_METRICS", "1")
    (folder / ".rlcontroller").mkdir()
    assert execute(FakeLearner(), StopLimits(iterations=3))[0] == 0
    (path,) = (folder / ".rlcontroller" / "runs").glob("*_x.metrics.jsonl")
    metrics = [json.loads(line) for line in path.read_text().splitlines()]
    assert [metric["training_iteration"] for metric in metrics] == [1, 2, 3]
    assert [metric["checkpoints"] for metric in metrics] == [1, 1, 2]
    assert [metric["env_steps_this_iter"] for metric in metrics] == [STEPS // 2] * 3
    assert metrics[-1]["timesteps_total"] == 3 * STEPS
    record = json.loads(path.with_name(path.name.replace(".metrics.jsonl", ".json")).read_text())
    assert [Path(each).name for each in record["checkpoints"]] == ["checkpoint_1", "checkpoint_3"]
    out, err = capsys.readouterr()
    assert "iteration 3: 30 steps, 3 episodes, reward 3.000, length 3.0, score 4.000" in out
    assert out.count("@METRIC") == 3
    assert "WARNING: no checkpoint at 20 steps: cannot write it" in err


def test_a_stop_file_and_an_interrupt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".rlcontroller").mkdir()
    stop = folder / ".rlcontroller" / "STOP"
    stop.touch()  # of an earlier run

    def touch(iteration: int) -> None:
        if iteration == 2:
            stop.touch()

    code, manifest = execute(FakeLearner(touch), StopLimits(seconds=60.0))
    assert (code, manifest["status"]) == (0, "stopped")
    assert f"stopped; resume with --resume {manifest['model']}" in capsys.readouterr().out

    def interrupt(iteration: int) -> None:
        if iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    code, manifest = execute(FakeLearner(interrupt), StopLimits(seconds=60.0))
    assert (code, manifest["status"]) == (130, "interrupted")
    assert manifest["timesteps"] == 2 * STEPS


def test_failures_save_the_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, manifest = execute(FakeLearner(lambda n: 1 // (3 - n)), StopLimits(iterations=9))
    assert (code, manifest["status"]) == (1, "failed")
    assert "ZeroDivisionError" in manifest["error"]
    assert "onnx" not in manifest
    assert "estragon: ZeroDivisionError" in capsys.readouterr().err
    with pytest.raises(IndexError):
        execute(FakeLearner(lambda n: [][n]), StopLimits(iterations=9))
    path = folder / "logs" / "x_2"
    assert json.loads((path / "run.json").read_text())["status"] == "failed"
    assert (path / "model.zip").exists()


def test_a_directory_without_a_run_is_removed(folder: Path) -> None:
    with pytest.raises(UserError), new_run_folder(Path("logs"), "x", Controller()):
        raise UserError("the game does not start")
    assert not list((folder / "logs").iterdir())
    with pytest.raises(UserError, match="a/b"), new_run_folder(Path("logs"), "a/b", Controller()):
        pass
