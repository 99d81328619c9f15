"""Any Godot game over the wire, beside the same game without one and the client of Godot RL Agents.

Agent-steps a second. The sides take turns, so that noise meets all alike. "Old" is our environment
where the game answers as an older addon does: in JSON.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, TextIO

from estragon.envs.gymnasium_env import GodotEnv
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.judge.bench import Figure
from estragon.support import paths

sys.path.insert(0, str(paths.checkout()))
try:
    from benchmarks._incumbent import NEWEST_PYTHON, PACES, Pace, incumbent_call, told
    from benchmarks._turns import Opened, Ours, take_turns
finally:
    sys.path.pop(0)

REPEAT = 8
ARENAS = 16
START_SEC = 90.0
RATE = "agent-steps/s"
PARALLEL = (1, 2, 4, 8)
"""How many games one environment plays at once."""


class Scene(NamedTuple):
    """What is played."""

    name: str
    path: str
    copies: str
    """The argument that says how many arenas there are."""


SCENES = (
    Scene("tag", "res://tag/train/TagTraining.tscn", "--arenas=16"),
    Scene("orchard", "res://examples/orchard/orchard.tscn", "--copies=16"),
    Scene("rays", "res://tests/bench_rays.tscn", "--copies=16"),
    Scene("marble", "res://examples/marble/marble.tscn", "--copies=16"),
)


def measure(seconds: float) -> list[Figure]:
    """For every game: without a wire, ours, ours with JSON, and the client of Godot RL Agents.

    Then one of them several times in parallel.
    """
    project = import_project(paths.godot_project())
    scenes = SCENES if seconds >= 1.0 else SCENES[-1:]
    counts = PARALLEL if seconds >= 1.0 else PARALLEL[:2]
    figures = [figure for scene in scenes for figure in _compare(project, scene, seconds)]
    figures += _parallel(project, SCENES[-1], counts, seconds)
    return [*figures, _drawn(seconds)]


def _drawn(seconds: float) -> Figure:
    """A game of one agent that sees a picture of 36 × 36 pixels, drawn wherever this runs."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "lookout"
        shutil.copytree(paths.checkout() / "tests/godot/addon/games/lookout", project)
        addon = Path("addons/godot_rl_agents")
        shutil.copytree(paths.godot_project() / addon, project / addon)
        with contextlib.closing(GodotEnv(project, action_repeat=REPEAT)) as env:
            turns = take_turns({"drawn": lambda: contextlib.nullcontext(Ours(env))}, seconds)
    return Figure("lookout_drawn", turns.rate("drawn"), RATE, 1, 1, REPEAT, "GodotEnv, an image")


def _compare(project: Path, scene: Scene, seconds: float) -> list[Figure]:
    sides: dict[str, tuple[Opened, str]] = {
        "bare": (partial(_bare, project, scene), "physics, sensors, rewards; no wire"),
        "ours": (partial(_ours, project, scene, "binary1"), "GodotEnv, binary1"),
        "ours_json": (partial(_ours, project, scene, "json"), "GodotEnv, as with an older addon"),
    }
    if sys.version_info[:2] <= NEWEST_PYTHON:
        for pace in PACES:
            note = f"godot-rl 0.8.2, speedup {pace.speedup}"
            sides[f"incumbent_{pace.speedup}"] = (partial(_incumbent, project, scene, pace), note)
    turns = take_turns({name: opened for name, (opened, _) in sides.items()}, seconds)
    agents = 2 if scene.name == "tag" else 1
    figures = [
        Figure(f"{scene.name}_{name}", turns.rate(name), RATE, ARENAS, agents, REPEAT, note)
        for name, (_, note) in sides.items()
    ]
    compared = [("ours", "bare")]
    if others := [name for name in sides if name.startswith("incumbent")]:
        best = max(others, key=turns.rate)
        compared += [("ours", best), ("ours_json", best)]
    for above, below in compared:
        name = f"{scene.name}_{above}_over_{below.partition('_')[0]}"
        ratio = turns.ratio(above, below)
        figures.append(Figure(name, ratio, "×", ARENAS, agents, REPEAT, "median of the rounds"))
    return figures


def _parallel(project: Path, scene: Scene, counts: tuple[int, ...], seconds: float) -> list[Figure]:
    """All games of an environment together; by themselves, for games that wait take time too."""
    figures: list[Figure] = []
    for count in counts:
        opened = partial(_ours, project, scene, "binary1", count)
        rate = take_turns({"ours": opened}, seconds).rate("ours")
        note = f"n_parallel={count} on {os.cpu_count()} processors"
        name = f"{scene.name}_parallel_{count}"
        figures.append(Figure(name, rate, RATE, count * ARENAS, 1, REPEAT, note))
    return figures


class Bare:
    """A game by itself, which plays when it is told to."""

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines
        self.agents = int(lines.readline())

    def play(self, steps: int) -> float:
        """Play so many steps of all agents; the seconds that it took."""
        self._lines.write(f"{steps}\n")
        self._lines.flush()
        return int(self._lines.readline()) / 1e6


@contextlib.contextmanager
def _bare(project: Path, scene: Scene) -> Iterator[Bare]:
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        server.settimeout(START_SEC)
        words: list[str | Path] = ["--headless", "--path", project, "--fixed-fps", "60"]
        words += ["-s", "res://tests/bench_scene.gd", "--", f"--scene={scene.path}", scene.copies]
        words += [f"--port={server.getsockname()[1]}", f"--action_repeat={REPEAT}"]
        with GodotProcess(words, folder=Path(folder)):
            connection, _ = server.accept()
            with connection, connection.makefile("rw") as lines:
                connection.settimeout(START_SEC)
                yield Bare(lines)


@contextlib.contextmanager
def _ours(project: Path, scene: Scene, encoding: str, n_parallel: int = 1) -> Iterator[Ours]:
    key, _, value = scene.copies.removeprefix("--").partition("=")
    env = GodotEnv(
        project,
        scene=scene.path,
        action_repeat=REPEAT,
        encoding=encoding,
        n_parallel=n_parallel,
        arguments={key: value},
    )
    with contextlib.closing(env):
        yield Ours(env)


class Incumbent:
    """The client of Godot RL Agents with the same game."""

    def __init__(self, says: IO[str], hears: IO[str]) -> None:
        self._says, self._hears = says, hears
        self.agents = int(told(self._says, "agents"))

    def play(self, steps: int) -> float:
        """Play so many steps of all agents; the seconds that it took."""
        self._hears.write(f"{steps}\n")
        self._hears.flush()
        return told(self._says, "seconds")


@contextlib.contextmanager
def _incumbent(project: Path, scene: Scene, pace: Pace) -> Iterator[Incumbent]:
    numbers = (*pace, REPEAT)
    with (
        incumbent_call(
            "_incumbent_client.py", project, scene.path, scene.copies, *numbers
        ) as words,
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        if process.stdin is not None and process.stdout is not None:
            yield Incumbent(process.stdout, process.stdin)
            process.stdin.close()  # which is its end
            process.stdout.read()
