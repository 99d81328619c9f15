"""Every algorithm learns, is saved, goes on, plays and is exported."""

import json
from pathlib import Path

import onnx
import pytest

from estragon.cli import main
from estragon.onnx.metadata import read_metadata
from tests.trainers.conftest import Game
from tests.trainers.rllib.staging import ROUNDS, manifest, run_folder, train
from tests.trainers.staging import read_metrics

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("local_ray"),
]
QUICK = "min_time_s_per_iteration: 0\nmin_sample_timesteps_per_iteration: 16\n"
REPLAY = f"{QUICK}num_steps_sampled_before_learning_starts: 16\ntrain_batch_size: 8\n"
ALGORITHMS = {
    ("ppo", "mixed"): "",
    ("appo", "discrete"): f"{QUICK}train_batch_size: 16\n",
    ("impala", "box"): f"{QUICK}train_batch_size: 16\n",
    ("dqn", "discrete"): REPLAY,
    ("sac", "box"): REPLAY,
}


@pytest.mark.parametrize(
    ("algo", "kind"),
    [
        each if each[0] == "ppo" else pytest.param(*each, marks=pytest.mark.prove)
        for each in ALGORITHMS
    ],
)
def test_learn_save_go_on_play_export(
    folder: Path,
    game: Game,
    algo: str,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CONTROLLER_METRICS", "1")
    path = game(kind=kind)
    (folder / "rllib_config.yaml").write_text("env: godot\n" + ALGORITHMS[algo, kind])
    rounds = ROUNDS if algo == "ppo" else ["--rollout_fragment_length", "8"]
    assert train(path, "--algo", algo, *rounds, "--onnx_export_path", "policies") == 0, (
        capsys.readouterr().err
    )
    metrics = read_metrics(capsys.readouterr().out)
    assert set(metrics[-1]["policies"]) == {"policy0", "policy1"}
    assert metrics[-1]["policies"]["policy0"]["reward_mean"] == 1 + 2 + 3
    assert metrics[-1]["policies"]["policy1"]["reward_mean"] == 4 * 100 + 1 + 2 + 3 + 4
    assert metrics[-1]["policies"]["policy1"]["learner_stats"]
    assert sorted(each.name for each in (folder / "policies").iterdir()) == [
        "policy0.onnx",
        "policy1.onnx",
    ]
    inputs = onnx.load(folder / "policies" / "policy0.onnx").graph.input
    assert [each.name for each in inputs] == ["obs", "state_ins", "seq_lens"]
    steps = manifest(folder)["timesteps"]
    assert steps >= 64

    restore = ["--restore", str(run_folder(folder))]
    assert train(path, *restore, *rounds) == 0, capsys.readouterr().err
    again = manifest(folder, "experiment_2")
    assert again["algorithm"] == algo
    assert again["timesteps"] >= steps + 64
    assert read_metrics(capsys.readouterr().out)[0]["timesteps_total"] > steps
    assert train(path, *restore, "--inference") == 0
    assert "policy1: " in capsys.readouterr().out
    assert (
        main(["export", "rllib", str(run_folder(folder)), "-o", "more", "--policy", "policy1"]) == 0
    )
    assert (folder / "more" / "policy1.onnx").is_file()
    assert not (folder / "more" / "policy0.onnx").exists()


@pytest.mark.prove
def test_a_memory_is_learned_played_and_exported(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(kind="discrete")
    (folder / "rllib_config.yaml").write_text("model: {use_lstm: true, lstm_cell_size: 8}\n")
    assert train(path, *ROUNDS) == 0, capsys.readouterr().err
    assert train(path, *ROUNDS, "--restore", str(run_folder(folder))) == 0
    assert train(path, "--restore", str(run_folder(folder)), "--inference") == 0
    assert main(["export", "rllib", str(run_folder(folder))]) == 0
    about = read_metadata(folder / "onnx_exports" / "policy0.onnx")
    assert about["memory"] == "16"


def test_numbers_beyond_one_key(folder: Path, game: Game) -> None:
    """Choices among numbers become ones among zeros, also in the file."""
    path = game(kind="image")
    (folder / "rllib_config.yaml").write_text("env_config:\n  key: near\n")
    assert train(path, *ROUNDS, "--onnx_export_path", ".") == 0
    about = json.loads((run_folder(folder) / "checkpoint_000002" / "estragon.json").read_text())
    assert about["policies"]["policy0"]["sees"] == {"dict": {"near": {"discrete": 6}}}
    inputs = onnx.load(folder / "policy0.onnx").graph.input
    assert [each.name for each in inputs] == ["near", "state_ins", "seq_lens"]
