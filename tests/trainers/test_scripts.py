"""The scripts that controllers call."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.trainers.packages import check
from tests.trainers.staging import read_metrics

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def run(name: str, *words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, SCRIPTS / name, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_packages_are_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert check() == 0
    names = ("sb3", "rllib", "godot_rl", "torch", "onnx")
    assert json.loads(capsys.readouterr().out) == {f"{name}_available": True for name in names}


def test_packages_that_are_missing_or_broken_are_named(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libtorch.so is gone')\n")
    (tmp_path / "onnx.py").write_text("raise ImportError('no onnx')\n")
    for name in ("stable_baselines3", "ray"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not today')\n")
    script = (
        f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); "
        f"runpy.run_path({str(SCRIPTS / 'check_py_env.py')!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["godot_rl_available"]
    assert not found["torch_available"]
    assert not found["sb3_available"]
    assert found["problems"]["torch"] == "OSError: libtorch.so is gone"


def test_the_demo_prints_every_kind_of_line(tmp_path: Path) -> None:
    done = run("demo.py", "--iterations", "3", "--interval", "0", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    metrics = read_metrics(done.stdout)
    assert [metric["training_iteration"] for metric in metrics] == [1, 2, 3]
    assert metrics[2]["episode_reward_mean"] > metrics[0]["episode_reward_mean"]
    assert "Episode 60: reward=" in done.stdout
    assert "WARNING" in done.stderr


def test_the_demo_rejects_invalid_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--iterations", "-1"]) == 2
    assert "--iterations" in capsys.readouterr().err
