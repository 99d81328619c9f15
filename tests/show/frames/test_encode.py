"""Films are whole or not there, and no ffmpeg outlives its film."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from estragon.show.frames import encode
from estragon.show.frames.encode import Mp4Writer, find_ffmpeg
from estragon.support.errors import UserError
from tests.show.staging import footage

SIZE = (64, 48)


def picture(red: int) -> Image.Image:
    return Image.new("RGB", SIZE, (red, 80, 160))


def test_an_mp4_that_plays_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "new" / "film.mp4"
    with Mp4Writer(path, SIZE, 40) as film:
        for red in range(0, 200, 10):
            film.add(picture(red))
    stream, seconds, frames = footage(path, SIZE)
    assert re.match(r"h264 .*yuv420p\(tv, bt709.* 64x48\b.* 40 fps", stream), stream
    assert seconds == pytest.approx(0.5, abs=0.01)
    assert len(frames) == 20
    assert frames[-1, 20, 20, 0] > frames[0, 20, 20, 0] + 150
    np.testing.assert_allclose(frames[10, 20, 20], (100, 80, 160), atol=6)
    data = path.read_bytes()
    assert 0 < data.find(b"moov") < data.find(b"mdat"), "it can be watched while it loads"
    assert [found.name for found in path.parent.iterdir()] == ["film.mp4"]


def test_the_same_frames_give_the_same_bytes(tmp_path: Path) -> None:
    noise = np.random.default_rng(2).integers(0, 256, (12, SIZE[1], SIZE[0], 3), dtype=np.uint8)
    for name in ("one.mp4", "two.mp4"):
        with Mp4Writer(tmp_path / name, SIZE, 40) as film:
            for pixels in noise:
                film.add_pixels(pixels.tobytes())
    data = (tmp_path / "one.mp4").read_bytes()
    assert data == (tmp_path / "two.mp4").read_bytes()
    assert b"Lavf" not in data, "no word of who wrote it"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_film_leaves_nothing_and_the_old_one_alone(
    tmp_path: Path, stop: type[BaseException]
) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"the old film")
    writer = Mp4Writer(path, SIZE, 40)

    def begin_and_stop() -> None:
        with writer as film:
            film.add(picture(1))
            assert len(list(tmp_path.iterdir())) == 2
            raise stop

    with pytest.raises(stop):
        begin_and_stop()
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"the old film"
    assert writer._ffmpeg.returncode is not None, "ffmpeg has ended and was waited for"


def test_an_ffmpeg_that_fails_is_quoted(tmp_path: Path) -> None:
    def shoot(fps: int) -> None:
        with Mp4Writer(tmp_path / "film.mp4", SIZE, fps) as film:
            for _ in range(200):
                film.add(picture(1))

    with pytest.raises(UserError, match=r"ffmpeg could not write .*film\.mp4: .*\w") as caught:
        shoot(0)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_ffmpeg_that_is_killed(tmp_path: Path) -> None:
    def shoot() -> None:
        with Mp4Writer(tmp_path / "film.mp4", SIZE, 40) as film:
            film.add(picture(1))
            film._ffmpeg.kill()
            for _ in range(200):
                film.add(picture(2))

    with pytest.raises(UserError, match="ffmpeg could not write"):
        shoot()
    assert list(tmp_path.iterdir()) == []


def test_an_ffmpeg_that_never_finishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "FINISH_TIMEOUT_SEC", 0.1)
    monkeypatch.setattr(encode, "find_ffmpeg", lambda: sys.executable)
    sleep = ["-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(Mp4Writer, "_arguments", lambda _: sleep)
    writer = Mp4Writer(tmp_path / "film.mp4", SIZE, 40)
    with pytest.raises(UserError, match="ffmpeg could not write"), writer:
        pass
    assert writer._ffmpeg.returncode is not None
    assert list(tmp_path.iterdir()) == []


def test_no_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UserError, match="films need imageio-ffmpeg"):
        find_ffmpeg()
    monkeypatch.setattr(encode, "find_ffmpeg", lambda: str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="cannot start ffmpeg"), Mp4Writer(tmp_path / "a", SIZE, 40):
        pass
    assert list(tmp_path.iterdir()) == []


def test_frames_and_sizes_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="even"):
        Mp4Writer(tmp_path / "film.mp4", (641, 480), 40)
    with (
        pytest.raises(ValueError, match=r"frame: expected RGB \(64, 48\)"),
        Mp4Writer(tmp_path / "film.mp4", SIZE, 40) as film,
    ):
        film.add(Image.new("RGB", (10, 10)))
    with (
        pytest.raises(ValueError, match=r"pixels: expected RGB \(64, 48\), got 3 bytes"),
        Mp4Writer(tmp_path / "film.mp4", SIZE, 40) as film,
    ):
        film.add_pixels(b"rgb")
    with pytest.raises(UserError, match="cannot write"), Mp4Writer(tmp_path, SIZE, 40):
        pass
