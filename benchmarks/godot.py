"""How fast real Godot plays: agent-decisions a second, beside a bare scene with the same bodies."""

import json
import tempfile
from pathlib import Path

from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.judge.bench import Figure
from estragon.support import paths

ARENAS = (1, 8, 32)
AGENTS = 2
START_SEC = 60.0


def measure(seconds: float) -> list[Figure]:
    """One row an arena count for the game, one for the bare scene, and their ratio."""
    project = import_project(paths.godot_project())
    figures = []
    for arenas in ARENAS:
        rates = play_bare(project, arenas, seconds)
        note = "movement, eyes, bodies; no wire"
        figures += [
            Figure(
                f"godot_agent_decisions_per_s_{arenas}",
                rates["game"],
                "agent-decisions/s",
                arenas,
                AGENTS,
                3,
                note,
            ),
            Figure(
                f"godot_bare_scene_per_s_{arenas}",
                rates["bare"],
                "agent-decisions/s",
                arenas,
                AGENTS,
                3,
                "the same bodies, no eyes",
            ),
            Figure(
                f"godot_over_bare_scene_{arenas}",
                rates["game"] / rates["bare"],
                "×",
                arenas,
                AGENTS,
                3,
                "game over bare",
            ),
        ]
    return figures


def play_bare(project: Path, arenas: int, seconds: float) -> dict[str, float]:
    """Agent-decisions a second without a wire: of the `game`, and of the `bare` scene."""
    words: list[str | Path] = ["--headless", "--path", project, "--fixed-fps", "60"]
    words += ["-s", "res://tests/bench.gd", "--", str(arenas), str(seconds)]
    with (
        tempfile.TemporaryDirectory() as folder,
        GodotProcess(words, folder=Path(folder)) as process,
    ):
        line = process.wait_for_line(
            "its figures", lambda text: text.startswith("{"), START_SEC + 3 * seconds
        )
    rates: dict[str, float] = json.loads(line)
    return rates
