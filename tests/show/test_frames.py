"""Frames are whole, of one size and without a gap, or the one that is not is named."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from estragon.cli import main
from estragon.godot.user_data import app_userdata_roots
from estragon.show import frames
from estragon.show.frames import (
    MANIFEST,
    encode_frames,
    find_frames,
    frame_path,
    frame_size,
    frames_in,
    is_complete,
    mp4_writer,
    read_manifest,
    remove_frames,
)
from estragon.support.errors import UserError
from estragon.support.files import write_json
from tests.show.drawn_frames import SIZE, write_frames
from tests.show.staging import footage


def test_frames_are_found_in_order(tmp_path: Path) -> None:
    written = write_frames(tmp_path, 12)
    (tmp_path / "frame_12.png").write_bytes(b"not one of ours")
    (tmp_path / "frame_000012.png.part").write_bytes(b"unfinished")
    assert find_frames(tmp_path) == frames_in(tmp_path) == written
    assert frame_size(written[3]) == SIZE


@pytest.mark.parametrize("lost", [0, 5])
def test_a_gap_is_named(lost: int, tmp_path: Path) -> None:
    write_frames(tmp_path, 8)
    frame_path(tmp_path, lost).unlink()
    with pytest.raises(UserError, match=rf"frame_00000{lost}\.png is missing"):
        find_frames(tmp_path)


@pytest.mark.parametrize("damage", ["cut off", "empty", "no png"])
def test_a_damaged_frame_is_named(damage: str, tmp_path: Path) -> None:
    path = write_frames(tmp_path, 8)[6]
    whole = path.read_bytes()
    path.write_bytes({"cut off": whole[:-9], "empty": b"", "no png": b"x" + whole[1:]}[damage])
    with pytest.raises(UserError, match=r"frame_000006\.png is damaged"):
        find_frames(tmp_path)
    assert not is_complete(path, SIZE)


def test_a_frame_of_another_size_is_named(tmp_path: Path) -> None:
    write_frames(tmp_path, 3)
    Image.new("RGB", (32, 64)).save(frame_path(tmp_path, 1))
    with pytest.raises(UserError, match=r"frame_000001\.png: expected 80 × 64 pixels, got 32 × 64"):
        find_frames(tmp_path)


def test_folders_without_frames(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        find_frames(tmp_path / "none")
    with pytest.raises(UserError, match=r"has no frames \(frame_000000\.png and so on\)$"):
        find_frames(tmp_path)
    Image.new("RGB", SIZE).save(tmp_path / "holiday.png")
    with pytest.raises(UserError, match=r"pictures of other names, such as holiday\.png"):
        find_frames(tmp_path)


def test_only_what_is_ours_is_removed(tmp_path: Path) -> None:
    write_frames(tmp_path, 3)
    write_json(tmp_path / MANIFEST, {"fps": 30})
    for name in ("frame_000009.png.part", "holiday.png", "frame_1.png"):
        (tmp_path / name).write_bytes(b"")
    remove_frames(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frame_1.png", "holiday.png"]
    remove_frames(tmp_path / "none")


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"'])
def test_a_manifest_that_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    assert read_manifest(tmp_path) == read_manifest(tmp_path / "none") == {}


def test_odd_sizes_cannot_be_encoded(tmp_path: Path) -> None:
    odd = write_frames(tmp_path, 2, (63, 48))
    with pytest.raises(UserError, match=r"even sides, this has 63 × 48"):
        encode_frames(odd, tmp_path / "film.mp4", 30)


def test_the_command_encodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_frames(Path("data", "frames"), 20)
    write_json(Path("data", "frames", MANIFEST), {"fps": 40})
    assert main(["encode"]) == 0
    (film,) = tmp_path.glob("learn_progress-*.mp4")
    assert re.fullmatch(r"learn_progress-\d{8}-\d{6}\.mp4", film.name)
    assert f"wrote {film.name}: 20 frames" in capsys.readouterr().out
    stream, seconds, shown = footage(film, SIZE)
    assert re.match(r"h264 .*yuv420p\(tv, bt709.* 80x64\b.* 40 fps", stream), stream
    assert (len(shown), seconds) == (20, pytest.approx(0.5, abs=0.01))
    assert abs(int(shown[19, 20, 20, 0]) - 190) < 8, "in order"


def test_the_command_takes_another_rate_and_overwrites_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AI_DATA_ROOT", str(tmp_path / "elsewhere"))
    write_frames(tmp_path / "elsewhere" / "frames", 10)
    film = tmp_path / "film.mp4"
    film.write_bytes(b"the old one")
    words = ["encode", "--output", str(film), "--fps", "20"]
    assert main(words) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert film.read_bytes() == b"the old one"
    assert main([*words, "--overwrite"]) == 0
    assert footage(film, SIZE).seconds == pytest.approx(0.5, abs=0.01)
    assert main(["encode", "--fps", "0"]) == 2


def test_the_command_falls_back_on_what_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AI_DATA_ROOT", str(tmp_path))
    assert main(["encode"]) == 2
    assert f"there is no folder {tmp_path / 'frames'}" in capsys.readouterr().err
    write_frames(tmp_path / "_imported" / "old game" / "frames", 3)
    assert main(["encode", "--output", str(tmp_path / "film.mp4")]) == 0
    assert f"3 frames of {tmp_path / '_imported'}" in capsys.readouterr().out


def test_the_command_names_a_missing_frame(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_frames(tmp_path, 4)[2].unlink()
    film = tmp_path / "film.mp4"
    assert main(["encode", "--frames", str(tmp_path), "--output", str(film)]) == 2
    error = capsys.readouterr().err
    assert "frame_000002.png is missing" in error
    assert error.count("\n") == 1
    assert not film.exists()


@pytest.fixture
def user_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this platform's Godot keeps `user://` of all projects, and an empty folder to be in."""
    for name in ("AI_DATA_ROOT", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE", "APPDATA", "ESTRAGON_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return app_userdata_roots()[0]


@pytest.mark.parametrize(
    ("nearer", "farther"),
    [
        ("Estragon/data/frames", "AI Tag Game/frames"),
        ("Estragon/frames/monday", "AI Tag Game/data/frames"),
        ("AI Tag Game/frames", "Chess/screenshots"),
    ],
)
def test_frames_in_the_user_folder_of_godot_are_found(
    user_folders: Path, nearer: str, farther: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_frames(user_folders / nearer, 4)
    os.utime(frame_path(user_folders / nearer, 0), (1e9, 1e9))
    write_frames(user_folders / farther, 7)
    assert main(["encode", "--output", "film.mp4"]) == 0
    said = capsys.readouterr().out
    assert f"no frames in {Path('data', 'frames')}; using {user_folders / nearer}\n" in said
    assert "wrote film.mp4: 4 frames" in said


def test_frames_in_the_data_folder_come_first(
    user_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_frames(user_folders / "Estragon" / "frames", 3)
    write_frames(Path("data", "_imported", "Estragon", "frames"), 4)
    assert main(["encode", "--output", "imported.mp4"]) == 0
    write_frames(Path("data", "frames"), 5)
    assert main(["encode", "--output", "usual.mp4"]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"wrote (\w+)\.mp4: (\d) frames", said) == [("imported", "4"), ("usual", "5")]
    assert said.count("no frames in") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="bash")
def test_the_script_finds_frames_in_the_user_folder(user_folders: Path) -> None:
    write_frames(user_folders / "Estragon" / "data" / "frames", 4)
    script = Path(__file__).parents[2] / "scripts" / "encode_frames.sh"
    done = subprocess.run(
        ["bash", str(script), "--output", "film.mp4"],
        env=os.environ | {"AI_DATA_ROOT": "data"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert f"using {user_folders / 'Estragon' / 'data' / 'frames'}\n" in done.stdout
    assert Path("film.mp4").stat().st_size > 0


def pixels_of(red: int) -> bytes:
    return Image.new("RGB", SIZE, (red, 80, 160)).tobytes()


def write_film(path: Path, count: int = 20) -> None:
    with mp4_writer(path, SIZE, 40) as add:
        for number in range(count):
            add(pixels_of(10 * number))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> "list[subprocess.Popen[bytes]]":
    """The processes that are started, the newest last."""
    processes = []
    start = subprocess.Popen

    def remember(*words: Any, **how: Any) -> "subprocess.Popen[bytes]":
        processes.append(start(*words, **how))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", remember)
    return processes


def test_an_mp4_that_plays_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "new" / "film.mp4"
    write_film(path)
    stream, seconds, shown = footage(path, SIZE)
    assert re.match(r"h264 .*yuv420p\(tv, bt709.* 80x64\b.* 40 fps", stream), stream
    assert seconds == pytest.approx(0.5, abs=0.01)
    assert len(shown) == 20
    assert shown[-1, 20, 20, 0] > shown[0, 20, 20, 0] + 150
    np.testing.assert_allclose(shown[10, 20, 20], (100, 80, 160), atol=6)
    data = path.read_bytes()
    assert 0 < data.find(b"moov") < data.find(b"mdat"), "it can be watched while it loads"
    assert [found.name for found in path.parent.iterdir()] == ["film.mp4"]


def test_the_same_frames_give_the_same_bytes(tmp_path: Path) -> None:
    noise = np.random.default_rng(2).integers(0, 256, (12, SIZE[1], SIZE[0], 3), dtype=np.uint8)
    for name in ("one.mp4", "two.mp4"):
        with mp4_writer(tmp_path / name, SIZE, 40) as add:
            for pixels in noise:
                add(pixels.tobytes())
    data = (tmp_path / "one.mp4").read_bytes()
    assert data == (tmp_path / "two.mp4").read_bytes()
    assert b"Lavf" not in data, "no word of who wrote it"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_film_leaves_nothing_and_the_old_one_alone(
    tmp_path: Path, stop: type[BaseException], started: "list[subprocess.Popen[bytes]]"
) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"the old film")

    def begin_and_stop() -> None:
        with mp4_writer(path, SIZE, 40) as add:
            add(pixels_of(1))
            assert len(list(tmp_path.iterdir())) == 2
            raise stop

    with pytest.raises(stop):
        begin_and_stop()
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"the old film"
    assert started[-1].returncode is not None, "ffmpeg has ended and was waited for"


def test_an_ffmpeg_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "CRF", -99)
    with pytest.raises(UserError, match=r"ffmpeg could not write .*film\.mp4: .*\w") as caught:
        write_film(tmp_path / "film.mp4", 200)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_ffmpeg_that_is_killed(tmp_path: Path, started: "list[subprocess.Popen[bytes]]") -> None:
    def shoot() -> None:
        with mp4_writer(tmp_path / "film.mp4", SIZE, 40) as add:
            started[-1].kill()
            for _ in range(200):
                add(pixels_of(2))

    with pytest.raises(UserError, match="ffmpeg could not write"):
        shoot()
    assert list(tmp_path.iterdir()) == []


def test_an_ffmpeg_that_never_finishes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: "list[subprocess.Popen[bytes]]",
) -> None:
    monkeypatch.setattr(frames, "FINISH_TIMEOUT_SEC", 0.1)
    monkeypatch.setattr(frames, "find_ffmpeg", lambda: sys.executable)
    monkeypatch.setattr(frames, "_arguments", lambda *_: ["-c", "import time; time.sleep(60)"])
    with pytest.raises(UserError, match="ffmpeg could not write"):
        write_film(tmp_path / "film.mp4", 0)
    assert started[-1].returncode is not None
    assert list(tmp_path.iterdir()) == []


def test_no_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="cannot start ffmpeg"):
        write_film(tmp_path / "film.mp4")
    assert list(tmp_path.iterdir()) == []


def test_frames_and_places_that_do_not_fit(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match=r"pixels: expected RGB \(80, 64\), got 3 bytes"),
        mp4_writer(tmp_path / "film.mp4", SIZE, 40) as add,
    ):
        add(b"rgb")
    with pytest.raises(UserError, match="cannot write"):
        write_film(tmp_path)
