"""Runs from the first game to the model on the disk, in a game where everything is known."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
from stable_baselines3 import PPO, SAC

from estragon.cli import main
from estragon.trainers.sb3.algorithms import ALGORITHMS, PPO_DEFAULTS
from estragon.trainers.sb3.learner import StdSchedule
from tests.trainers.conftest import Game
from tests.trainers.sb3.staging import REPLAY, manifest, model_path, train
from tests.trainers.staging import read_metrics

CHANGED: dict[str, Any] = {
    "learning_rate": 0.001,
    "batch_size": 4,
    "n_steps": 4,
    "gamma": 0.9,
    "gae_lambda": 0.8,
    "ent_coef": 0.1,
    "clip_range": 0.3,
    "target_kl": 0.05,
    "vf_coef": 0.7,
    "max_grad_norm": 0.2,
}
KINDS = {"sac": "box", "td3": "box", "ddpg": "box", "dqn": "discrete", "maskable_ppo": "masked"}


def controlled(folder: Path, **config: Any) -> Path:
    """A controller's project with this configuration."""
    home = folder / ".rlcontroller"
    home.mkdir(exist_ok=True)
    (home / "training_config.json").write_text(json.dumps(config))
    return home


def reported(model: Any, name: str) -> Any:
    value = getattr(model, name)
    return value(1.0) if callable(value) else value


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_algorithm_trains_saves_and_goes_on(
    folder: Path, game: Game, algo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(kind=KINDS.get(algo, "box"))
    words = REPLAY if ALGORITHMS[algo].is_off_policy else []
    words = ["--lstm_hidden_size", "8"] if algo == "recurrent_ppo" else words
    assert train(path, "--algo", algo, *words) == 0
    assert manifest(folder)["algorithm"] == algo
    first = ALGORITHMS[algo].cls.load(model_path(folder))
    assert first.num_timesteps == 64
    assert first.policy_kwargs["net_arch"] == [8]

    assert train(path, "--resume_model_path", str(model_path(folder)), *words) == 0
    second = ALGORITHMS[algo].cls.load(model_path(folder, "experiment_2"))
    assert second.num_timesteps == 128
    assert second._n_updates > first._n_updates
    assert manifest(folder, "experiment_2")["algorithm"] == algo
    assert "resuming at 64 steps" in capsys.readouterr().err


def test_every_hyper_parameter_of_the_file_is_the_models(folder: Path, game: Game) -> None:
    prefixed = {f"sb3_{key}": value for key, value in CHANGED.items()}
    controlled(folder, env_path=str(game(kind="box")), timesteps=16, **prefixed)
    assert main(["train", "sb3"]) == 0
    model = PPO.load(model_path(folder))
    for key, value in CHANGED.items():
        assert value != PPO_DEFAULTS.get(key)
        assert reported(model, key) == pytest.approx(value), key


def test_the_command_line_goes_before_the_file_and_the_file_before_defaults(
    folder: Path, game: Game
) -> None:
    controlled(
        folder,
        env_path="no such game",
        timesteps=999_999,
        experiment_name="of the file",
        sb3_policy_type="lstm",
        sb3_policy_layers=[5, 6],
        sb3_n_parallel=2,
        sb3_gamma=0.5,
        sb3_n_steps=4,
    )
    assert train(game(kind="box"), "--gamma", "0.7", "--timesteps", "32", short=False) == 0
    run = "of the file_1"
    model = sb3_contrib.RecurrentPPO.load(model_path(folder, run))
    assert model.gamma == 0.7
    assert model.n_steps == 4
    assert model.batch_size == 64
    assert model.n_envs == 4
    assert model.policy_kwargs["net_arch"] == [5, 6]
    assert manifest(folder, run)["algorithm"] == "recurrent_ppo"


def test_hyper_parameters_that_mean_nothing_to_an_algorithm_are_named(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(game(kind="box"), "--algo", "sac", "--clip_range", "0.1", *REPLAY) == 0
    assert "not used by sac: clip_range, n_steps\n" in capsys.readouterr().err


def test_metrics_of_both_policies_reach_the_controller(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = controlled(folder)
    (home / "STOP").touch()  # of an earlier run
    monkeypatch.setenv("CONTROLLER_METRICS", "controller")
    assert train(game(kind="box"), "--save_checkpoint_frequency", "16") == 0
    assert not (home / "STOP").exists()
    metrics = read_metrics(capsys.readouterr().out)
    assert [metric["timesteps_total"] for metric in metrics] == [16, 32, 48, 64]
    last = metrics[-1]
    assert last["checkpoints"] == 4
    assert set(last["policies"]) == {"policy0", "policy1"}
    # Agent 0 earns 1 + 2 + 3 in 3 steps, agent 1 earns 101 + 102 + 103 + 104 in 4.
    assert metrics[0]["policies"]["policy0"]["reward_mean"] == 6.0
    assert metrics[0]["policies"]["policy1"]["reward_mean"] == 410.0
    assert metrics[0]["episode_len_mean"] == pytest.approx((2 * 3 + 2 * 4) / 4)
    assert last["episodes_total"] == 32 // 3 + 32 // 4
    assert {"policy_loss", "vf_loss", "entropy"} <= set(last["policies"]["policy0"]["learner"])
    (record,) = (home / "runs").glob("*_experiment.json")
    about = json.loads(record.read_text())
    assert about["status"] == "finished"
    assert about["backend"] == "sb3"
    kept = (home / "runs" / about["metrics"]).read_text().splitlines()
    assert [json.loads(line) for line in kept] == metrics


def test_the_file_stop_ends_a_run_which_is_saved(folder: Path, game: Game) -> None:
    home = controlled(folder)
    path = game(kind="box")
    over = threading.Event()

    def stop_once_begun() -> None:
        while not any(file.read_text() for file in home.glob("runs/*.metrics.jsonl")):
            if over.wait(0.05):
                return
        (home / "STOP").touch()

    waiting = threading.Thread(target=stop_once_begun)
    waiting.start()
    try:
        assert train(path, "--timesteps", "100000000", "--save_model_path", "m") == 0
    finally:
        over.set()
        waiting.join()
    assert manifest(folder)["status"] == "stopped"
    assert 0 < PPO.load(folder / "m.zip").num_timesteps < 100_000_000


def test_an_update_without_end_is_left_when_somebody_asks(folder: Path, game: Game) -> None:
    home = controlled(folder)
    timer = threading.Timer(3.0, (home / "STOP").touch)
    timer.start()
    assert train(game(kind="box"), "--n_epochs", "100000000") == 0
    timer.join()
    assert manifest(folder)["status"] == "stopped"
    assert model_path(folder).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_run_which_is_saved(folder: Path, game: Game, number: int) -> None:
    def interrupt() -> None:
        os.kill(os.getpid(), number)

    path = game(kind="box")
    begun = threading.Event()

    def when_begun() -> None:
        while not model_path(folder).with_name("run.metrics.jsonl").exists():
            if begun.wait(0.05):
                return
        interrupt()

    waiting = threading.Thread(target=when_begun)
    waiting.start()
    try:
        assert train(path, "--timesteps", "100000000") == 130
    finally:
        begun.set()
        waiting.join()
    assert manifest(folder)["status"] == "interrupted"
    assert model_path(folder).exists()


def test_checkpoints_carry_scales_and_memory_and_are_never_overwritten(
    folder: Path, game: Game
) -> None:
    path = game(kind="box")
    words = ["--algo", "sac", *REPLAY, "--save_checkpoint_frequency", "32", "--normalize"]
    assert train(path, *words) == 0
    checkpoints = model_path(folder).with_name("checkpoints")
    assert {each.name for each in checkpoints.iterdir()} == {
        "rl_model_32_steps.zip",
        "rl_model_64_steps.zip",
        "rl_model_64_steps.replay.npz",
    }
    before = {each: each.read_bytes() for each in checkpoints.iterdir()}
    resumed = ["--resume_model_path", str(checkpoints / "rl_model_64_steps.zip"), *words]
    assert train(path, *(word for word in resumed if word != "--normalize")) == 0
    assert {each: each.read_bytes() for each in checkpoints.iterdir()} == before
    later = model_path(folder, "experiment_2").with_name("checkpoints")
    assert (later / "rl_model_96_steps.zip").exists()
    with np.load(later / "rl_model_128_steps.replay.npz") as memory:
        assert len(memory["rewards"]) == 64  # of both runs, 2 agents each
    model = SAC.load(later / "rl_model_128_steps.zip")
    assert model.num_timesteps == 128


def test_a_resumed_model_is_the_saved_one(folder: Path, game: Game) -> None:
    path = game(kind="discrete")
    assert train(path, "--gamma", "0.8", "--learning_rate", "0.01") == 0
    words = ["--resume_model_path", str(model_path(folder)), "--timesteps", "16"]
    assert train(path, *words, "--learning_rate", "0", "--policy_layers", "99") == 0
    first, second = (PPO.load(model_path(folder, run)) for run in ("experiment_1", "experiment_2"))
    assert second.gamma == 0.8
    assert second.learning_rate == 0.0
    for name, tensor in first.policy.state_dict().items():
        assert np.array_equal(tensor, second.policy.state_dict()[name]), name


def test_the_same_seed_is_the_same_run(folder: Path, game: Game) -> None:
    path = game(kind="box")
    for seed in ("3", "3", "4"):
        assert train(path, "--seed", seed, "--timesteps", "16") == 0
    one, two, other = (
        PPO.load(model_path(folder, f"experiment_{run}")).policy.state_dict() for run in (1, 2, 3)
    )
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert not all(np.array_equal(one[name], other[name]) for name in one)


def test_a_linear_schedule_ends_at_nothing(folder: Path, game: Game) -> None:
    assert train(game(kind="box"), "--linear_lr_schedule", "--learning_rate", "0.5") == 0
    model = PPO.load(model_path(folder))
    assert model.lr_schedule(1.0) == 0.5
    assert model.lr_schedule(0.25) == pytest.approx(0.125)
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(0.0)


def test_a_schedule_of_the_standard_deviation(folder: Path, game: Game) -> None:
    path, still = game(kind="box"), ["--learning_rate", "0"]
    assert train(path, *still, "--log_std_init", "-1") == 0
    assert PPO.load(model_path(folder)).policy.log_std.detach().numpy() == pytest.approx(-1.0)
    assert train(path, *still, "--log_std_init", "-1", "--log_std_final", "-2") == 0
    scheduled = model_path(folder, "experiment_2")
    assert PPO.load(scheduled).policy.log_std.detach().numpy() == pytest.approx(-2.0)


@pytest.mark.parametrize(("left", "std"), [(1.0, 0.0), (0.5, -1.5), (0.0, -3.0)])
def test_the_standard_deviation_falls(left: float, std: float) -> None:
    model = PPO("MlpPolicy", "Pendulum-v1", n_steps=8, batch_size=8)
    model._current_progress_remaining = left
    schedule = StdSchedule(0.0, -3.0)
    schedule.init_callback(model)
    schedule.on_rollout_start()
    assert model.policy.log_std.item() == pytest.approx(std)


def test_inference_plays_and_tells(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(kind="masked")
    assert train(path, "--algo", "maskable_ppo", "--normalize") == 0
    capsys.readouterr()
    words = ["--inference", "--resume_model_path", str(model_path(folder)), "--timesteps", "24"]
    assert train(path, *words) == 0
    assert "7 episodes: reward 179.143 (6.000 to 410.000), length 3.4" in capsys.readouterr().out
    assert not model_path(folder, "experiment_2").exists()


@pytest.mark.parametrize("policy_type", ["mlp", "cnn"])
def test_images_are_seen_in_both_ways(folder: Path, game: Game, policy_type: str) -> None:
    words = ["--policy_type", policy_type, "--timesteps", "16", "--onnx_export_path", "a.onnx"]
    assert train(game(kind="image"), *words) == 0
    names = " ".join(PPO.load(model_path(folder)).policy.state_dict())
    assert ("cnn" in names) == (policy_type == "cnn")
    assert (folder / "a.onnx").exists()


def test_tensorboard_has_the_librarys_numbers(folder: Path, game: Game) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert train(game(kind="box")) == 0
    events = EventAccumulator(str(model_path(folder).parent))
    events.Reload()
    tags = events.Tags()["scalars"]
    assert {"rollout/ep_rew_mean", "train/value_loss", "time/fps"} <= set(tags)
    assert stable_baselines3.__version__ == manifest(folder)["versions"]["stable_baselines3"]
