"""How fast Godot plays live, each decision answered over the wire, beside the game without a wire.

The server is in this process and plays at random; Godot is another. The sides take turns, so that
noise meets both alike.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from estragon import paths
from estragon.check.bench import Figure
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.live.brains import RandomBrain
from estragon.live.desk import Brains
from estragon.live.server import LiveServer

sys.path.insert(0, str(paths.checkout()))
try:
    from benchmarks.godot import AGENTS, play_bare
finally:
    sys.path.pop(0)

ARENAS = (1, 4, 16, 32)
ROUNDS = 3
START_SEC = 60.0
WARM_UP_SEC = 0.5


def measure(seconds: float) -> list[Figure]:
    """For every arena count: live, without a wire, and their ratio."""
    project = import_project(paths.godot_project())
    figures = []
    for arenas in ARENAS:
        bare, live = [], []
        for _ in range(ROUNDS):
            bare.append(play_bare(project, arenas, seconds / ROUNDS)["game"])
            live.append(_play_live(project, arenas, seconds / ROUNDS))
        rate, alone = statistics.median(live), statistics.median(bare)
        unit = "agent-decisions/s"
        figures += [
            Figure(f"live_{arenas}", rate, unit, arenas, AGENTS, 3, "server at random"),
            Figure(f"live_without_wire_{arenas}", alone, unit, arenas, AGENTS, 3, "no wire"),
            Figure(f"live_over_bare_{arenas}", rate / alone, "×", arenas, AGENTS, 3, ""),
        ]
    return figures


def _play_live(project: Path, arenas: int, seconds: float) -> float:
    env = os.environ | {"AI_TRAINING_MODE": "1"}
    words: list[str | Path] = ["--headless", "--path", project, "--fixed-fps", "60", "--"]
    with (
        tempfile.TemporaryDirectory() as folder,
        LiveServer(Brains(lambda _: RandomBrain(0)), port=0) as server,
        GodotProcess(
            [*words, f"--server=ws://127.0.0.1:{server.port}", f"--arenas={arenas}"],
            folder=Path(folder),
            env=env,
        ) as game,
    ):
        game.wait_for_line("the server", lambda line: "connected: " in line, START_SEC)
        time.sleep(WARM_UP_SEC)
        before, start = server.counts.decisions, time.perf_counter()
        time.sleep(seconds)
        return (server.counts.decisions - before) / (time.perf_counter() - start)
