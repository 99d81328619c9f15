"""`estragon record`, `estragon replay` and their scripts: what is drawn, and what is refused."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from estragon.cli import main
from estragon.show import godot_frames
from estragon.show.frames import find_frames, frame_size
from estragon.show.trajectory_reader import read_trajectory
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import load_rules
from tests.show.drawn_frames import write_frames
from tests.show.logged_matches import log_matches

SCRIPTS = Path(__file__).parents[2] / "scripts"
TIMEOUT_SEC = 300.0
TINY = ["--seconds", "0.1", "--size", "96x64"]


class Drawing:
    """Stands in for Godot and remembers what was to be drawn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: dict[str, Any] = {}
        monkeypatch.setattr(godot_frames, "render_frames", self._render)
        monkeypatch.setattr(godot_frames, "record_live", self._record)

    def _render(self, log: Path, folder: Path, **asked: Any) -> list[Path]:
        self.asked = {"log": log, "folder": folder, **asked}
        return write_frames(folder, 2)

    def _record(self, folder: Path, **asked: Any) -> list[Path]:
        self.asked = {"folder": folder, **asked}
        return write_frames(folder, 3)


@pytest.fixture
def drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drawing:
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "AI_RECORD_FPS", "AI_RENDER_QUALITY"):
        monkeypatch.delenv(name, raising=False)
    return Drawing(monkeypatch)


def test_a_logged_match_is_drawn_whole(
    drawing: Drawing, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log,), _ = log_matches(tmp_path)
    assert main(["record", str(log), "--title", "Stage 3", "--no-hud", "--workers", "3"]) == 0
    asked = drawing.asked
    assert (asked["log"], asked["folder"]) == (log, Path("data", "frames"))
    assert (asked["size"], asked["fps"]) == ((1280, 720), 60)
    assert (asked["title"], asked["hud"], asked["workers"]) == ("Stage 3", False, 3)
    assert asked["times"] == godot_frames.frame_times(read_trajectory(log), 60)
    told = f"2 frames are in {Path('data', 'frames')}; estragon encode makes a film of them\n"
    assert capsys.readouterr().out == told


def test_the_newest_of_a_folder_and_its_beginning(drawing: Drawing, tmp_path: Path) -> None:
    logs, _ = log_matches(tmp_path / "logs", 3)
    os.utime(logs[1], (4e9, 4e9))
    assert main(["record", str(tmp_path / "logs"), "--quality", "low", "--seconds", "0.5"]) == 0
    assert drawing.asked["log"] == logs[1]
    assert (drawing.asked["size"], drawing.asked["fps"]) == ((960, 540), 30)
    assert drawing.asked["times"] == [frame / 30 for frame in range(15)]


def test_bots_play_in_godot(drawing: Drawing, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--seed", "4", "--layout", "empty", "--frames", "here"]) == 0
    asked = drawing.asked
    assert {"--seeker=bot:chaser", "--hider=bot:evader", "--play=nobody"} <= set(asked["options"])
    assert {"--seed=4", "--layout=empty", "--hud=1"} <= set(asked["options"])
    assert (asked["folder"], asked["seconds"], asked["real_time"]) == (Path("here"), 12.0, False)
    assert capsys.readouterr().err == "seeker: bot:chaser\nhider: bot:evader\n"


def test_policies_play_a_match_that_is_logged_and_drawn(drawing: Drawing, tmp_path: Path) -> None:
    rules = load_rules()
    policy = FrozenPolicy.untrained(rules, "seeker", seed=1)
    save_policies(tmp_path / "trainer" / "policy_seeker.npz", {"seeker": policy}, rules)
    assert main(["record", "--hider", "bot:evader"]) == 0
    match = read_trajectory(drawing.asked["log"])
    assert drawing.asked["log"].parent == Path("data", "trajectories")
    assert Path(match.start.players["seeker"]) == Path("trainer", "policy_seeker.npz")
    assert match.start.time_limit_sec == rules.episode.time_limit_sec


def test_the_environment_chooses(drawing: Drawing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_RENDER_QUALITY", "high")
    monkeypatch.setenv("AI_RECORD_FPS", "24")
    monkeypatch.setenv("AI_DATA_ROOT", "elsewhere")
    assert main(["record"]) == 0
    assert (drawing.asked["size"], drawing.asked["fps"]) == ((1920, 1080), 24)
    assert drawing.asked["folder"] == Path("elsewhere", "frames")


def test_frames_are_removed_only_when_asked(drawing: Drawing) -> None:
    write_frames(Path("data", "frames"), 9)
    assert main(["record", "--overwrite"]) == 0
    assert len(find_frames(Path("data", "frames"))) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["none.jsonl"], "cannot read none.jsonl: no such file"),
        (["."], "no logged match in this folder; estragon eval-episode logs one"),
        (["--size", "wide"], "expected WIDTHxHEIGHT, such as 1280x720, got 'wide'"),
        (["--seconds", "0"], "--seconds: expected up to 3600 s, got 0"),
        (["--play", "seeker"], "--play seeker: there is no display to play on"),
        (["--seeker", "none.npz"], "no player 'none.npz'"),
    ],
)
def test_what_cannot_be_recorded(
    words: list[str], says: str, drawing: Drawing, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", *words]) == 2
    assert says in capsys.readouterr().err
    assert not drawing.asked


@pytest.mark.parametrize("name", ["AI_RENDER_QUALITY", "AI_RECORD_FPS"])
def test_an_environment_that_makes_no_sense(
    name: str,
    drawing: Drawing,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, "ultra")
    assert main(["record"]) == 2
    assert f"{name}: expected" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is a display")
def test_a_replay_needs_a_display_and_a_match(
    drawing: Drawing, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log,), _ = log_matches(tmp_path)
    for words, says in (
        ([str(log)], "no display to open a window on; estragon record FILE draws"),
        (["none.jsonl"], "cannot read none.jsonl"),
        ([str(log), "--speed", "9"], "--speed: expected 0.1 to 4, got 9"),
        ([str(log), "--window", "big"], "expected WIDTHxHEIGHT"),
    ):
        assert main(["replay", *words]) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1


def run(script: str, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(SCRIPTS / script), *words],
        cwd=folder,
        env=os.environ | {"AI_DATA_ROOT": str(folder / "data")},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SEC,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a window would open")
def test_the_scripts_record_render_and_encode(tmp_path: Path) -> None:
    frames = tmp_path / "data" / "frames"
    done = run("record_gui.sh", tmp_path, "chaser", *TINY)
    assert done.returncode == 0, done.stderr
    assert frame_size(find_frames(frames)[5]) == (96, 64)
    log_matches(tmp_path / "data" / "trajectories")
    words = ["low", *TINY, "--overwrite"]
    done = run("render_trajectory.sh", tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert len(find_frames(frames)) == 3, "30 a second"
    done = run("encode_frames.sh", tmp_path, "--output", "film.mp4")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "film.mp4").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")
@pytest.mark.parametrize(
    ("script", "words", "says"),
    [
        ("record_gui.sh", ["ninja"], "expected seeker, hider, chaser or runner, got 'ninja'"),
        ("render_trajectory.sh", ["high", "none.jsonl"], "cannot read none.jsonl"),
        ("encode_frames.sh", [], "there is no folder"),
    ],
)
def test_scripts_refuse_what_makes_no_sense(
    script: str, words: list[str], says: str, tmp_path: Path
) -> None:
    done = run(script, tmp_path, *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
