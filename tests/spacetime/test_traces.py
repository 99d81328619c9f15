"""`estragon eval scene`: traces that replay, what it refuses, and kills."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.cli import main
from estragon.spacetime.scenes import PRESETS
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.trainers.sb3.evaluating import opened
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.sb3.traces import Trace, record
from tests.envs.staging import assert_gone, games_of

TRACE: dict[str, Any] = {
    "scene": PRESETS["ui_interaction"].scene,
    "arguments": {"parameter.rigs": 1},
    "seed": 1,
    "actions": [[0.0] * 4],
    "reward": 0.0,
    "figures": {"leaf": 1.0},
}
NO_TRACES: dict[str, tuple[Any, str]] = {
    "nothing": (b"", "is not valid JSON"),
    "noise": (bytes(range(256)), "is not valid JSON"),
    "a list": ([], "Expected 'object', got 'array'"),
    "a part": ({"scene": "res://x.tscn"}, "missing required field 'arguments'"),
    "text for actions": (TRACE | {"actions": "up"}, "Expected 'array', got 'str'"),
    "a negative seed": (TRACE | {"seed": -1}, "Expected 'int' >= 0"),
    "nested arguments": (TRACE | {"arguments": {"parameter.rigs": [1]}}, "got 'array'"),
}


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What `estragon eval scene` says when it ends with 2: one line."""
    capsys.readouterr()
    assert main(["eval", "scene", "--preset", "ui_interaction", *words]) == 2
    said = [
        line for line in capsys.readouterr().err.splitlines() if not line.startswith("importing")
    ]
    assert len(said) == 1, said
    return said[0]


@pytest.mark.parametrize("name", NO_TRACES)
def test_what_is_no_trace(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, reason = NO_TRACES[name]
    path = tmp_path / "trace.json"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    assert reason in refused(["--replay", str(path)], capsys)


def test_what_eval_scene_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "noise.zip").write_bytes(bytes(range(256)))
    for words, reason in (
        (["--model", str(tmp_path / "none.zip")], "No such file"),
        (["--model", str(tmp_path / "noise.zip")], "is not a model"),
        (["--model", str(tmp_path)], "Is a directory"),
        (["--replay", str(tmp_path / "none.json")], "No such file"),
        (["--replay", str(tmp_path)], "Is a directory"),
        (["--random", "--trace", str(tmp_path)], "is a folder"),
        (["--random", "--trace", str(tmp_path / "noise.zip" / "x.json")], "cannot write"),
        (["--random", "--seed", "-1"], "--seed: expected 0 to 2147483647"),
        (["--random", "--episodes", "0"], "--episodes: expected at least 1"),
    ):
        assert reason in refused(words, capsys), words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"actions": [[0.0] * 5]}, "its actions have 4 numbers, not 5"),
        ({"actions": []}, "the trace ends before its episode, after 0 actions"),
        ({}, "the trace ends before its episode, after 1 actions"),
        ({"scene": "res://none.tscn"}, "no scene res://none.tscn"),
    ],
)
def test_a_trace_of_something_else(
    changed: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE | changed))
    assert reason in refused(["--replay", str(path)], capsys)


@pytest.mark.slow
def test_a_figure_that_the_game_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    words = ["--random", "--episodes", "1", "--figure", "joy", "--trace", str(path)]
    said = refused(words, capsys)
    assert "no number 'joy'; use one of reward, " in said
    assert not path.exists()


@pytest.mark.slow
def test_a_game_that_is_killed_while_it_is_recorded() -> None:
    scene = PRESETS["spacecraft_landing"].scene
    arguments = {"parameter.rigs": 1}
    settings = Sb3Settings(
        env_path=str(paths.godot_project()), scene=scene, arguments=arguments, inference=True
    )
    others = games_of(os.getpid())  # such as one that all tests of this process share
    with opened(settings, None) as player:
        left = iter(range(3))

        def act(observed: Any) -> np.ndarray:
            if next(left, None) is None:
                for game in set(games_of(os.getpid())).difference(others):
                    os.kill(game, signal.SIGKILL)
            return player.act(observed)

        with pytest.raises(UserError, match="the game was lost"):
            record(settings, player.env, act, 1, "reward")


@pytest.mark.slow
def test_a_command_that_is_stopped_leaves_no_trace_and_no_game(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    words = ["--preset", "spacecraft_landing", "--random", "--episodes", "1000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "estragon", "eval", "scene", *words, "--trace", str(path)]
    )
    try:
        games: set[int] = set()
        end = time.monotonic() + 120.0
        while not games:
            assert time.monotonic() < end
            before = games_of(process.pid)
            time.sleep(3.0)
            # A game that lives for so long plays; others only tell their version.
            games = set(before).intersection(games_of(process.pid))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) != 0
        assert_gone(list(games))
        assert not path.exists()
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_trace_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.json"
    words = ["eval", "scene", "--preset", "ui_interaction", "--random", "--episodes", "1"]
    assert main([*words, "--trace", str(trace)]) == 0
    assert Trace.read(trace).actions
    capsys.readouterr()
    assert main(["eval", "scene", "--replay", str(trace)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {"presses", "leaf"} <= {row[0] for row in rows}
    assert all(first == again for _, first, again in rows)
