"""Stable-Baselines3's PPO on our environment, and on that of Godot RL Agents: agent-steps a second.

The same game, the same settings, learning included. In Orchard the game takes most of the time; in
the light game nothing does but the wire and the learning. The sides take turns.
"""

import contextlib
import functools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from estragon.godot.project import import_project
from estragon.judge.bench import Figure
from estragon.support import paths
from estragon.support.errors import UserError

sys.path.insert(0, str(paths.checkout()))
try:
    from benchmarks._incumbent import NEWEST_PYTHON, PACES, Pace, incumbent_call, told
finally:
    sys.path.pop(0)
try:
    from stable_baselines3 import PPO

    from estragon.envs.sb3_env import GodotVecEnv
except ImportError as error:
    raise UserError(
        "benchmarks/trainers.py needs Stable-Baselines3: pip install 'estragon[sb3]', "
        "or name the other programs: estragon bench engine godot"
    ) from error

REPEAT = 8
RATE = "agent-steps/s"
ROUNDS = 3
TIMEOUT_SEC = 600.0
PRETEND_RATE = 4000.0
"""Agent-steps a second, to make steps of the seconds that a measurement may take."""


class Scene(NamedTuple):
    """What is learned."""

    name: str
    path: str
    agents: int
    copies: str
    """The argument that says how many agents there are."""


SCENES = (
    Scene("light", "res://tests/bench_light.tscn", 64, "agents"),
    Scene("orchard", "res://examples/orchard/orchard.tscn", 16, "copies"),
)


def measure(seconds: float) -> list[Figure]:
    """For both games: ours, theirs, and how many times as fast ours is."""
    project = import_project(paths.godot_project())
    rounds, scenes = (ROUNDS, SCENES) if seconds >= 1.0 else (1, SCENES[:1])
    return [figure for scene in scenes for figure in _compare(project, scene, rounds, seconds)]


def _compare(project: Path, scene: Scene, rounds: int, seconds: float) -> list[Figure]:
    horizon = 32
    round_steps = horizon * scene.agents
    updates = max(1, round(seconds * PRETEND_RATE / round_steps))
    asked: dict[str, Any] = {
        "repeat": REPEAT,
        "warm_up": round_steps,
        "steps": updates * round_steps,
        "ppo": {"n_steps": horizon, "batch_size": round_steps // 4, "n_epochs": 4},
    }
    sides: dict[str, tuple[Callable[[Path, Scene, dict[str, Any]], float], str]] = {
        "ours": (_learn_with_ours, "GodotVecEnv")
    }
    if sys.version_info[:2] <= NEWEST_PYTHON:
        for pace in PACES:
            learn = functools.partial(_learn_with_the_incumbent, pace=pace)
            note = f"godot-rl 0.8.2, speedup {pace.speedup}"
            sides[f"incumbent_{pace.speedup}"] = (learn, note)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, (learn, _) in sides.items():
            rates[name].append(learn(project, scene, asked))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    figures = [
        Figure(f"ppo_{scene.name}_{name}", middle[name], RATE, 1, scene.agents, REPEAT, note)
        for name, (_, note) in sides.items()
    ]
    if others := [name for name in sides if name != "ours"]:
        best = max(others, key=lambda name: middle[name])
        ratio = statistics.median(
            ours / theirs for ours, theirs in zip(rates["ours"], rates[best], strict=True)
        )
        name = f"ppo_{scene.name}_ours_over_incumbent"
        figures.append(Figure(name, ratio, "×", 1, scene.agents, REPEAT, "median of the rounds"))
    return figures


def _learn_with_ours(project: Path, scene: Scene, asked: dict[str, Any]) -> float:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with contextlib.closing(
            GodotVecEnv(
                project,
                scene=scene.path,
                action_repeat=asked["repeat"],
                arguments={scene.copies: scene.agents},
            )
        ) as env:
            model = PPO("MultiInputPolicy", env, **asked["ppo"])
            model.learn(asked["warm_up"])
            start = time.perf_counter()
            model.learn(asked["steps"], reset_num_timesteps=False)
            taken = model.num_timesteps - asked["warm_up"]
            return taken / (time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)


def _learn_with_the_incumbent(
    project: Path, scene: Scene, asked: dict[str, Any], pace: Pace
) -> float:
    copies = f"--{scene.copies}={scene.agents}"
    program = "_incumbent_trainer.py"
    with incumbent_call(program, project, scene.path, copies, *pace, json.dumps(asked)) as words:
        done = subprocess.run(
            words, check=True, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_SEC
        )
    return told(done.stdout.splitlines(), RATE)
