"""A match logged by either engine is the same match to the bit, whoever writes the file."""

import os
from pathlib import Path
from typing import Any

import pytest

from estragon.cli import main
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.show.trajectory_reader import read_trajectory
from estragon.support import paths
from tests.show.logged_matches import records

TIMEOUT_SEC = 120.0
TICKS = 2 * 600 + 90 + 10
"""Two matches that last the whole time, the rest between them, and a little more."""


def logged(folder: Path) -> dict[tuple[int, int], Path]:
    """The files of a folder, by arena and episode."""
    files = sorted((folder / "trajectories").iterdir())
    starts = [(path, read_trajectory(path).start) for path in files]
    return {(start.arena, start.episode): path for path, start in starts}


def without_engine(path: Path) -> list[dict[str, Any]]:
    lines = records(path)
    del lines[0]["engine"]
    return lines


def evaluate(folder: Path, *words: str) -> dict[tuple[int, int], Path]:
    """Log matches with the command."""
    players = ["--seeker", "bot:chaser", "--hider", "bot:evader", "--seed", "5"]
    log = ["--log-trajectories", "--data-root", str(folder)]
    assert main(["eval", "tag", *players, *log, *words]) == 0
    return logged(folder)


def test_both_engines_log_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_LOG_TRAJECTORIES", "1")
    monkeypatch.setenv("AI_DATA_ROOT", str(tmp_path / "by godot itself"))
    words = ["--episodes", "4", "--rules", "transfer", "--layout", "playground,random:0-3"]
    embedded = evaluate(tmp_path / "embedded", *words)
    godot = evaluate(tmp_path / "godot", *words, "--engine", "godot")
    assert list(embedded) == list(godot) == [(arena, 0) for arena in range(4)]
    for match, path in embedded.items():
        assert records(path)[0]["engine"] == "embedded"
        assert records(godot[match])[0]["engine"] == "godot"
        assert without_engine(path) == without_engine(godot[match])
    assert not (tmp_path / "by godot itself").exists(), "Python plays and logs"


def test_godot_logs_what_it_plays(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    project = import_project(paths.godot_project())
    words = ["--headless", "--path", str(project), "--fixed-fps", "60"]
    options = ["--quit-after", str(TICKS), "--", "--play=nobody", "--arenas=2", "--seed=5"]
    env = os.environ | {"AI_LOG_TRAJECTORIES": "1", "AI_DATA_ROOT": str(folder)}
    with GodotProcess([*words, *options], folder=tmp_path, env=env) as process:
        assert process.wait("two matches in each arena", TIMEOUT_SEC) == 0
    found = logged(folder)
    assert {(0, 0), (0, 1), (1, 0), (1, 1)} <= set(found)
    assert all(path.name.startswith("ep_") for path in found.values())
    for (arena, episode), path in found.items():
        trajectory = read_trajectory(path)
        assert trajectory.start.engine == "godot"
        assert trajectory.start.players == {"seeker": "bot:chaser", "hider": "bot:evader"}
        assert trajectory.anomalies == []
        assert path.name.endswith(f"_{arena:04d}_{episode:05d}.jsonl")
    embedded = evaluate(tmp_path / "embedded", "--episodes", "2")
    for match, path in embedded.items():
        assert without_engine(path) == without_engine(found[match])
