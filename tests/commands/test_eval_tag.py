"""`estragon eval tag --log-trajectories`: as many files as asked for, where they were asked for."""

from pathlib import Path

import pytest

from estragon.cli import main
from estragon.show.trajectory_reader import read_trajectory

PLAY = ["eval", "tag", "--seeker", "bot:chaser", "--hider", "bot:random", "--episodes", "6"]


def files(folder: Path) -> list[Path]:
    return sorted((folder / "trajectories").glob("*"))


def test_nothing_is_logged_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(PLAY) == 0
    assert list(tmp_path.iterdir()) == []


def test_every_match_is_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAY, "--log-trajectories", "--data-root", str(tmp_path)]) == 0
    assert [read_trajectory(path).start.arena for path in files(tmp_path)] == list(range(6))
    captured = capsys.readouterr()
    assert f"wrote 6 trajectories to {tmp_path / 'trajectories'}\n" in captured.out
    assert captured.err == ""


def test_the_environment_switches_it_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AI_LOG_TRAJECTORIES", "1")
    assert main(PLAY) == 0
    assert len(files(tmp_path / "data")) == 6
    monkeypatch.setenv("AI_DATA_ROOT", str(tmp_path / "elsewhere"))
    assert main(PLAY) == 0
    assert len(files(tmp_path / "elsewhere")) == 6
    assert main([*PLAY, "--no-log-trajectories"]) == 0
    assert len(files(tmp_path / "elsewhere")) == 6


def test_only_the_first_are_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*PLAY, "--log-trajectories", "--data-root", str(tmp_path), "--log-at-most", "2"]
    assert main(words) == 0
    assert len(files(tmp_path)) == 2
    assert capsys.readouterr().err == "logging the first 2 of 6 matches (--log-at-most)\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--log-at-most", "0"], "--log-at-most: expected at least 1, got 0"),
        (["--data-root", "/dev/null"], "cannot write /dev/null/trajectories/ep.jsonl"),
    ],
)
def test_bad_options_are_refused_before_the_work(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*PLAY[:-1], "10000000", "--log-trajectories", *words]) == 2
    assert says in capsys.readouterr().err


def test_a_strange_switch_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AI_LOG_TRAJECTORIES", "perhaps")
    assert main(PLAY) == 2
    assert "AI_LOG_TRAJECTORIES: expected 1 or 0, got 'perhaps'" in capsys.readouterr().err
