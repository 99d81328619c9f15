"""Every algorithm: trained briefly, exported, compared, and as good in Godot alone."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from estragon.cli import main
from estragon.godot.process import GodotProcess
from estragon.judge.evaluate import evaluate_game
from estragon.judge.statistics import mean_interval
from estragon.onnx.compare import compare_file
from estragon.support import paths
from estragon.trainers.players import game_settings
from estragon.trainers.settings import use_one_thread
from tests.prove import Recorder, run_folder

SEED, EPISODES = 1_000_000_007, 96
SAMPLES = 64
ORCHARD, MARBLE = "orchard", "marble"


class Proof(NamedTuple):
    """A short training."""

    game: str
    steps: int
    settings: str


ROUNDS = "--n_steps 64 --batch_size 256 --learning_rate 0.001"
REPLAY = "--learning_starts 500 --batch_size 128 --learning_rate 0.001 --gradient_steps 2"
RLLIB = "--num_workers 0 --lr 0.001"
PROOFS = {
    ("sb3", "ppo"): Proof(ORCHARD, 8_000, ROUNDS),
    ("sb3", "a2c"): Proof(ORCHARD, 8_000, "--n_steps 16 --learning_rate 0.001"),
    ("sb3", "dqn"): Proof(ORCHARD, 4_000, f"{REPLAY} --exploration_fraction 0.5"),
    ("sb3", "recurrent_ppo"): Proof(ORCHARD, 4_000, f"{ROUNDS} --lstm_hidden_size 16"),
    ("sb3", "maskable_ppo"): Proof(ORCHARD, 8_000, ROUNDS),
    ("sb3", "sac"): Proof(MARBLE, 2_500, f"{REPLAY} --gamma 0.98"),
    ("sb3", "td3"): Proof(MARBLE, 2_500, f"{REPLAY} --gamma 0.98"),
    ("sb3", "ddpg"): Proof(MARBLE, 2_500, f"{REPLAY} --gamma 0.98"),
    ("rllib", "ppo"): Proof(ORCHARD, 6_000, f"{RLLIB} --train_batch_size 1024 --num_sgd_iter 8"),
    ("rllib", "appo"): Proof(ORCHARD, 6_000, f"{RLLIB} --train_batch_size 512"),
    ("rllib", "impala"): Proof(ORCHARD, 6_000, f"{RLLIB} --train_batch_size 512"),
    ("rllib", "dqn"): Proof(ORCHARD, 3_000, RLLIB),
    ("rllib", "sac"): Proof(MARBLE, 2_000, RLLIB),
}


def trained(trainer: str, algo: str, proof: Proof, scene: str, folder: Path) -> Path:
    """The model or the run, trained unless that was done before."""
    words = ["train", trainer, "--algo", algo, "--timesteps", str(proof.steps), "--seed", "1"]
    words += ["--env_path", str(paths.godot_project()), "--scene", scene, *proof.settings.split()]
    if trainer == "sb3":
        model = folder / "model.zip"
        if not model.exists():
            assert main([*words, "--save_model_path", str(model)]) == 0
        return model
    if not list(folder.rglob("checkpoint_*")):
        assert main(words) == 0
    (found,) = (folder / "logs" / "rllib").iterdir()
    return found


def returns_in_godot(model: Path, scene: str, episodes: int, folder: Path) -> list[list[float]]:
    """By agent, the returns of its first episodes, played by Godot alone."""
    words = ["--headless", "--path", str(paths.godot_project()), "--fixed-fps", "60"]
    words += ["-s", "res://tests/returns.gd", f"--scene={scene}", f"--episodes={episodes}"]
    words += [f"--onnx_model_path={model}", f"--env_seed={SEED}"]
    with GodotProcess(words, folder=folder / "godot") as process:
        assert process.wait("its end", 900.0) == 0
        lines = process.lines()
    assert not [line for line in lines if "ERROR" in line]
    (said,) = [line for line in lines if line.startswith("[[")]
    found: list[list[float]] = json.loads(said)
    return [each[:episodes] for each in found]


@pytest.mark.prove
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("trainer", "algo"), PROOFS)
def test_an_export_is_as_good_as_its_model(
    trainer: str,
    algo: str,
    godot: Path,
    record_result: Recorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proof = PROOFS[trainer, algo]
    folder = run_folder(f"export-{trainer}-{algo}")
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    scene = f"res://examples/{proof.game}/{proof.game}.tscn"
    model = trained(trainer, algo, proof, scene, folder)
    target = folder / "policy.onnx"
    if trainer == "sb3":
        assert main(["export", "sb3", str(model), "-o", str(target)]) == 0
    else:
        assert main(["export", "rllib", str(model), "-o", str(folder / "policies")]) == 0
        (made,) = (folder / "policies").glob("*.onnx")
        target.write_bytes(made.read_bytes())
    compared = compare_file(target, SAMPLES, 0, 1e-5, 1e-4)
    assert compared["agrees"], compared
    use_one_thread()
    settings = game_settings(str(model), str(paths.godot_project()), scene=scene, seed=SEED)
    evaluation = evaluate_game(
        str(model),
        settings,
        EPISODES,
        success_key="success",
        max_steps=10**7,
        plan=None,
        report=lambda *_: None,
    )
    mean, low, high = mean_interval([each.reward for each in evaluation.episodes])
    agents = len({each.agent for each in evaluation.episodes})
    played = returns_in_godot(target, scene, len(evaluation.episodes) // agents, folder)
    alone = float(np.mean([reward for agent in played for reward in agent]))
    held = low <= alone <= high
    record_result(
        f"export: {trainer} {algo}",
        f"mean return in Godot's inference mode {alone:.3f}, trainer's evaluation {mean:.3f} "
        f"({low:.3f} to {high:.3f}), {len(evaluation.episodes)} episodes each; "
        f"{target.stat().st_size / 1000:.0f} kB, Godot within {compared['max_abs_error']:.1g} of "
        f"onnxruntime; {proof.game} after {proof.steps:,} steps",
        held=held,
    )
    assert len(played) == agents
    assert held, (alone, low, high)
