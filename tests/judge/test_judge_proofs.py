"""Regressions planted in copies of the games are found and named; unchanged builds pass."""

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from estragon.cli import main
from estragon.judge import statistics
from estragon.judge.evaluation_file import Evaluation
from estragon.judge.regress import RegressionRules, Verdict, check_regression
from estragon.support import paths
from tests.prove import Recorder, run_folder

pytestmark = pytest.mark.prove
SCENE = ["--scene", "res://examples/marble/marble.tscn"]
BALL = Path("examples/marble/marble_ball.gd")
PPO = "--n_parallel 2 --n_steps 64 --batch_size 256 --learning_rate 0.001 --linear_lr_schedule"
STEPS, EARLY = 60_000, 15_008
EPISODES = 96
UNCHANGED = 50
SHARE = 0.95
"""How often a slowdown must be found to count."""
FORCES = (6.0, 5.4, 4.8, 4.2, 3.6, 3.0)
"""Of a push, in newtons; the usual one first."""
POOL, TRIALS = 960, 100
ARENA = Path("examples/marble/marble_arena.gd")
WALL = """
func _ready() -> void:
	for span: Vector2 in [{spans}]:
		var wall := StaticBody3D.new()
		var shape := CollisionShape3D.new()
		shape.shape = BoxShape3D.new()
		shape.shape.size = Vector3(span.y - span.x, 4.0, 0.3)
		wall.position.x = (span.x + span.y) / 2.0
		wall.add_child(shape)
		add_child(wall)
"""
DOORWAY = "Vector2(-6.0, -1.5), Vector2(1.5, 6.0)"
BLOCKED = "Vector2(-6.0, 6.0)"


class Planted(NamedTuple):
    """A change of a script that makes the game worse."""

    old: str
    new: str
    metric: str
    """What must be named."""
    options: tuple[str, ...] = ()


PUSH = "\tapply_central_force(force *"
TICK = "func _physics_process(_delta: float) -> void:\n"
SPIKE = (
    TICK + "\tif Engine.get_physics_frames() % 64 == 0:\n\t\tfor i: int in 100000:\n\t\t\tpass\n"
)
LEAK = (
    "\tvar kept := PackedByteArray()\n\tkept.resize(500000)\n\tkept.fill(1)\n\t_kept.append(kept)\n"
)
RESTART = "func _restart() -> void:\n"
PLANTED = {
    "slower movement": Planted(
        PUSH,
        "\tapply_central_force(0.6 * force *",
        "mean_episode_length",
        ("--metric", "mean_episode_length=lower"),
    ),
    "a frame-time spike": Planted(TICK, SPIKE, "slowest_step_ratio", ("--timing",)),
    "a changed reward": Planted(
        "controller.reward += _approach", "controller.reward += 0.5 * _approach", "mean_reward"
    ),
    "a leak": Planted(
        RESTART,
        f"static var _kept: Array[PackedByteArray] = []\n{RESTART}{LEAK}",
        "memory_growth_mb",
    ),
}


@pytest.fixture(scope="module")
def model(godot: Path) -> Path:
    """A policy for Marble; a checkpoint of its training is beside it."""
    folder = run_folder("judge")
    file = folder / "model.zip"
    if not file.exists():
        words = ["--env_path", str(paths.godot_project()), *SCENE, *PPO.split(), "--seed", "1"]
        words += ["--timesteps", str(STEPS), "--save_checkpoint_frequency", "15000"]
        words += ["--experiment_dir", str(folder), "--save_model_path", str(file)]
        assert main(["train", "sb3", *words]) == 0
    return file


@pytest.fixture(scope="module")
def baseline(model: Path) -> Path:
    file = model.with_name("baseline.json")
    return file if file.exists() else evaluate(model, paths.godot_project(), file)


def evaluate(model: Path, game: Path, output: Path, *words: str, episodes: int = EPISODES) -> Path:
    words = ("--model", str(model), "--game", str(game), *SCENE, *words, "--output", str(output))
    assert main(["judge", "evaluate", "--episodes", str(episodes), *words]) == 0
    return output


def regress(current: Path, baseline: Path, *options: str) -> list[str]:
    """What has regressed, according to the command."""
    verdict = current.with_suffix(".verdict.json")
    files = ["--current", str(current), "--baseline", str(baseline), "--json", str(verdict)]
    code = main(["judge", "regress", *files, *options])
    found = [each.name for each in Verdict.read(verdict).regressions]
    assert code == (1 if found else 0)
    return found


def test_planted_regressions(
    model: Path, baseline: Path, tmp_path: Path, record_result: Recorder
) -> None:
    found: dict[str, list[str]] = {}
    wanted: dict[str, str] = {}
    for name, planted in PLANTED.items():
        copy = tmp_path / name.replace(" ", "_")
        shutil.copytree(paths.godot_project(), copy)
        script = copy / BALL
        text = script.read_text()
        assert planted.old in text
        script.write_text(text.replace(planted.old, planted.new, 1))
        current = evaluate(model, copy, tmp_path / f"{copy.name}.json")
        # Without the change of this copy, all options of all copies pass: see the next test.
        found[name], wanted[name] = regress(current, baseline, *planted.options), planted.metric
    (early,) = model.parent.rglob(f"rl_model_{EARLY}_steps.zip")
    current = evaluate(early, paths.godot_project(), tmp_path / "early.json")
    found["a worse policy"], wanted["a worse policy"] = regress(current, baseline), "mean_reward"
    name = "a blocked doorway"
    found[name], wanted[name] = blocked_doorway(model, tmp_path), "success_rate"
    told = "; ".join(f"{name}: {', '.join(named) or 'NOTHING'}" for name, named in found.items())
    held = all(wanted[name] in named for name, named in found.items())
    record_result("judge: planted regressions", f"found in {told}", held=held)
    assert held, told


def blocked_doorway(model: Path, folder: Path) -> list[str]:
    """A wall through the arena, with a doorway, and without."""
    files = []
    for name, spans in (("doorway", DOORWAY), ("blocked", BLOCKED)):
        copy = folder / name
        shutil.copytree(paths.godot_project(), copy)
        script = copy / ARENA
        script.write_text(script.read_text() + WALL.replace("{spans}", spans))
        files.append(evaluate(model, copy, folder / f"{name}.json"))
    return regress(files[1], files[0])


def test_unchanged_builds_pass(model: Path, baseline: Path, record_result: Recorder) -> None:
    """With other seeds every time, so that there is noise; and with every option used above."""
    folder = model.parent / "unchanged"
    options = ("--timing", "--metric", "mean_episode_length=lower")
    alarms: dict[str, list[list[str]]] = {"defaults": [], "all options": []}
    for seed in range(UNCHANGED):
        current = folder / f"{seed}.json"
        if not current.exists():
            evaluate(model, paths.godot_project(), current, "--seed", str(seed))
        alarms["defaults"].append(regress(current, baseline))
        alarms["all options"].append(regress(current, baseline, *options))
    passed = {name: sum(not each for each in lists) for name, lists in alarms.items()}
    named = sorted({metric for lists in alarms.values() for each in lists for metric in each})
    result = (
        f"{passed['defaults']} of {UNCHANGED} unchanged builds pass with other seeds, {EPISODES} "
        f"episodes each; {passed['all options']} with spikes and episode length judged as well"
    )
    result += f" (false alarms in {', '.join(named)})" if named else ""
    held = passed["defaults"] == UNCHANGED
    record_result("judge: unchanged builds", result, held=held)
    assert held, result


def test_the_smallest_slowdown_that_is_found(
    model: Path, record_result: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pushes of less force; random parts of two large evaluations stand for builds."""
    monkeypatch.setattr(statistics, "RESAMPLES", 999)
    random = np.random.default_rng(0)
    usual = pool_of(model, FORCES[0])
    told, smallest = [], {}
    for paired, tolerance in ((False, 0.1), (True, 0.1), (True, 0.02)):
        rules = RegressionRules(given={"mean_episode_length": f"lower:{tolerance}"})
        rates: dict[float, float] = {}
        for force in FORCES:
            slow, finds = pool_of(model, force), 0
            for _ in range(TRIALS):
                chosen = random.choice(POOL, EPISODES, replace=False)
                others = chosen if paired else random.choice(POOL, EPISODES, replace=False)
                verdict = check_regression(part(slow, others), part(usual, chosen), rules)
                finds += "mean_episode_length" in [each.name for each in verdict.regressions]
            slower = mean_length(slow) / mean_length(usual) - 1.0
            rates[slower] = finds / TRIALS
        kind = f"{'paired' if paired else 'independent'} episodes, tolerance {tolerance:.0%}"
        found = [slower for slower, rate in rates.items() if rate >= SHARE]
        smallest[kind] = min(found, default=1.0)
        each = ", ".join(f"{slower:+.0%}: {rate:.0%}" for slower, rate in rates.items())
        told.append(f"{kind}: {each}; smallest with 95%: {smallest[kind]:.0%}")
        assert rates[0.0] <= 0.05
    held = max(smallest.values()) < 1.0
    result = f"how often longer episodes of Marble are found, {EPISODES} episodes: "
    result += "; ".join(told)
    record_result("judge: smallest slowdown", result, held=held)
    assert held, result


def pool_of(model: Path, force: float) -> Evaluation:
    """Many episodes with this force of a push."""
    file = model.with_name(f"force{force}.json")
    if not file.exists():
        words = ["--argument", f"parameter.push_force={force}", "--seed", "99"]
        evaluate(model, paths.godot_project(), file, *words, episodes=POOL)
    return Evaluation.read(file)


def mean_length(found: Evaluation) -> float:
    return float(found.samples()["mean_episode_length"].mean())


def part(pool: Evaluation, chosen: np.ndarray) -> Evaluation:
    """Some episodes of an evaluation as one of its own."""
    episodes = [pool.episodes[int(place)] for place in chosen]
    return Evaluation(mean_reward=0.0, format=pool.format, episodes=episodes)
