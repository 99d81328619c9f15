"""What curricula and randomization are for, measured on a harder Marble on real Godot."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from estragon.support import paths
from tests.prove import Recorder, run_folder

pytestmark = pytest.mark.prove
SEEDS = (1, 2, 3)
SCENE = ["--scene", "res://examples/marble/marble.tscn"]
GAMES = 4
PPO = (
    f"--n_parallel {GAMES} --n_steps 32 --batch_size 256 --learning_rate 0.001 --linear_lr_schedule"
)
AT_ONCE = 3
STEPS = 60_000
LEARNED, NOT_LEARNED = 0.6, 0.2
"""Share of episodes that reach the goal."""
RANDOMIZED_STEPS = 100_000


def estragon(folder: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "estragon", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr


def trained(folder: Path, name: str, seed: int, steps: int, parameters: Path) -> Path:
    model = folder / f"{name}_{seed}.zip"
    if not model.exists():
        words = ["--env_path", str(paths.godot_project()), *SCENE, *PPO.split()]
        words += ["--parameters", str(parameters), "--timesteps", str(steps), "--seed", str(seed)]
        estragon(folder, "train", "sb3", *words, "--save_model_path", str(model))
    return model


def success(folder: Path, model: Path, parameters: Path) -> float:
    """The share of 200 episodes in which a model reaches the goal."""
    words = ["--parameters", str(parameters), "--game", str(paths.godot_project()), *SCENE]
    told = folder / f"{model.stem}_{parameters.stem}.json"
    if not told.exists():
        words += ["--episodes", "200", "--n-parallel", str(GAMES), "--json", str(told)]
        estragon(folder, "eval", "game", str(model), *words)
    return float(json.loads(told.read_text())["success_rate"])


def write(path: Path, parameters: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump({"parameters": parameters}))
    return path


def percents(shares: list[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)


def test_a_curriculum_learns_what_plain_ppo_does_not(godot: Path, record_result: Recorder) -> None:
    folder = run_folder("curriculum")
    folder.mkdir(parents=True, exist_ok=True)
    file = paths.godot_project() / "examples" / "marble" / "parameters.yaml"
    sections = yaml.safe_load(file.read_text())
    hard = write(
        folder / "hard.yaml", sections["parameters"] | sections["curriculum"][-1]["parameters"]
    )

    def play(seed: int) -> tuple[float, float]:
        shares = [
            success(folder, trained(folder, name, seed, STEPS, parameters), hard)
            for name, parameters in (("curriculum", file), ("plain", hard))
        ]
        return shares[0], shares[1]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        taught, plain = map(list, zip(*pool.map(play, SEEDS), strict=True))
    held = min(taught) >= LEARNED and max(plain) < NOT_LEARNED
    result = (
        f"goals reached in a harder marble after {STEPS:,} steps of PPO, {len(SEEDS)} seeds: "
        f"{percents(taught)} (wanted: {LEARNED:.0%}); without the curriculum {percents(plain)} "
        f"(wanted: less than {NOT_LEARNED:.0%})"
    )
    record_result("Curriculum: harder Marble", result, held=held)
    assert held, result


def test_randomization_loses_less_on_held_out_parameters(
    godot: Path, record_result: Recorder
) -> None:
    """Trained with straight pushes, or with turned ones; both play with pushes turned further."""
    folder = run_folder("randomization")
    folder.mkdir(parents=True, exist_ok=True)
    marble = paths.godot_project() / "examples" / "marble"
    randomized, held_out = marble / "randomized.yaml", marble / "held_out.yaml"
    sections = yaml.safe_load(randomized.read_text())
    common = {k: v for k, v in sections["parameters"].items() if not k.startswith("push")}
    usual = write(folder / "usual.yaml", common)

    def play(case: tuple[str, Path, int]) -> tuple[float, float]:
        name, parameters, seed = case
        model = trained(folder, name, seed, RANDOMIZED_STEPS, parameters)
        return success(folder, model, usual), success(folder, model, held_out)

    cases = [("usual", usual, seed) for seed in SEEDS]
    cases += [("randomized", randomized, seed) for seed in SEEDS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        shares = list(pool.map(play, cases))
    without, with_it = shares[: len(SEEDS)], shares[len(SEEDS) :]

    def losses(of: list[tuple[float, float]]) -> list[float]:
        return [seen - unseen for seen, unseen in of]

    held = max(losses(with_it)) < min(losses(without))
    held = held and min(unseen for _, unseen in with_it) > max(unseen for _, unseen in without)
    told = (", ".join(f"{a:.0%} → {b:.0%}" for a, b in of) for of in (with_it, without))
    result = (
        "goals reached in marble with straight pushes → with pushes turned by 55 to 65°, "
        f"{RANDOMIZED_STEPS:,} steps of PPO, {len(SEEDS)} seeds: {next(told)} with randomization, "
        f"{next(told)} without (wanted: every loss smaller with randomization)"
    )
    record_result("Randomization: held-out Marble", result, held=held)
    assert held, result
