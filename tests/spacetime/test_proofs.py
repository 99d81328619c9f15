"""What agents learn in the VR scene, how fast, and what survives: the long runs."""

import dataclasses
import json
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

from estragon.spacetime.config import CurriculumStage, RLConfig
from estragon.trainers.metrics import Episodes
from tests.prove import Recorder, run_folder

SEEDS = (0, 1, 2)
MINUTES = 15
EPISODES = 200
MIDDLE_MAZE = 5
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
    def best(self) -> Path:
        return self.folder / "best_models" / "best_model.zip"

    def reached(self, success: float) -> int | None:
        """Steps until an evaluation had this share of successes."""
        for steps, share in re.findall(
            r"evaluation at ([\d,]+) steps:.*? success ([\d.]+)", self.said
        ):
            if float(share) >= success:
                return int(steps.replace(",", ""))
        return None


def train(name: str, config: RLConfig, minutes: float | None = None) -> Trained:
    """Train in a process of its own, for so long or to the end; once."""
    folder = run_folder(f"spacetime-{name}")
    log = folder / "said.txt"
    if not log.exists():
        folder.mkdir(parents=True, exist_ok=True)
        config.to_json(folder / "config.json")
        words = ["train", "spacetime", "--config", str(folder / "config.json")]
        words += ["--output", str(folder)]
        start = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-m", "estragon", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=None if minutes is None else 60 * minutes)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                said, _ = process.communicate(timeout=600)
        assert process.returncode in (0, 130), said
        log.write_text(f"{time.monotonic() - start}\n{said}")
    seconds, _, said = log.read_text().partition("\n")
    return Trained(folder, said, float(seconds))


def evaluate(model: Path, config: RLConfig, episodes: int = EPISODES) -> Episodes:
    from estragon.trainers.sb3.navigation import Navigation

    return Navigation(config).evaluate(model, episodes)


def mean(found: Episodes, key: str) -> float:
    return float(np.mean(found.custom[key]))


def usual(seed: int, **training: Any) -> RLConfig:
    config = RLConfig()
    config.environment.num_environments = 16
    config.environment.max_episode_steps = 400
    config.ppo.n_steps = 128
    config.training.seed = seed
    config.training.total_timesteps = 50_000_000
    for name, value in training.items():
        setattr(config.training, name, value)
    return config


def easy(config: RLConfig) -> RLConfig:
    near = RLConfig.from_dict(config.to_dict())
    near.environment.min_goal_distance, near.environment.max_goal_distance = 5.0, 10.0
    return near


@pytest.mark.parametrize("seed", SEEDS)
def test_held_out_goals(seed: int, record_result: Recorder) -> None:
    config = usual(seed)
    run = train(f"goals-{seed}", config, MINUTES)
    full, near = evaluate(run.best, config), evaluate(run.best, easy(config))
    shares = mean(full, "success"), mean(near, "success")
    held = shares[0] >= 0.8 and shares[1] >= 0.95
    record_result(
        f"SpaceTime: held-out goals, seed {seed}",
        f"{MINUTES} minutes, {run.steps:,} steps: reaches {shares[0]:.1%} of goals 10 to 30 m away "
        f"(wanted: 80%), {shares[1]:.1%} of goals 5 to 10 m away (wanted: 95%), comfort "
        f"{mean(full, 'comfort_mean'):.2f}, {len(full)} episodes each",
        held=held,
    )
    assert held


def test_a_curriculum_needs_fewer_steps(record_result: Recorder) -> None:
    needed: dict[str, list[int | None]] = {"with": [], "without": []}
    for seed in SEEDS:
        plain = usual(seed, total_timesteps=600_000, eval_freq=20_000, eval_episodes=48)
        staged = RLConfig.from_dict(plain.to_dict())
        staged.training.use_curriculum = True
        staged.training.curriculum_stages = [
            CurriculumStage("easy", 10.0, 100_000),
            CurriculumStage("medium", 20.0, 200_000),
            CurriculumStage("hard", 30.0, 300_000),
        ]
        needed["without"].append(train(f"plain-{seed}", plain).reached(0.8))
        needed["with"].append(train(f"staged-{seed}", staged).reached(0.8))
    counts = {name: [each or 600_000 for each in found] for name, found in needed.items()}
    fewer = sum(counts["with"]) < sum(counts["without"])
    record_result(
        "SpaceTime: steps with and without a curriculum",
        "steps until 80% of goals 10 to 30 m away are reached, 3 seeds: "
        + "; ".join(
            f"{name} a curriculum {', '.join(f'{n:,}' if n else 'not in 600,000' for n in found)}"
            for name, found in needed.items()
        ),
        held=fewer,
    )
    assert fewer


def test_comfort_optimized_is_more_comfortable(record_result: Recorder) -> None:
    told, better = [], []
    for seed in SEEDS:
        plain = usual(seed, total_timesteps=1_000_000)
        comfort = usual(seed, total_timesteps=1_000_000)
        preset = RLConfig.preset("comfort_optimized")
        comfort.rewards, comfort.actions = preset.rewards, preset.actions
        found = [
            evaluate(train(f"{name}-{seed}", config).best, config)
            for name, config in (("usual", plain), ("comfort", comfort))
        ]
        scores = [mean(each, "comfort_mean") for each in found]
        times = [mean(each, "time_sec") for each in found]
        shares = [mean(each, "success") for each in found]
        better.append(scores[1] > scores[0])
        told.append(
            f"comfort {scores[0]:.3f} → {scores[1]:.3f}, {times[0]:.1f} s → {times[1]:.1f} s, "
            f"goals {shares[0]:.0%} → {shares[1]:.0%}"
        )
    record_result(
        "SpaceTime: comfort_optimized",
        f"usual rewards → comfort_optimized, 1,000,000 steps each, 3 seeds: {'; '.join(told)}",
        held=all(better),
    )
    assert all(better)


def test_unseen_mazes(record_result: Recorder) -> None:
    told = []
    for name, policy in (("PPO", "MlpPolicy"), ("PPO with a memory", "MlpLstmPolicy")):
        config = usual(0)
        config.environment.tasks = ["maze"]
        config.network.policy = policy  # type: ignore[assignment]
        run = train(f"maze-{policy}", config, MINUTES)
        share = mean(evaluate(run.best, config), "success")
        told.append(f"{name} {share:.1%} after {run.steps:,} steps")
    record_result(
        "SpaceTime: unseen mazes",
        f"{MIDDLE_MAZE} × {MIDDLE_MAZE} cells, {MINUTES} minutes each (aim: 70%): "
        f"{'; '.join(told)}",
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
