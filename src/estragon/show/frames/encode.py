"""An MP4 written frame by frame through ffmpeg: whole at the end, or not there at all."""

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self, cast

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable

if TYPE_CHECKING:
    from PIL import Image

QUALITY_CRF = 21
THREADS = 4
"""Of the encoder: how many it has changes its bytes, so it is always the same."""
FINISH_TIMEOUT_SEC = 120.0
"""How long ffmpeg may take to write the end of a film once it has all frames."""


class Mp4Writer:
    """H.264 that plays everywhere; used with `with`, and renamed into place when that ends well.

    The same frames give the same bytes, whenever and however often they are encoded.

    Args:
        path: the film.
        size: width and height of every frame in pixels, both even.
        fps: frames a second.
    """

    def __init__(self, path: Path, size: tuple[int, int], fps: int) -> None:
        if size[0] % 2 or size[1] % 2:
            raise ValueError(f"size: H.264 needs even sides, got {size[0]} × {size[1]}")
        self._path, self._size, self._fps = path, size, fps

    def __enter__(self) -> Self:
        """Start ffmpeg on a temporary file beside the film."""
        program = find_ffmpeg()
        ensure_writable(self._path)
        handle, name = tempfile.mkstemp(
            dir=self._path.parent, prefix=f".{self._path.name}.", suffix=".mp4"
        )
        os.close(handle)
        self._temporary = Path(name)
        self._complaints = tempfile.TemporaryFile()
        try:
            self._ffmpeg = subprocess.Popen(
                [program, *self._arguments()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
            )
        except BaseException as error:
            self._clear_away()
            if isinstance(error, OSError):
                raise UserError(f"cannot start ffmpeg ({program}): {error.strerror}") from error
            raise
        return self

    def add(self, frame: "Image.Image") -> None:
        """Append one RGB frame."""
        if frame.size != self._size or frame.mode != "RGB":
            raise ValueError(f"frame: expected RGB {self._size}, got {frame.mode} {frame.size}")
        self.add_pixels(frame.tobytes())

    def add_pixels(self, pixels: bytes) -> None:
        """Append one frame that is given as the bytes of an RGB picture."""
        if len(pixels) != 3 * self._size[0] * self._size[1]:
            raise ValueError(f"pixels: expected RGB {self._size}, got {len(pixels)} bytes")
        try:
            self._frames.write(pixels)
        except OSError as error:
            raise self._failure() from error

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish and rename; after an error, end ffmpeg and leave nothing behind."""
        try:
            if kind is None:
                self._finish()
        finally:
            self._ffmpeg.kill()
            self._ffmpeg.wait()
            with contextlib.suppress(OSError):
                self._frames.close()
            self._clear_away()

    @property
    def _frames(self) -> BinaryIO:
        return cast("BinaryIO", self._ffmpeg.stdin)

    def _arguments(self) -> list[str]:
        width, height = self._size
        frames = f"-f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {self._fps} -i pipe:0"
        # Players take untagged films for BT.709, while ffmpeg converts to BT.601 unless told.
        colours = "-vf scale=out_color_matrix=bt709:out_range=tv -pix_fmt yuv420p"
        colours += " -colorspace bt709 -color_primaries bt709 -color_trc bt709"
        codec = f"-c:v libx264 -preset veryfast -tune animation -crf {QUALITY_CRF}"
        codec += f" -threads {THREADS} -fflags +bitexact -flags:v +bitexact -map_metadata -1"
        codec += " -movflags +faststart -f mp4"
        words = f"-hide_banner -loglevel error -nostdin -y {frames} -an {colours} {codec}"
        return [*words.split(), str(self._temporary.absolute())]

    def _finish(self) -> None:
        try:
            self._frames.close()
            code = self._ffmpeg.wait(FINISH_TIMEOUT_SEC)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._failure() from error
        if code != 0:
            raise self._failure()
        try:
            with self._temporary.open("rb+") as film:
                os.fsync(film.fileno())
            self._temporary.chmod(0o644)
            self._temporary.replace(self._path)
        except OSError as error:
            raise UserError(f"cannot write {self._path}: {error.strerror}") from error

    def _failure(self) -> UserError:
        """What went wrong, in ffmpeg's last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._ffmpeg.wait(1.0)
        self._complaints.seek(0)
        said = self._complaints.read().decode(errors="replace").split("\n")
        silent = f"it ended with {self._ffmpeg.returncode} and said nothing"
        last = next((line.strip() for line in reversed(said) if line.strip()), silent)
        return UserError(f"ffmpeg could not write {self._path}: {last}")

    def _clear_away(self) -> None:
        self._complaints.close()
        self._temporary.unlink(missing_ok=True)


def find_ffmpeg() -> str:
    """The ffmpeg that came with imageio-ffmpeg, or the one IMAGEIO_FFMPEG_EXE names."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise UserError(
            "films need imageio-ffmpeg and its ffmpeg: pip install 'estragon[train]'"
        ) from error
