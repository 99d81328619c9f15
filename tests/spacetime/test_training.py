"""Training VR navigation in Godot: the doors, what they write, resuming and evaluating."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import PPO

from estragon.cli import main
from estragon.godot.http import free_port
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.godot.user_data import resolve, user_folder
from estragon.spacetime.config import RLConfig
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.trainers.godot_rl_model import GodotRLModel
from estragon.trainers.sb3.model_file import ModelFile
from estragon.trainers.sb3.navigation import Navigation
from tests.envs.staging import assert_gone, games_of
from tests.spacetime.proving import started

ROOT = Path(__file__).resolve().parents[2]
SHORT = {
    "ppo": {"n_steps": 32, "batch_size": 32, "n_epochs": 1},
    "network": {"net_arch": [16]},
    "environment": {"num_environments": 4, "max_episode_steps": 20},
    "training": {"total_timesteps": 256, "save_freq": 128, "eval_freq": 128, "eval_episodes": 4},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "short.json"
    path.write_text(json.dumps(SHORT))
    return path


@pytest.mark.slow
def test_train_resume_and_evaluate(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["train", "spacetime", "--config", str(config), "--output", str(out)]
    saved, onnx = tmp_path / "saved.json", tmp_path / "policy.onnx"
    assert main([*words, "--save-config", str(saved), "--onnx", str(onnx)]) == 0
    assert RLConfig.from_json(saved).training.total_timesteps == 256
    assert onnx.stat().st_size > 0
    names = sorted(path.name for path in (out / "checkpoints").iterdir())
    assert names == ["vr_nav_model_128_steps.zip", "vr_nav_model_256_steps.zip"]
    best = out / "best_models" / "best_model.zip"
    assert ModelFile(best).normalization is not None
    assert list((out / "logs" / "PPO_1").glob("events.out.tfevents*"))
    spec = ModelFile(best).spec
    assert spec is not None
    assert (spec.layers, spec.activation) == ((16,), "relu")
    assert spec.hyperparameters["n_epochs"] == 1
    said = capsys.readouterr()
    assert f"best_models and logs are in {out}" in said.err
    assert "evaluation at 256 steps: 4 episodes" in said.out
    assert f"evaluate the best model with --eval {best}" in said.err

    assert main([*words, "--resume", str(out / "checkpoints" / names[0])]) == 0
    said = capsys.readouterr()
    assert "resuming at 128 steps" in said.err
    assert "iteration 1: 256 steps" in said.out
    assert main([*words, "--resume", str(out / "checkpoints" / names[1])]) == 2
    assert "has all 256 steps; --timesteps asks for more" in capsys.readouterr().err

    observation = np.linspace(-1.0, 1.0, 48, dtype=np.float32)
    models = [GodotRLModel.load(path) for path in (out / "logs" / "PPO_1" / "model.zip", onnx)]
    first, second = (model.predict(observation) for model in models)
    assert first.shape == (3,)
    assert first == pytest.approx(second, abs=1e-5)
    with zipfile.ZipFile(best) as archive:
        assert archive.getinfo("policy.onnx").compress_type == zipfile.ZIP_STORED
    _check_in_godot(out / "logs" / "PPO_1" / "model.zip", observation, first, tmp_path)

    assert main([*words, "--eval", str(best), "--episodes", "4"]) == 0
    said = capsys.readouterr()
    assert f"{best}: 4 episodes: reward" in said.out
    assert "comfort_mean" in said.out


def _check_in_godot(model: Path, observation: np.ndarray, action: np.ndarray, folder: Path) -> None:
    """The addon loads the same .zip, and acts the same."""
    script = folder / "predict.gd"
    numbers = list(map(float, observation))
    script.write_text(
        f"""extends SceneTree
func _init() -> void:
	var model := GodotRLModel.new()
	if not model.load("{model}"):
		print("error ", model.error)
	else:
		var predicted: Dictionary = model.predict({numbers})
		print("action ", JSON.stringify(Array(model.actions_in(predicted))))
	print("missing ", model.load("{model.with_name("gone.zip")}"))
	quit()
"""
    )
    words = ["--headless", "--path", str(import_project(paths.godot_project()))]
    with GodotProcess([*words, "--script", str(script)], folder=folder) as process:
        process.wait("the prediction", 120.0)
        said = [line for line in process.lines() if line.startswith(("action", "error", "missing"))]
    assert said[1] == "missing false"
    assert json.loads(said[0].removeprefix("action ")) == pytest.approx(action.tolist(), abs=1e-4)


@pytest.mark.slow
def test_train_and_evaluate_the_course(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--output", str(tmp_path), "--experiment_name", "course"]
    numbers = ["--timesteps", "256", "--num_envs", "2", "--save_frequency", "128"]
    assert main(["train", "scene", *words, *numbers]) == 0
    models = {path.name for path in (tmp_path / "models").iterdir()}
    assert {"course_step_128.zip", "course_final.zip", "course_final.onnx"} <= models
    assert list((tmp_path / "logs").glob("course_1/events*"))
    spec = ModelFile(tmp_path / "models" / "course_final.zip").spec
    assert spec is not None
    assert spec.observation_space != spec.action_space
    assert spec.linear_lr_schedule
    assert spec.hyperparameters["log_std_final"] == -2.0
    capsys.readouterr()
    resume = ["--resume", str(tmp_path / "models" / "course_step_128.zip")]
    assert main(["train", "scene", *words, *numbers, *resume]) == 0
    assert "128 steps, resuming at 128 steps" in capsys.readouterr().err
    assert main(["train", "scene", *words, "--timesteps", "128", "--num_envs", "2", *resume]) == 2
    assert "has all 128 steps; --timesteps asks for more" in capsys.readouterr().err


@pytest.mark.prove
def test_the_trainer_is_killed_and_resumed_then_its_game_is_killed(tmp_path: Path) -> None:
    config = RLConfig.from_dict(SHORT)
    config.training.total_timesteps, config.training.eval_freq = 20_000, 0
    config.to_json(tmp_path / "config.json")

    def steps() -> int:
        found = tmp_path.glob("checkpoints/*_steps.zip")
        return max((int(path.stem.split("_")[-2]) for path in found), default=0)

    def wait_for(least: int, process: subprocess.Popen[str]) -> int:
        deadline = time.monotonic() + 120.0
        while steps() < least:
            assert process.poll() is None, (tmp_path / "said.txt").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return steps()

    with started(tmp_path / "config.json", tmp_path) as first:
        saved = wait_for(256, first)
        games = games_of(first.pid)
        first.kill()
    assert games
    assert_gone(games)
    checkpoint = tmp_path / "checkpoints" / f"vr_nav_model_{saved}_steps.zip"
    words = ["--resume", str(checkpoint), "--timesteps", str(saved + 1_024)]
    with started(tmp_path / "config.json", tmp_path, *words) as second:
        wait_for(saved + 256, second)
        (game,) = games_of(second.pid)
        os.kill(game, signal.SIGKILL)
        assert second.wait() == 0
    said = (tmp_path / "said.txt").read_text()
    assert f"resuming at {saved:,} steps" in said
    run = tmp_path / "logs" / "PPO_2"
    assert (run / "games" / "game.previous.log").exists()
    assert ModelFile(run / "model.zip").steps == saved + 1_024


@pytest.mark.slow
def test_mazes_alone() -> None:
    config = RLConfig.from_dict(SHORT)
    config.environment.tasks = ["maze"]
    config.actions.type = "discrete"
    assert len(Navigation(config).evaluate(None, 4)) == 4


def test_a_configuration_sets_the_noise() -> None:
    given = {"ppo": {"log_std_init": -1.0, "log_std_final": -3.0}}
    for config, noise in ((RLConfig(), (0.0, None)), (RLConfig.from_dict(given), (-1.0, -3.0))):
        found = Navigation(config)._settings().hyperparameters
        assert (found.log_std_init, found.log_std_final) == noise
    with pytest.raises(UserError, match=r"ppo.log_std_final: expected -10 to 2, got -11"):
        RLConfig.from_dict({"ppo": {"log_std_final": -11.0}})


def test_stop_at_a_share_of_successes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv

    from estragon.trainers.metrics import Episodes
    from estragon.trainers.sb3.evaluating import EvaluationCallback

    games = DummyVecEnv([lambda: gymnasium.make("CartPole-v1")])
    model = PPO("MlpPolicy", games, n_steps=16, batch_size=16, n_epochs=1)
    learner: Any = SimpleNamespace(
        model=model, is_resumed=False, games=games, write=lambda path, **_: path.touch()
    )
    shares = iter([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])

    def play(*_: object) -> Episodes:
        found = Episodes()
        for success in next(shares):
            found.add(success, 3, {"success": success})
        return found

    monkeypatch.setattr(EvaluationCallback, "_play", play)
    path = tmp_path / "best.zip"
    model.learn(
        160,
        EvaluationCallback(learner, learner.games, path, every=16, episodes=2, seed=0, enough=0.9),
    )
    assert model.num_timesteps == 49
    assert "stopping: 100% of these episodes are successes" in capsys.readouterr().out
    assert json.loads(path.with_suffix(".json").read_text())["timesteps"] == 48


def test_what_cannot_be(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["--preset", "slow"], "quick_test"),
        (["--config", str(tmp_path / "missing.json")], "cannot read"),
        (["--timesteps", "-3"], "training.total_timesteps: expected at least 1, got -3"),
        (["--episodes", "0", "--eval", "x.zip"], "--episodes: expected at least 1"),
        (["--eval", "x.zip", "--resume", "y.zip"], "leave out --resume"),
        (["--eval", "x.zip"], "cannot read"),
    ):
        assert main(["train", "spacetime", *words]) == 2
        assert said in capsys.readouterr().err


def test_user_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    real = user_folder()
    assert real.name == "Estragon"
    assert resolve("user://ml_training/logs") == real / "ml_training" / "logs"
    assert resolve(Path("user://ml_training")) == real / "ml_training"
    assert resolve("here/there") == Path("here/there")
    if sys.platform == "linux":
        assert real == tmp_path / "godot" / "app_userdata" / "Estragon"


def test_the_doors(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "ml" / "rl_config.py"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "example_config.json" in done.stdout
    assert RLConfig.from_json(tmp_path / "example_config.json") == RLConfig()
    offered = runpy.run_path(str(ROOT / "scripts" / "ml" / "rl_utils.py"))
    for name in ("GodotAPIClient", "RewardCalculator", "ActionSmoother", "normalize", "to_vector"):
        assert name in offered
    found = offered["__getattr__"]("SceneReloadCallback")
    assert found.__name__ == "SceneReloadCallback"


@pytest.mark.parametrize(
    "door",
    [
        "scripts/ml/train_vr_navigation.py",
        "rl_training/train_vr_locomotion.py",
        "rl_training/test_vr_locomotion.py",
        "rl_training/api_controlled_training.py",
        "rl_training/train_spacecraft_landing.py",
        "rl_training/train_voxel_stress.py",
    ],
)
def test_doors_have_the_flags_of_their_callers(door: str) -> None:
    flags = {
        "train_vr_navigation.py": "--preset --config --timesteps --resume --eval --episodes "
        "--verbose --save-config --no-launch",
        "train_vr_locomotion.py": "--timesteps --num_envs --save_frequency --experiment_name --viz",
        "test_vr_locomotion.py": "--episodes",
        "api_controlled_training.py": "--timesteps --num_envs",
        "train_spacecraft_landing.py": "--timesteps --num_envs --experiment_name --viz",
        "train_voxel_stress.py": "--timesteps --num_envs --experiment_name --viz",
    }
    done = subprocess.run(
        [sys.executable, ROOT / door, "--help"], check=True, capture_output=True, text=True
    )
    for flag in flags[Path(door).name].split():
        assert flag in done.stdout, flag


@pytest.mark.slow
def test_train_over_the_api(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--output", str(tmp_path), "--timesteps", "64", "--num_envs", "2"]
    port = str(free_port(0))
    assert main(["train", "scene", "--api", "--port", port, *words]) == 0
    said = capsys.readouterr()
    assert f"no game answers on port {port}: starting one" in said.out
    assert "initial performance: {" in said.out
    assert "2 agents" in said.err
    assert (tmp_path / "models" / "vr_locomotion_v1_final.onnx").exists()
    assert "API_TOKEN" not in said.out + said.err
