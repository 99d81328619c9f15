"""Any Godot game over the wire, beside the same game without one and the client of Godot RL Agents.

Agent-steps a second. The sides take turns, so that noise meets all alike. "Old" is our environment
where the game answers as an older addon does: in JSON.
"""

import functools
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from estragon import paths
from estragon.check.bench import Figure
from estragon.godot import GodotEnv
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project

sys.path.insert(0, str(paths.checkout()))
try:
    from benchmarks._incumbent import NEWEST_PYTHON, PACES, RATE, Pace, incumbent_rate
finally:
    sys.path.pop(0)

REPEAT = 8
ARENAS = 16
ROUNDS = 5
"""That the sides take; one, and one game, where there is no time to measure anything anyway."""
START_SEC = 90.0
WARM_UP_STEPS = 20


class Scene(NamedTuple):
    """What is played."""

    name: str
    path: str
    copies: str
    """The argument that says how many arenas there are."""


SCENES = (
    Scene("tag", "res://tag/train/TagTraining.tscn", "--arenas=16"),
    Scene("orchard", "res://examples/orchard/orchard.tscn", "--copies=16"),
    Scene("marble", "res://examples/marble/marble.tscn", "--copies=16"),
)


def measure(seconds: float) -> list[Figure]:
    """For every game: without a wire, ours, ours with JSON, and the client of Godot RL Agents."""
    project = import_project(paths.godot_project())
    rounds, scenes = (ROUNDS, SCENES) if seconds >= 1.0 else (1, SCENES[-1:])
    figures = []
    for scene in scenes:
        figures += _compare(project, scene, rounds, seconds / rounds)
    return figures


def _compare(project: Path, scene: Scene, rounds: int, seconds: float) -> list[Figure]:
    sides: dict[str, tuple[Callable[[Path, Scene, float], float], str]] = {
        "bare": (_play_bare, "physics, sensors, rewards; no wire"),
        "ours": (_play_ours, "GodotEnv, binary1"),
        "ours_json": (_play_ours_in_json, "GodotEnv, as with an older addon"),
    }
    if sys.version_info[:2] <= NEWEST_PYTHON:
        sides |= {
            f"incumbent_{pace.speedup}": (
                functools.partial(_play_with_the_incumbent, pace=pace),
                f"godot-rl 0.8.2, speedup {pace.speedup}",
            )
            for pace in PACES
        }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, (play, _) in sides.items():
            rates[name].append(play(project, scene, seconds))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    agents = 2 if scene.name == "tag" else 1
    figures = [
        Figure(f"{scene.name}_{name}", middle[name], RATE, ARENAS, agents, REPEAT, note)
        for name, (_, note) in sides.items()
    ]
    compared = [("ours", "bare")]
    if others := [name for name in sides if name.startswith("incumbent")]:
        best = max(others, key=lambda name: middle[name])
        compared += [("ours", best), ("ours_json", best)]
    for above, below in compared:
        name = f"{scene.name}_{above}_over_{below.partition('_')[0]}"
        pairs = zip(rates[above], rates[below], strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        figures.append(Figure(name, ratio, "×", ARENAS, agents, REPEAT, "median of the rounds"))
    return figures


def _play_bare(project: Path, scene: Scene, seconds: float) -> float:
    words: list[str | Path] = ["--headless", "--path", project, "--fixed-fps", "60"]
    words += ["-s", "res://tests/bench_scene.gd", "--", f"--scene={scene.path}", scene.copies]
    words += [f"--seconds={seconds}", f"--action_repeat={REPEAT}"]
    with (
        tempfile.TemporaryDirectory() as folder,
        GodotProcess(words, folder=Path(folder)) as process,
    ):
        line = process.wait_for_line(
            "its figures", lambda text: text.startswith("{"), START_SEC + 3 * seconds
        )
    return float(json.loads(line)["agent_steps_per_s"])


def _play_ours(project: Path, scene: Scene, seconds: float, encoding: str = "binary1") -> float:
    key, _, value = scene.copies.removeprefix("--").partition("=")
    env = GodotEnv(
        project,
        scene=scene.path,
        action_repeat=REPEAT,
        encoding=encoding,
        arguments={key: value},
    )
    try:
        env.reset(seed=0)
        actions = itertools.cycle([env.action_space.sample() for _ in range(16)])
        for _ in range(WARM_UP_STEPS):
            env.step(next(actions))
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            env.step(next(actions))
            steps += 1
        return steps * env.num_envs / (time.perf_counter() - start)
    finally:
        env.close()


def _play_ours_in_json(project: Path, scene: Scene, seconds: float) -> float:
    return _play_ours(project, scene, seconds, "json")


def _play_with_the_incumbent(project: Path, scene: Scene, seconds: float, pace: Pace) -> float:
    return incumbent_rate(
        "_incumbent_client.py",
        project,
        scene.path,
        scene.copies,
        seconds,
        *pace,
        REPEAT,
        timeout_sec=START_SEC + 10 * seconds,
    )
