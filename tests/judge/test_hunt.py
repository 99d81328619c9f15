"""`estragon judge hunt` and `judge replay` on real games with planted bugs."""

import json
import shutil
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.judge.hunt.traces import Trace
from estragon.support import paths
from estragon.support.errors import BAD_INPUT, CHECK_FAILED, OK
from tests.judge.hunt_games import BALL, MARBLE, planted, stranger

pytestmark = pytest.mark.slow
FOLLOW = "\tcontroller.follow()\n\tcontroller.reward += _approach.get_reward()"
ERROR = "\tif position.x > 3.0 and position.z > 1.0:\n\t\tget_node(^'Door').queue_free()\n"


def hunt(game: Path, output: Path, *words: str) -> int:
    options = ["--minutes", "0.12", "--games", "1", "--output", str(output)]
    return main(["judge", "hunt", str(game), *options, *words])


def test_bugs_are_found_shortened_and_replayed(
    tmp_path: Path, godot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game = planted(tmp_path, {BALL: [(FOLLOW, ERROR + FOLLOW)]})
    output, result = tmp_path / "hunt", tmp_path / "result.json"
    reports = [str(tmp_path / name) for name in ("report.html", "junit.xml")]
    words = ["--scene", MARBLE, "--json", str(result), "--report", *reports]
    for _ in range(4):  # each time, it resumes
        if hunt(game, output, *words) == CHECK_FAILED:
            break
    bugs = json.loads(result.read_text())["bugs"]
    error = next(bug for bug in bugs if bug["oracle"] == "script error")
    assert "marble_ball.gd" in error["key"]
    assert {"oracle", "place", "trace", "first_seen"} <= error.keys()
    assert "<failure" in Path(reports[1]).read_text()
    for bug in bugs:
        assert bug["length"] <= bug["first_length"]
        assert (output / bug["trace"]).with_suffix(".md").read_text().count("\n1. Start") == 1
    assert (output / "coverage.png").stat().st_size
    file = output / error["trace"]
    assert Trace.read(file).length >= 1
    capsys.readouterr()
    assert main(["judge", "replay", str(file), "--game", str(game), "--times", "2"]) == OK
    said = capsys.readouterr().out
    assert "2/2" in said
    assert "1. Start" in said
    # Fixed: no trace shows anything any more, neither the error nor what follows from it, such as
    # a ball that falls without end because the error keeps it from being noticed.
    fixed = paths.godot_project()
    for bug in bugs:
        words = ["judge", "replay", str(output / bug["trace"]), "--game", str(fixed)]
        assert main(words) == CHECK_FAILED, bug
    # A hunt resumes in its folder, but not with another build.
    capsys.readouterr()
    assert hunt(fixed, output, "--scene", MARBLE) == BAD_INPUT
    assert "another build" in capsys.readouterr().err


def test_a_game_without_the_addon_is_played_by_its_inputs(
    tmp_path: Path, godot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game = stranger(tmp_path)
    output = tmp_path / "hunt"
    expect = ["--expect", "{Main/Walker:position:x} < 400"]
    for _ in range(3):  # each time, it resumes
        hunt(game, output, "--explorers", "sticky", "sweep", *expect)
        state = json.loads((output / "hunt.json").read_text())
        found = {bug["oracle"]: bug for bug in state["bugs"]}
        if "error" in found:
            break
    trace = Trace.read(output / found["error"]["trace"])
    assert trace.finding.key.startswith("walked through the open door")
    assert "Open" in trace.clicks.values()
    text = (output / found["error"]["trace"]).with_suffix(".md").read_text()
    assert "hold walk_right" in text.lower()
    assert set(found) <= {"error", "expectation"}, found
    assert state["steps"] > 100


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = stranger(tmp_path)
    (tmp_path / "trace.json").write_text("{}")
    for words, told in (
        (["hunt", str(tmp_path / "none")], "does not exist"),
        (["hunt", str(game), "--minutes", "0"], "--minutes"),
        (["hunt", str(game), "--explorers", "psychic"], "psychic"),
        (["hunt", str(game), "--expect", "score >"], "--expect"),
        (["hunt", str(game), "--log-pattern", "("], "--log-pattern"),
        (["hunt", str(game), "--report", "report.pdf"], "report.pdf"),
        (["hunt", str(game), "--argument", "copies"], "KEY=VALUE"),
        (["hunt", str(game), "--model", str(tmp_path / "none.onnx")], "none.onnx"),
        (["replay", str(tmp_path / "trace.json")], "trace.json"),
        (["replay", str(tmp_path / "none.json")], "none.json"),
    ):
        assert main(["judge", *words]) == BAD_INPUT, words
        said = capsys.readouterr().err.strip()
        assert told in said, said
        assert "\n" not in said, said
    shutil.rmtree(game)
