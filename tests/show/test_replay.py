"""A replay in Godot shows what either engine logged, to the bit, and the way between as told."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.cli import main
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.show.trajectory import NOBODY, Trajectory
from estragon.show.trajectory_reader import read_trajectory
from estragon.support import paths
from estragon.tag.rules import OBS

TIMEOUT_SEC = 120.0
GOING_ON, TAGGED, TIMED_OUT = 0, 1, 2


@pytest.fixture(scope="module")
def project() -> Path:
    return import_project(paths.godot_project())


def logged(folder: Path, engine: str, rules: str) -> Path:
    """A match between two bots."""
    words = ["eval", "tag", "--seeker", "bot:chaser", "--hider", "bot:evader", "--seed", "3"]
    words += ["--episodes", "1", "--layout", "random:7", "--rules", rules, "--engine", engine]
    assert main([*words, "--log-trajectories", "--data-root", str(folder)]) == 0
    (path,) = (folder / "trajectories").iterdir()
    return path


def run(project: Path, folder: Path, scene: list[str], options: list[str]) -> tuple[int, list[str]]:
    words = ["--headless", "--path", str(project), "--fixed-fps", "60", *scene, "--", *options]
    with GodotProcess(words, folder=folder) as process:
        return process.wait("its end", TIMEOUT_SEC), process.lines()


def shown(project: Path, path: Path, seconds: list[float], folder: Path) -> list[dict[str, Any]]:
    """What Godot shows at these seconds of a match."""
    times = folder / "times.json"
    times.write_text(json.dumps(seconds))
    options = [f"--replay={path}", f"--times={times}"]
    status, lines = run(project, folder, ["-s", "res://tests/replay_probe.gd"], options)
    assert status == 0, lines
    told = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(told) == len(seconds), lines
    for moment in told:
        for key, kind in (("agents", "<f8"), ("bodies", "<f4"), ("sights", "<f4")):
            moment[key] = np.stack([np.frombuffer(bytes.fromhex(h), kind) for h in moment[key]])
    return told


def numbers_of(match: Trajectory, moment: int) -> np.ndarray:
    """Position, velocity and facing: (agents, 8)."""
    columns = (match.positions, match.velocities, match.forwards)
    return np.concatenate([column[moment] for column in columns], axis=1)


def between(match: Trajectory, moment: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions (agents, 3) and angles (agents,) between two moments, as docs tell it."""
    start, end = match.positions[moment], match.positions[moment + 1]
    length_sec = match.seconds[moment + 1] - match.seconds[moment]
    leaving, arriving = match.velocities[moment : moment + 2] * length_sec
    place = (2 * share**3 - 3 * share**2 + 1) * start + (3 * share**2 - 2 * share**3) * end
    place += (share**3 - 2 * share**2 + share) * leaving + (share**3 - share**2) * arriving
    place = np.clip(place, np.minimum(start, end), np.maximum(start, end))
    before, after = (np.arctan2(*match.forwards[m].T) for m in (moment, moment + 1))
    turn = (after - before + np.pi) % (2 * np.pi) - np.pi
    return place, before + share * turn


@pytest.mark.parametrize(("engine", "rules"), [("embedded", "transfer"), ("godot", "seek")])
def test_every_logged_tick_and_the_way_between(
    engine: str, rules: str, project: Path, tmp_path: Path
) -> None:
    path = logged(tmp_path / "data", engine, rules)
    match = read_trajectory(path)
    assert match.start.engine == engine
    shares = [(moment, share) for moment in range(len(match.ticks) - 1) for share in (0.3, 0.8)]
    seconds = [
        (1 - share) * match.seconds[moment] + share * match.seconds[moment + 1]
        for moment, share in shares
    ]
    told = shown(project, path, [*match.seconds.tolist(), *seconds], tmp_path)
    in_between = [told.pop() for _ in shares][::-1]
    for moment, seen in enumerate(told):
        over = moment == len(told) - 1
        np.testing.assert_array_equal(seen["agents"], numbers_of(match, moment))
        np.testing.assert_array_equal(seen["bodies"], match.positions[moment].astype(np.float32))
        np.testing.assert_array_equal(seen["on_floor"], match.on_floor[moment])
        np.testing.assert_array_equal(np.array(seen["immune_ticks"]) > 0, match.immune[moment])
        assert seen["tick"] == match.ticks[moment]
        assert match.is_seeker[moment, seen["seeker"]]
        assert seen["end"] == ((TAGGED if match.tagged else TIMED_OUT) if over else GOING_ON)
        assert seen["winner"] == (match.winner if over else NOBODY)
        reaches = match.ray_distances[moment] / match.game_rules().eyes.range_m
        np.testing.assert_allclose(seen["sights"][:, OBS.rays :: 3], reaches, rtol=1e-6)
        kinds = seen["sights"][:, OBS.rays + 1 :: 3] + 2 * seen["sights"][:, OBS.rays + 2 :: 3]
        np.testing.assert_array_equal(kinds, match.ray_types[moment])
        np.testing.assert_array_equal(
            seen["sights"][:, OBS.opponent_visible] > 0.5, match.sees[moment]
        )
    if rules == "transfer":
        assert match.tags, "the role is handed over"
    for (moment, share), seen in zip(shares, in_between, strict=True):
        place, angle = between(match, moment, share)
        np.testing.assert_allclose(seen["agents"][:, :3], place, atol=1e-9)
        facing = np.stack([np.sin(angle), np.cos(angle)], axis=1)
        np.testing.assert_allclose(seen["agents"][:, 6:], facing, atol=1e-9)
        np.testing.assert_array_equal(seen["on_floor"], match.on_floor[moment])
        assert match.is_seeker[moment, seen["seeker"]]
        assert seen["tick"] in range(match.ticks[moment], match.ticks[moment + 1])
    assert all(b["moment"] > a["moment"] for a, b in pairwise(told))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: File not found"),
        ('{"type": "episode_start", "eyes": {"rays": 1e9}}\n', "line 1: rays: expected a number"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(
    text: str | None, says: str, project: Path, tmp_path: Path
) -> None:
    path = tmp_path / "match.jsonl"
    if text is not None:
        path.write_text(text)
    status, lines = run(project, tmp_path, ["res://scenes/Replay.tscn"], [f"--replay={path}"])
    assert status == 2
    said = [line for line in lines if line.startswith("estragon: ")]
    assert len(said) == 1
    assert said[0].startswith(f"estragon: {path}: {says}")
    assert not [line for line in lines if "SCRIPT ERROR" in line]


def test_no_file_and_an_empty_folder(project: Path, tmp_path: Path) -> None:
    scene = ["res://scenes/Replay.tscn"]
    status, lines = run(project, tmp_path, scene, [])
    assert status == 2
    assert "estragon: a replay needs a file: --replay=FILE, or AI_REPLAY_PATH" in lines
    status, lines = run(project, tmp_path, scene, [f"--replay={tmp_path}"])
    assert status == 2
    assert f"estragon: {tmp_path}: no matches (*.jsonl) in this folder" in lines
