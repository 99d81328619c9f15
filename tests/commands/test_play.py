"""Tag with trained policies and no Python: as Python plays them, exported, and in a window."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.cli import main
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.onnx.tag_export import load_exported as policy_in
from estragon.support import paths
from estragon.tag.layout import load_layouts
from estragon.tag.matches import Outcomes, play_matches
from estragon.tag.rules import Role, load_rules
from tests.envs.exporting import can_export, environment, kept_game
from tests.prove import Recorder

TIMEOUT_SEC = 120.0
PROOF_TIMEOUT_SEC = 1800.0
ARENAS = 64
MATCHES = 2000
POINTS = 0.04
"""How far win rates may be apart."""


def contest(seeker: str, hider: str, matches: int, *words: str) -> list[str]:
    """The game's own options for matches that it plays by itself."""
    options = [f"--seeker={seeker}", f"--hider={hider}", f"--matches={matches}"]
    return [*options, f"--arenas={min(matches, ARENAS)}", *words]


def told(lines: list[str]) -> dict[str, Any]:
    (line,) = (line for line in lines if line.startswith("{"))
    found: dict[str, Any] = json.loads(line)
    return found


def in_godot(folder: Path, options: list[str], timeout_sec: float = TIMEOUT_SEC) -> dict[str, Any]:
    """What came of matches that Godot played alone."""
    project = str(import_project(paths.godot_project()))
    words = ["--headless", "--path", project, "--fixed-fps", "60", "--", *options]
    with GodotProcess(words, folder=folder) as process:
        assert process.wait("the matches", timeout_sec) == 0, process.lines()
        return told(process.lines())


def from_python(seeker: str, hider: str, matches: int, seed: int, layout: str = "") -> Outcomes:
    """The same matches, played by the same policies in Python on the embedded engine."""
    rules = load_rules()

    def policy(level: str, role: Role) -> Any:
        return policy_in(paths.policies_folder() / f"{level}_{role}.onnx", rules)

    return play_matches(
        policy(seeker, "seeker"),
        policy(hider, "hider"),
        matches,
        rules=rules,
        layouts=load_layouts(layout or rules.layout, rules),
        seed=seed,
    )


def test_godot_alone_plays_the_matches_that_python_plays(tmp_path: Path) -> None:
    options = contest("champion", "expert", 24, "--seed=3", "--arenas=10", "--layout=playground")
    found = in_godot(tmp_path, options)
    right = from_python("champion", "expert", 24, 3, "playground")
    assert (found["seeker"], found["hider"], found["matches"]) == ("champion", "expert", 24)
    assert found["seeker_win_rate"] == pytest.approx(found["winners"].count(0) / 24)
    same = np.array(found["ticks"]) == right.ticks
    # rounding may decide between two moves that are equally good, but hardly ever
    assert same.sum() >= 20
    assert (np.array(found["winners"]) == right.winners)[same].all()
    assert len(np.unique(right.ticks)) > 10


@pytest.mark.prove
@pytest.mark.parametrize(("seeker", "hider"), [("champion", "champion"), ("learner", "expert")])
def test_win_rates_of_onnx_alone(
    seeker: str, hider: str, tmp_path: Path, record_result: Recorder
) -> None:
    found = in_godot(tmp_path, contest(seeker, hider, MATCHES, "--seed=11"), PROOF_TIMEOUT_SEC)
    right = from_python(seeker, hider, MATCHES, 11)
    ours, theirs = found["seeker_win_rate"], float(np.mean(right.winners == 0))
    same = int((np.array(found["ticks"]) == right.ticks).sum())
    held = abs(ours - theirs) <= POINTS
    record_result(
        f"tag with ONNX alone: {seeker} against {hider}",
        f"{MATCHES:,} matches each from the same spawns: the seeker wins {ours:.2%} in Godot "
        f"without Python, {theirs:.2%} from Python; {same:,} matches last equally long to the tick",
        held=held,
    )
    assert held


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="exports for Linux")
def test_an_exported_game_plays_with_policies_and_nothing_else(tmp_path: Path) -> None:
    if not can_export():
        pytest.skip("no export template fits this Godot")
    game = shutil.copy2(kept_game("tag", import_project(paths.godot_project())), tmp_path)
    options = contest("champion", "learner", 12, "--seed=7")
    done = subprocess.run(
        [game, "--headless", "--fixed-fps", "60", "--", *options],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.defpath, **environment()},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SEC,
    )
    assert done.returncode == 0, done.stderr
    found = told(done.stdout.splitlines())
    assert (np.array(found["ticks"]) == from_python("champion", "learner", 12, 7).ticks).sum() >= 10


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a window would open")
def test_what_cannot_be_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for words, says in (
        ([], "there is no display to open a window on"),
        (["--role", "hider", "--difficulty", "champion"], "there is no display to open a window"),
        (["--level", "ninja"], "--level: no level 'ninja'; there are untrained, beginner"),
        (["--layout", "nowhere"], "no layout 'nowhere'"),
        (["--window", "big"], "expected WIDTHxHEIGHT"),
        (["--seed", "-1"], "--seed: expected 0 to 4294967295, got -1"),
        (["--role", "umpire"], "--role"),
    ):
        assert main(["play", *words]) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a window would open")
def test_a_window_opens_and_closes(tmp_path: Path) -> None:
    from estragon.godot.display import display
    from estragon.show.godot_frames import window_arguments

    words = window_arguments(import_project(paths.godot_project()), (320, 180), 60)
    words += ["--quit-after", "15", "res://scenes/Play.tscn", "--", "--play=hider"]
    with display(320, 180) as env, GodotProcess(words, folder=tmp_path, env=env) as process:
        assert process.wait("its end", TIMEOUT_SEC) == 0
        assert not [line for line in process.lines() if "SCRIPT ERROR" in line]


def test_a_player_that_is_not_there_is_said(tmp_path: Path) -> None:
    project = str(import_project(paths.godot_project()))
    words = ["--headless", "--path", project, "--", *contest("ninja", "none.onnx", 1)]
    with GodotProcess(words, folder=tmp_path) as process:
        assert process.wait("its end", TIMEOUT_SEC) == 2
        said = [line for line in process.lines() if line.startswith("estragon: ")]
    assert len(said) == 1
    assert "--seeker: no player 'ninja'; there are bot:random" in said[0]
