"""Every algorithm learns an example game on real Godot, to a score that is stated here."""

import json
import re
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from stable_baselines3 import DQN

from estragon.envs.sb3_env import GodotVecEnv
from estragon.support import paths
from estragon.trainers.metrics import mean
from tests.prove import Recorder, run_folder

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "stable_baselines3_training_script.py"
ROUNDS = "--n_steps 64 --batch_size 256 --learning_rate 0.001"
SEQUENCES = "--n_steps 32 --batch_size 512 --learning_rate 0.001 --lstm_hidden_size 32"
"""Short sequences, all in one batch: a step of learning costs as much as its longest one."""
REPLAY = "--learning_starts 1000 --batch_size 256 --learning_rate 0.001 --gradient_steps 8"
OF_DQN = f"{REPLAY} --target_update_interval 800 --exploration_fraction 0.3 --gamma 0.97"
GENTLE = (
    "--learning_starts 2000 --batch_size 256 --learning_rate 0.0003 --gradient_steps 4 "
    "--gamma 0.97 --action_noise 0.1"
)
"""DDPG has one critic, which larger steps drive mad; it comes to lean on larger noise."""
PROOFS: dict[str, tuple[str, int, str, float]] = {
    "ppo": ("orchard", 100_000, ROUNDS, 7.0),
    "a2c": ("orchard", 150_000, "--n_steps 16 --ent_coef 0.01 --learning_rate 0.001", 3.0),
    "dqn": ("orchard", 80_000, OF_DQN, 7.0),
    "recurrent_ppo": ("orchard", 150_000, SEQUENCES, 5.0),
    "maskable_ppo": ("orchard", 100_000, ROUNDS, 6.5),
    "sac": ("marble", 30_000, f"{REPLAY} --gamma 0.98 --ent_coef 0.01", 0.9),
    "td3": ("marble", 60_000, f"{REPLAY} --gamma 0.98 --action_noise 0.2", 0.9),
    "ddpg": ("marble", 60_000, GENTLE, 0.8),
}
"""Algorithm → game, steps, settings, and the score to reach: fruit, or the part of goals."""
PLAYED = 8_000
BY_CHANCE = 0.2
"""Fruit that a random player eats."""


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--env_path", paths.godot_project(), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SEEDS = (1, 2, 3)


def play(folder: Path, scene: list[str], model: Path) -> tuple[float, int]:
    """The mean score of a model at play, and of how many episodes."""
    words = ["--inference", "--resume_model_path", str(model), "--timesteps", str(PLAYED)]
    told = run(folder, *scene, *words, "--seed", "12345")
    found = re.search(r"(\d+) episodes: .* score ([\d.]+)", told)
    assert found is not None, told
    return float(found[2]), int(found[1])


@pytest.mark.prove
@pytest.mark.parametrize("algo", PROOFS)
def test_an_algorithm_reaches_its_score(algo: str, godot: Path, record_result: Recorder) -> None:
    game, steps, settings, wanted = PROOFS[algo]
    folder = run_folder(f"sb3-{algo}")
    folder.mkdir(parents=True, exist_ok=True)
    scene = ["--scene", f"res://examples/{game}/{game}.tscn"]
    scores = []
    for seed in SEEDS:
        model = folder / f"seed_{seed}.zip"
        if not model.exists():
            words = ["--algo", algo, "--timesteps", str(steps), "--save_model_path", str(model)]
            run(folder, *scene, *words, "--seed", str(seed), *settings.split())
        scores.append(play(folder, scene, model)[0])
    told = ", ".join(f"{score:.2f}" for score in scores)
    result = f"{told} in {game} after {steps:,} steps, {len(SEEDS)} seeds (wanted: {wanted:g})"
    record_result(f"SB3: {algo}", result, held=min(scores) >= wanted)
    assert min(scores) >= wanted


@pytest.mark.prove
def test_ppo_killed_and_resumed_ends_at_the_same_score(
    godot: Path, record_result: Recorder
) -> None:
    game, steps, settings, wanted = PROOFS["ppo"]
    folder = run_folder("sb3-killed")
    folder.mkdir(parents=True, exist_ok=True)
    scene = ["--scene", f"res://examples/{game}/{game}.tscn"]
    words = [*scene, "--save_checkpoint_frequency", "5000", *settings.split()]
    command = [sys.executable, str(SCRIPT), "--env_path", str(paths.godot_project())]
    latest: list[str] = []
    done = 0
    for limit in (30_000, 60_000):
        process = subprocess.Popen(
            [*command, *words, *latest, "--timesteps", str(steps - done)],
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        while done < limit:
            assert process.poll() is None
            time.sleep(0.2)
            found = {steps_of(path): path for path in folder.rglob("rl_model_*_steps.zip")}
            done = max(found, default=0)
        process.kill()
        process.wait()
        latest = ["--resume_model_path", str(found[done])]
    model = folder / "resumed.zip"
    rest = ["--timesteps", str(steps - done), "--save_model_path", str(model)]
    run(folder, *words, *latest, *rest)
    score, episodes = play(folder, scene, model)
    result = f"{score:.2f} in {game} after {steps:,} steps, killed twice (wanted: {wanted:g})"
    record_result("SB3: ppo, killed and resumed", f"{result}, {episodes} episodes")
    assert score >= wanted


@pytest.mark.prove
def test_demonstrations_beat_chance_and_save_steps(godot: Path, record_result: Recorder) -> None:
    folder = run_folder("sb3-demos")
    folder.mkdir(parents=True, exist_ok=True)
    game, steps, settings, wanted = PROOFS["ppo"]
    _, expert_steps, expert_settings, _ = PROOFS["dqn"]
    scene = ["--scene", f"res://examples/{game}/{game}.tscn"]
    expert, cloned, demos = folder / "expert.zip", folder / "cloned.zip", folder / "demos.json"
    if not expert.exists():
        words = ["--algo", "dqn", "--timesteps", str(expert_steps), *expert_settings.split()]
        run(folder, *scene, *words, "--save_model_path", str(expert))
    if not demos.exists():
        demos.write_text(json.dumps(recorded(expert, scene[1], 20)))
    clone = ["--demos", str(demos), *settings.split()]
    still = ["--timesteps", "1", "--learning_rate", "0", "--save_model_path", str(cloned)]
    run(folder, *scene, *clone, *still)
    score, _ = play(folder, scene, cloned)
    learn = ["--timesteps", str(steps), *settings.split()]
    run(folder, *scene, *learn, "--experiment_name", "scratch")
    run(folder, *scene, *learn, "--experiment_name", "demos", "--demos", str(demos))
    needed = {
        name: steps_to(wanted, max(folder.glob(f"logs/sb3/{name}_*/run.metrics.jsonl")))
        for name in ("scratch", "demos")
    }
    result = (
        f"20 episodes: {score:.2f} in {game} without learning on (by chance {BY_CHANCE:g}); "
        f"PPO reaches {wanted:g} after {needed['demos']:,} steps, from nothing after "
        f"{needed['scratch']:,}"
    )
    held = score > 2 * BY_CHANCE and needed["demos"] < needed["scratch"]
    record_result("SB3: behaviour cloning, then PPO", result, held=held)
    assert held


def recorded(model: Path, scene: str, episodes: int) -> list[Any]:
    """What a model does, in the form of a game's recordings."""
    player = DQN.load(model)
    found: list[Any] = []
    with closing(GodotVecEnv(paths.godot_project(), scene=scene, seed=77)) as env:
        seen: Any = env.reset()
        going: list[tuple[list[Any], list[Any]]] = [([], []) for _ in range(env.num_envs)]
        while len(found) < episodes:
            actions, _ = player.predict(seen, deterministic=True)
            for seat, (observations, done) in enumerate(going):
                observations.append({"obs": seen["obs"][seat].tolist()})
                done.append([int(actions[seat])])
            seen, _, dones, infos = env.step(actions)
            for seat in dones.nonzero()[0].tolist():
                observations, done = going[seat]
                last = infos[seat]["terminal_observation"]["obs"].tolist()
                found.append([[*observations, {"obs": last}], done])
                going[seat] = ([], [])
    return found[:episodes]


def steps_to(score: float, metrics: Path) -> int:
    """Steps until the last fifty episodes were so good; all steps, if they never were."""
    scores: list[float] = []
    steps = 0
    for line in metrics.read_text().splitlines():
        metric = json.loads(line)
        steps = metric["timesteps_total"]
        count = metric["episodes_this_iter"]
        scores += [metric["custom_metrics"]["score"]] * count if count else []
        if len(scores) >= 50 and mean(scores[-50:]) >= score:
            break
    return steps


def steps_of(checkpoint: Path) -> int:
    return int(checkpoint.stem.split("_")[2])
