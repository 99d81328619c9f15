"""What agents learn in the VR scene, how fast, and what survives: the long runs."""

import dataclasses
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.spacetime.config import SCENE, CurriculumStage, RLConfig
from estragon.support import paths
from estragon.trainers.metrics import Episodes
from tests.prove import Recorder, run_folder

SEEDS = (0, 1, 2)
MINUTES = 15
MAZES = "5 × 5 cells, discrete actions, 128 mazes"
COURSE_STEPS = 400_000
FRESH_SEED = 1_000
"""Added to a training's seed for the episodes that judge its result."""
pytestmark = [pytest.mark.prove, pytest.mark.filterwarnings("ignore")]


@dataclasses.dataclass
class Trained:
    """A run that is over."""

    folder: Path
    said: str
    seconds: float

    @property
    def steps(self) -> int:
        return int(re.findall(r"iteration \d+: ([\d,]+) steps", self.said)[-1].replace(",", ""))

    @property
    def model(self) -> Path:
        return self.folder / "logs" / "PPO_1" / "model.zip"

    def reached(self, success: float) -> int | None:
        """Steps until an evaluation had this share of successes."""
        for steps, share in re.findall(
            r"evaluation at ([\d,]+) steps:.*? success ([\d.]+)", self.said
        ):
            if float(share) >= success:
                return int(steps.replace(",", ""))
        return None


def train(name: str, config: RLConfig, minutes: float = MINUTES) -> Trained:
    """Train in a process of its own, for so long at most; once."""
    folder = run_folder(f"spacetime-{name}")
    folder.mkdir(parents=True, exist_ok=True)
    config.to_json(folder / "config.json")
    words = ["train", "spacetime", "--config", str(folder / "config.json")]
    return run_once([*words, "--output", str(folder)], folder, minutes)


def run_once(words: list[str], folder: Path, minutes: float = MINUTES) -> Trained:
    log = folder / "said.txt"
    if not log.exists():
        start = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-m", "estragon", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=60 * minutes)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                said, _ = process.communicate(timeout=600)
        assert process.returncode in (0, 130), said
        log.write_text(f"{time.monotonic() - start}\n{said}")
    seconds, _, said = log.read_text().partition("\n")
    return Trained(folder, said, float(seconds))


def evaluate(
    model: Path | None, config: RLConfig, episodes: int, *, deterministic: bool = True
) -> Episodes:
    """Play episodes that neither trained the model nor chose it as the best one."""
    from estragon.trainers.sb3.navigation import Navigation

    fresh = RLConfig.from_dict(config.to_dict())
    fresh.training.seed += FRESH_SEED
    return Navigation(fresh).evaluate(model, episodes, deterministic=deterministic)


def mean(found: Episodes, key: str) -> float:
    return float(np.mean(found.custom[key]))


def share(found: Episodes) -> str:
    """The share of successes, with its 95% interval (Wilson)."""
    n, z = len(found), 1.96
    p = mean(found, "success")
    middle, half = p + z * z / 2 / n, z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return f"{p:.1%} ({low:.0%} to {high:.0%})"


def usual(seed: int, **training: Any) -> RLConfig:
    """The seed's rewards; network and batches as one core trains them fastest."""
    config = RLConfig()
    config.network.net_arch = [64, 64]
    config.ppo.n_steps, config.ppo.batch_size, config.ppo.learning_rate = 32, 256, 1e-3
    config.environment.num_environments = 64
    config.environment.max_episode_steps = 400
    config.training = dataclasses.replace(
        config.training, seed=seed, total_timesteps=120_000, eval_freq=0
    )
    config.training = dataclasses.replace(config.training, **training)
    return config


def easy(config: RLConfig) -> RLConfig:
    near = RLConfig.from_dict(config.to_dict())
    near.environment.min_goal_distance, near.environment.max_goal_distance = 5.0, 10.0
    return near


@pytest.mark.parametrize("seed", SEEDS)
def test_held_out_goals(seed: int, record_result: Recorder) -> None:
    config = usual(seed)
    run = train(f"usual-{seed}", config)
    full, near = evaluate(run.model, config, 128), evaluate(run.model, easy(config), 192)
    held = mean(full, "success") >= 0.8 and mean(near, "success") >= 0.95
    record_result(
        f"SpaceTime: held-out goals, seed {seed}",
        f"{run.steps:,} steps in {run.seconds / 60:.1f} minutes (limit: {MINUTES}): reaches "
        f"{share(full)} of {len(full)} goals 10 to 30 m away (wanted: 80%), {share(near)} of "
        f"{len(near)} goals 5 to 10 m away (wanted: 95%), comfort {mean(full, 'comfort_mean'):.2f}",
        held=held,
    )
    assert held


@pytest.mark.parametrize("seed", SEEDS)
def test_the_course(seed: int, record_result: Recorder) -> None:
    from estragon.trainers.sb3.evaluating import play_model
    from estragon.trainers.sb3.settings import Sb3Settings

    folder = run_folder(f"spacetime-course-{seed}")
    folder.mkdir(parents=True, exist_ok=True)
    words = ["train", "scene", "--num_envs", "64", "--timesteps", str(COURSE_STEPS)]
    words += ["--seed", str(seed), "--output", str(folder), "--experiment_name", "course"]
    run = run_once(words, folder)
    settings = Sb3Settings(
        env_path=str(paths.godot_project()),
        scene=SCENE,
        arguments={"parameter.rigs": 64, "parameter.task": "course"},
        seed=1_000_000_007 + seed,
        inference=True,
    )
    model = folder / "models" / "course_final.zip"
    found, sampled = (
        play_model(settings, model, 128, deterministic=deterministic)
        for deterministic in (True, False)
    )
    record_result(
        f"SpaceTime: course, seed {seed}",
        f"{run.steps:,} steps in {run.seconds / 60:.1f} minutes (limit: {MINUTES}): {share(found)} "
        f"of {len(found)} unseen courses within 60 s without vignette and collision (aim: 90%); "
        f"arrives in {mean(found, 'goal_reached'):.0%}, {mean(found, 'vignettes'):.2f} vignettes, "
        f"{mean(found, 'collisions'):.2f} collisions, {mean(found, 'time_sec'):.0f} s; "
        f"with sampled actions {share(sampled)}",
        held=mean(found, "success") >= 0.9,
    )


def test_a_curriculum_needs_fewer_steps(record_result: Recorder) -> None:
    """Without rewards on the way, a beginner hardly ever finds a goal that is 10 m away."""
    needed: dict[str, list[int | None]] = {"with": [], "without": []}
    limit = 200_000
    for seed in SEEDS:
        plain = usual(seed, total_timesteps=limit, eval_freq=20_000, eval_episodes=64)
        plain.training.stop_at_success = 0.8
        for term in ("progress", "smooth_movement", "comfort_bonus"):
            setattr(plain.rewards, term, 0.0)
        staged = RLConfig.from_dict(plain.to_dict())
        staged.training.use_curriculum = True
        staged.training.curriculum_stages = [
            CurriculumStage("beside", 3.0, 40_000),
            CurriculumStage("near", 6.0, 40_000),
            CurriculumStage("easy", 10.0, 40_000),
            CurriculumStage("hard", 30.0, 80_000),
        ]
        needed["with"].append(train(f"staged-{seed}", staged).reached(0.8))
        needed["without"].append(train(f"plain-{seed}", plain).reached(0.8))
    counts = {name: [each or limit for each in found] for name, found in needed.items()}
    fewer = sum(counts["with"]) < sum(counts["without"])
    record_result(
        "SpaceTime: steps with and without a curriculum",
        "no rewards on the way; steps until 80% of 64 held-out goals 10 to 30 m away are reached, "
        "3 seeds: "
        + "; ".join(
            f"{name} a curriculum "
            + ", ".join(f"{each:,}" if each else f"not in {limit:,}" for each in found)
            for name, found in needed.items()
        ),
        held=fewer,
    )
    assert fewer


def test_comfort_optimized_is_more_comfortable(record_result: Recorder) -> None:
    told, better = [], []
    for seed in SEEDS:
        plain = usual(seed, total_timesteps=100_000)
        # With 0.99, arriving sooner is worth more than either preset pays for comfort.
        plain.ppo.gamma = 0.997
        comfort = RLConfig.from_dict(plain.to_dict())
        preset = RLConfig.preset("comfort_optimized")
        comfort.rewards, comfort.actions = preset.rewards, preset.actions
        found = [
            evaluate(train(f"{name}-{seed}", config).model, config, 128)
            for name, config in (("patient", plain), ("comfort", comfort))
        ]
        scores = [np.array(each.custom["comfort_mean"]) for each in found]
        gain = float(scores[1].mean() - scores[0].mean())
        error = 1.96 * math.sqrt(sum(each.var() / len(each) for each in scores))
        times = [mean(each, "time_sec") for each in found]
        better.append(gain > error)
        told.append(
            f"comfort {scores[0].mean():.3f} → {scores[1].mean():.3f} ({gain:+.3f} ± {error:.3f}), "
            f"{times[0]:.1f} s → {times[1]:.1f} s, "
            f"goals {mean(found[0], 'success'):.0%} → {mean(found[1], 'success'):.0%}"
        )
    record_result(
        "SpaceTime: comfort_optimized",
        f"usual rewards → comfort_optimized, 100,000 steps each with gamma 0.997, "
        f"128 goals 10 to 30 m away, 3 seeds: {'; '.join(told)}",
        held=all(better),
    )
    assert all(better)


def maze(seed: int, *, has_memory: bool) -> RLConfig:
    """Discrete moves of 1 m and turns of 45°; bumping into a wall costs little."""
    config = usual(seed, total_timesteps=500_000 if has_memory else 1_000_000)
    config.environment.tasks = ["maze"]
    config.actions.type = "discrete"
    config.rewards.collision_penalty = -1.0
    config.network.net_arch = [128, 128]
    config.ppo.n_steps, config.ppo.batch_size, config.ppo.n_epochs = 128, 1024, 6
    config.ppo.learning_rate, config.ppo.ent_coef = 5e-4, 0.01
    if has_memory:
        config.network.policy, config.network.net_arch = "MlpLstmPolicy", [64]
        config.ppo.lstm_hidden_size, config.ppo.batch_size, config.ppo.n_epochs = 64, 2048, 4
    return config


def test_random_actions_in_mazes(record_result: Recorder) -> None:
    found = evaluate(None, maze(0, has_memory=False), 128)
    record_result("SpaceTime: unseen mazes, random actions", f"{MAZES}: {share(found)}")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["PPO", "PPO with a memory"])
def test_unseen_mazes(name: str, seed: int, record_result: Recorder) -> None:
    config = maze(seed, has_memory="memory" in name)
    run = train(f"maze-{name.replace(' ', '-')}-{seed}", config)
    found = {
        deterministic: evaluate(run.model, config, 128, deterministic=deterministic)
        for deterministic in (True, False)
    }
    best = max(mean(each, "success") for each in found.values())
    record_result(
        f"SpaceTime: unseen mazes, {name}, seed {seed}",
        f"{MAZES}, {run.steps:,} steps in {run.seconds / 60:.1f} minutes (limit: {MINUTES}): "
        f"{share(found[True])}, with sampled actions {share(found[False])} (aim: 70%)",
        held=best >= 0.7,
    )


def test_quick_test_is_quick(record_result: Recorder) -> None:
    run = train("quick", RLConfig.preset("quick_test"))
    metrics = (run.folder / "logs" / "PPO_1" / "run.metrics.jsonl").read_text().splitlines()
    seconds = json.loads(metrics[-1])["time_total_s"]
    record_result(
        "SpaceTime: quick_test",
        f"10,000 steps in {seconds:.0f} s of training (wanted: 40), {run.seconds:.0f} s in all",
        held=seconds <= 40,
    )
    assert seconds <= 40


def test_killed_and_resumed(record_result: Recorder) -> None:
    folder = run_folder("spacetime-killed")
    config = usual(0, total_timesteps=100_000, save_freq=10_000, eval_freq=0)
    folder.mkdir(parents=True, exist_ok=True)
    config.to_json(folder / "config.json")
    words = [sys.executable, "-m", "estragon", "train", "spacetime"]
    words += ["--config", str(folder / "config.json"), "--output", str(folder)]
    with subprocess.Popen(words) as process:
        while not list(folder.glob("checkpoints/*.zip")):
            assert process.poll() is None
            time.sleep(1.0)
        os.kill(process.pid, signal.SIGKILL)
    newest = max(folder.glob("checkpoints/*.zip"), key=lambda path: path.stat().st_mtime)
    done = subprocess.run(
        [*words, "--resume", str(newest)], check=True, capture_output=True, text=True
    )
    assert "resuming at" in done.stderr
    assert Trained(folder, done.stdout, 0.0).steps >= 100_000
    record_result(
        "SpaceTime: killed and resumed",
        f"SIGKILL, then --resume {newest.name}: trained on to 100,000 steps",
    )
