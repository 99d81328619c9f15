"""Godot's frames: each the same picture however it was drawn, all there, or a clear error."""

import json
import shutil
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from estragon.show import godot_frames
from estragon.show.frames import MANIFEST, frame_path, frames_in
from estragon.show.godot_frames import HOLD_SEC, LOGS, frame_times, record_live, render_frames
from estragon.show.trajectory_reader import read_trajectory
from estragon.support.errors import UserError
from tests.show.drawn_frames import SIZE, fake_godot, pixels
from tests.show.logged_matches import log_matches

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a window would open")
SMALL = (192, 108)
TIMES = [0.5 + 0.02 * frame for frame in range(10)]
GRACE_SEC = 30.0


@pytest.fixture(scope="module")
def match(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A logged match."""
    (path,), _ = log_matches(tmp_path_factory.mktemp("match"), seed=1)
    return path


@pytest.fixture(scope="module")
def drawn(match: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A few frames of it, drawn in one go."""
    folder = tmp_path_factory.mktemp("drawn") / "in one go"
    return render_frames(match, folder, size=SMALL, times=TIMES, title="Stage 1", workers=1)


def test_all_frames_are_there_and_differ(drawn: list[Path]) -> None:
    folder = drawn[0].parent
    assert drawn == frames_in(folder) == [frame_path(folder, number) for number in range(10)]
    pictures = [pixels(path) for path in drawn]
    assert {picture.shape for picture in pictures} == {(SMALL[1], SMALL[0], 3)}
    changed = [(one != two).any(axis=2).mean() for one, two in pairwise(pictures)]
    assert all(0.0 < share < 0.2 for share in changed), "agents move, the arena does not"
    assert len(np.unique(pictures[0].reshape(-1, 3), axis=0)) > 100, "something is drawn"
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".png") == [
        ".lock",
        MANIFEST,
    ]


def test_a_frame_does_not_depend_on_the_one_drawn_first(
    match: Path, drawn: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(godot_frames, "MIN_FRAMES_PER_PROCESS", 1)
    told: list[tuple[int, int]] = []
    again = render_frames(
        match,
        tmp_path,
        size=SMALL,
        times=TIMES,
        title="Stage 1",
        workers=2,
        on_progress=lambda done, total: told.append((done, total)),
    )
    for one, two in zip(drawn, again, strict=True):
        np.testing.assert_array_equal(pixels(one), pixels(two))
    assert told[0] == (0, 10)
    assert told[-1] == (10, 10)
    assert told == sorted(told)


def test_what_is_missing_or_damaged_is_drawn_again_and_nothing_else(
    match: Path, drawn: list[Path], tmp_path: Path
) -> None:
    folder = tmp_path / "begun"
    shutil.copytree(drawn[0].parent, folder)
    (folder / "frame_000004.png").unlink()
    (folder / "frame_000007.png").write_bytes(drawn[7].read_bytes()[:-1])
    Image.new("RGB", (10, 10)).save(folder / "frame_000008.png")
    (folder / "frame_000009.png.part").write_bytes(b"cut off by a kill")
    kept = {path.name: path.stat().st_mtime_ns for path in frames_in(folder)}
    again = render_frames(match, folder, size=SMALL, times=TIMES, title="Stage 1")
    for one, two in zip(drawn, again, strict=True):
        np.testing.assert_array_equal(pixels(one), pixels(two))
    same = [path.name for path in again if kept.get(path.name) == path.stat().st_mtime_ns]
    assert same == [f"frame_00000{number}.png" for number in (0, 1, 2, 3, 5, 6, 9)]
    assert not list(folder.glob("*.part"))


def test_the_same_again_starts_no_godot(
    match: Path, drawn: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("Godot was started")

    monkeypatch.setattr(godot_frames, "GodotProcess", never)
    folder = drawn[0].parent
    assert render_frames(match, folder, size=SMALL, times=TIMES, title="Stage 1") == drawn


@pytest.mark.parametrize(
    "change", [{"title": "Stage 2"}, {"times": TIMES[1:]}, {"hud": False}, {"size": (64, 64)}]
)
def test_frames_of_something_else_are_not_mixed_in(
    change: dict[str, Any], match: Path, drawn: list[Path]
) -> None:
    asked = {"size": SMALL, "times": TIMES, "title": "Stage 1"} | change
    with pytest.raises(UserError, match="holds 10 frames of something else"):
        render_frames(match, drawn[0].parent, **asked)
    assert len(frames_in(drawn[0].parent)) == 10


def test_by_default_a_match_is_shown_whole_at_its_own_pace(match: Path) -> None:
    times = frame_times(read_trajectory(match), 30)
    assert times[:3] == [0.0, 1 / 30, 2 / 30]
    end = read_trajectory(match).seconds[-1]
    assert end + HOLD_SEC - 1 / 30 < times[-1] <= end + HOLD_SEC


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"times": [1.0, 0.5]}, "never decrease"),
        ({"times": [-0.1]}, "never decrease"),
        ({"times": []}, "expected 1 to"),
        ({"size": (0, 100)}, "expected 64 to 8192 pixels a side, got 0 × 100"),
        ({"fps": 0}, "expected 1 to 240 frames a second, got 0"),
    ],
)
def test_what_cannot_be_drawn(
    asked: dict[str, Any], says: str, match: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=says):
        render_frames(match, tmp_path, **({"size": SMALL, "times": TIMES} | asked))
    assert not list(tmp_path.iterdir())


def test_a_bad_log_and_a_folder_that_is_a_file(match: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("garbage\n")
    with pytest.raises(UserError, match=r"bad\.jsonl: line 1"):
        render_frames(bad, tmp_path / "frames", size=SMALL)
    with pytest.raises(UserError, match="cannot write"):
        render_frames(match, bad, size=SMALL)


def render_with(
    body: str, match: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **asked: Any
) -> list[Path]:
    """Draw ten frames with a Godot that does as it is told."""
    program = fake_godot(folder.parent / "godot", body, asked.pop("drawn_size", SIZE))
    monkeypatch.setenv("GODOT_BIN", str(program))
    monkeypatch.setattr(godot_frames, "import_project", lambda project: project)
    return render_frames(match, folder, size=SIZE, times=TIMES, workers=1, **asked)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("sys.exit(3)", r"godot-0: it ended with exit code 3; it said last: .*what it said last"),
        ('print("estragon: no, thank you"); sys.exit(2)', "^no, thank you$"),
        ("draw(0); draw(1)", r"frame_000002\.png is missing"),
        ("[draw(n) for n in range(10)]; (folder / 'frame_000004.png').write_bytes(b'x' * 99)",
         r"frame_000004\.png is damaged"),
    ],
)  # fmt: skip
def test_a_godot_that_fails(
    body: str, says: str, match: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=says):
        render_with(body, match, tmp_path / "frames", monkeypatch)


def test_a_godot_that_hangs_is_ended(
    match: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = time.monotonic()
    with pytest.raises(UserError, match=r"no new frame in 1\.5 s; there are 1 of 10") as caught:
        render_with("draw(0); time.sleep(600)", match, tmp_path / "f", monkeypatch, stall_sec=1.5)
    assert "what it said last" in str(caught.value)
    assert time.monotonic() - begun < GRACE_SEC
    assert (tmp_path / "f" / LOGS / "godot-0.log").is_file(), "the log is kept"


def test_a_window_of_another_size_is_noticed(
    match: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "[draw(n) for n in range(10)]"
    with pytest.raises(UserError, match=r"expected 80 × 64 pixels, got 32 × 24"):
        render_with(body, match, tmp_path / "frames", monkeypatch, drawn_size=(32, 24))


def test_no_godot_and_no_xvfb(match: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GODOT_BIN", str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"GODOT_BIN=.* cannot be used"):
        render_frames(match, tmp_path / "frames", size=SIZE)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ESTRAGON_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(shutil, "which", lambda name, **_: name if name == "godot" else None)
    with pytest.raises(UserError, match="a display or Xvfb, and there is neither"):
        render_with("", match, tmp_path / "frames", monkeypatch)


def test_two_do_not_draw_into_one_folder(
    match: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "frames"
    body = "time.sleep(600)"

    def tell(_done: int, _total: int) -> None:
        with pytest.raises(UserError, match="which another process holds"):
            render_with(body, match, folder, monkeypatch)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render_with(body, match, folder, monkeypatch, on_progress=tell)


def live(folder: Path, *options: str, fps: int = 30) -> list[Path]:
    return record_live(folder, size=SMALL, fps=fps, seconds=0.2, options=options)


def test_a_game_is_recorded_while_it_is_played(drawn: list[Path], tmp_path: Path) -> None:
    frames = live(tmp_path, "--play=nobody", "--seed=4", "--hud=0")
    assert frames == [frame_path(tmp_path, number) for number in range(6)]
    shown = [pixels(path)[:, 30:-30] for path in frames]
    assert all((one != two).any() for one, two in pairwise(shown)), "they move"
    with_words, without = (pixels(path)[:, :36].std() for path in (drawn[0], frames[0]))
    assert without < 0.5 * with_words, "no clock and no names"
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert (manifest["fps"], tuple(manifest["size"])) == (30, SMALL)
    with pytest.raises(UserError, match="holds 6 frames of something else"):
        live(tmp_path)


def test_a_game_that_cannot_be_recorded(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a game has 60 ticks a second to draw, got 120"):
        live(tmp_path, fps=120)
    with pytest.raises(UserError, match="no bot 'bot:ninja'"):
        live(tmp_path, "--seeker=bot:ninja")


def test_a_picture_that_cannot_be_written_ends_the_recording(tmp_path: Path) -> None:
    (tmp_path / "frame_000002.png").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*frame_000002\.png: "):
        live(tmp_path)
    assert not list(tmp_path.glob("*.part"))
