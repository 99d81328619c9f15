"""Frames: PNGs of one size, numbered from 0 without a gap; and MP4s made of them."""

import contextlib
import os
import re
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from PIL import Image, UnidentifiedImageError

from estragon.godot.user_data import own_folders, project_folders
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import cannot_write, ensure_writable

FRAME_NAME = re.compile(r"frame_(\d{6})\.png")
MANIFEST = "frames.json"
"""Beside the frames: what they were made from, their size and rate."""
PARTIAL = ".part"
"""The suffix of a frame that is being written."""
PNG_START, PNG_END = b"\x89PNG\r\n\x1a\n", b"\0\0\0\0IEND\xaeB`\x82"
HEADER = struct.Struct(">8s4x4sII")

MAX_FPS = 240
USER_FRAMES = ("data/frames", "frames")
"""In `user://`: where the game draws without a data root, and where older versions did."""

CRF = 21
THREADS = 4
"""Of the encoder: its output depends on their number, so it is fixed."""
FINISH_TIMEOUT_SEC = 120.0
"""For ffmpeg to write the end of a film after the last frame."""

OnProgress = Callable[[int, int], None]
"""Called with how many frames are done, and of how many."""


class Quality(NamedTuple):
    """Size and rate of a film or of recorded frames."""

    size: tuple[int, int]
    fps: int


QUALITIES = {
    "low": Quality((960, 540), 30),
    "usual": Quality((1280, 720), 60),
    "high": Quality((1920, 1080), 60),
}


def film_name(folder: Path) -> Path:
    """The name of a film that is started now."""
    return folder / f"learn_progress-{time.strftime('%Y%m%d-%H%M%S')}.mp4"


def default_folder() -> Path:
    """Where frames are drawn unless another folder is given."""
    return paths.data_root() / "frames"


def find_frames_folder() -> Path:
    """Where there are frames: the data folder, what was imported there, Godot's user folders."""
    if frames_in(default_folder()):
        return default_folder()
    own = own_folders()
    others = [game for game in project_folders() if game not in own]
    for parents in (
        [paths.data_root() / "_imported"],
        [game / inside for game in own for inside in USER_FRAMES],
        [game / inside for game in others for inside in USER_FRAMES],
    ):
        firsts = [first for parent in parents for first in parent.rglob("frame_000000.png")]
        if firsts:
            return max(firsts, key=lambda path: path.stat().st_mtime).parent
    return default_folder()


def frame_path(folder: Path, number: int) -> Path:
    """The file of a frame."""
    return folder / f"frame_{number:06d}.png"


def frames_in(folder: Path) -> list[Path]:
    """The frames in a folder, in order, possibly with gaps."""
    if not folder.is_dir():
        return []
    named = (path for path in folder.iterdir() if FRAME_NAME.fullmatch(path.name))
    return sorted(path for path in named if path.is_file())


def find_frames(folder: Path) -> list[Path]:
    """All frames of a folder; one that is missing, damaged or of another size is an error."""
    found = frames_in(folder)
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; estragon record makes frames")
    if not found:
        others = sorted(folder.glob("*.png"))
        seen = f"; there are pictures of other names, such as {others[0].name}" if others else ""
        raise UserError(f"{folder} has no frames (frame_000000.png and so on){seen}")
    for number, path in enumerate(found):
        if path != frame_path(folder, number):
            raise _missing_frame(frame_path(folder, number))
    size = frame_size(found[0])
    for path in found:
        check_frame(path, size)
    return found


def check_frame(path: Path, size: tuple[int, int]) -> None:
    """Raise if a frame is missing, damaged, or not of this size."""
    found = frame_size(path)
    if found != size:
        (wide, high), (width, height) = found, size
        raise UserError(f"frame {path}: expected {width} × {height} pixels, got {wide} × {high}")


def frame_size(path: Path) -> tuple[int, int]:
    """Width and height of a complete frame, in pixels."""
    try:
        with path.open("rb") as stream:
            start = stream.read(HEADER.size)
            stream.seek(max(0, path.stat().st_size - len(PNG_END)))
            end = stream.read()
    except FileNotFoundError as error:
        raise _missing_frame(path) from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    if len(start) == HEADER.size and end == PNG_END:
        signature, kind, width, height = HEADER.unpack(start)
        if (signature, kind) == (PNG_START, b"IHDR"):
            return width, height
    raise _damaged_frame(path)


def is_complete(path: Path, size: tuple[int, int]) -> bool:
    """Whether a frame exists, complete and of this size."""
    try:
        check_frame(path, size)
    except UserError:
        return False
    return True


def read_frame(path: Path) -> Image.Image:
    """The image of a frame, RGB."""
    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except FileNotFoundError as error:
        raise _missing_frame(path) from error
    except (OSError, UnidentifiedImageError, SyntaxError) as error:
        raise _damaged_frame(path) from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of the frames in a folder; empty where there is none."""
    try:
        known = msgspec.json.decode((folder / MANIFEST).read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return known if isinstance(known, dict) else {}


def remove_frames(folder: Path) -> None:
    """Remove frames and their manifest, and nothing else."""
    remove_files([*frames_in(folder), folder / MANIFEST])
    remove_partial(folder)


def remove_partial(folder: Path) -> None:
    """Remove the frames that a killed process was writing."""
    remove_files(folder.glob(f"frame_*.png{PARTIAL}"))


def remove_files(files: Iterable[Path]) -> None:
    """Remove those of the files that exist."""
    for path in files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error


def _missing_frame(path: Path) -> UserError:
    return UserError(f"frame {path} is missing; frames are numbered from 0 without a gap")


def _damaged_frame(path: Path) -> UserError:
    return UserError(f"frame {path} is damaged: not a complete PNG; remove it and draw it again")


def encode_frames(
    frames: Sequence[Path], path: Path, fps: int, on_progress: OnProgress = lambda *_: None
) -> None:
    """Make an MP4 of frames of one size."""
    size = frame_size(frames[0])
    if size[0] % 2 or size[1] % 2:
        raise UserError(f"{frames[0]}: H.264 needs even sides, this has {size[0]} × {size[1]}")
    with mp4_writer(path, size, fps) as add:
        for done, frame in enumerate(frames, 1):
            add(read_frame(frame).tobytes())
            on_progress(done, len(frames))


@contextlib.contextmanager
def mp4_writer(path: Path, size: tuple[int, int], fps: int) -> Iterator[Callable[[bytes], None]]:
    """Write an H.264 MP4 that plays everywhere, renamed into place when the `with` ends well.

    It yields a function that appends one frame, given as the bytes of an RGB image with even sides.
    The same frames give the same bytes. `imageio_ffmpeg.write_frames` would not do: it drops
    ffmpeg's exit code and leaves its messages to the terminal.
    """
    ensure_writable(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".mp4")
    os.close(handle)
    temporary = Path(name)
    try:
        with _ffmpeg(_arguments(size, fps, temporary.absolute()), path) as write:

            def add(pixels: bytes) -> None:
                if len(pixels) != 3 * size[0] * size[1]:
                    raise ValueError(f"pixels: expected RGB {size}, got {len(pixels)} bytes")
                write(pixels)

            yield add
        with temporary.open("rb+") as film:
            os.fsync(film.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _arguments(size: tuple[int, int], fps: int, path: Path) -> list[str]:
    frames = f"-f rawvideo -pix_fmt rgb24 -s {size[0]}x{size[1]} -r {fps} -i pipe:0"
    # Players take untagged films for BT.709, while ffmpeg converts to BT.601 unless told.
    colours = "-vf scale=out_color_matrix=bt709:out_range=tv -pix_fmt yuv420p"
    colours += " -colorspace bt709 -color_primaries bt709 -color_trc bt709"
    codec = f"-c:v libx264 -preset veryfast -tune animation -crf {CRF} -threads {THREADS}"
    codec += " -fflags +bitexact -flags:v +bitexact -map_metadata -1 -movflags +faststart -f mp4"
    words = f"-hide_banner -loglevel error -nostdin -y {frames} -an {colours} {codec}"
    return [*words.split(), str(path)]


@contextlib.contextmanager
def _ffmpeg(arguments: list[str], path: Path) -> Iterator[Callable[[bytes], None]]:
    """Run ffmpeg, which reads what is written; it has ended when the `with` does."""
    program = find_ffmpeg()
    with tempfile.TemporaryFile() as messages:
        try:
            process = subprocess.Popen(
                [program, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=messages,
            )
        except OSError as error:
            raise UserError(f"cannot start ffmpeg ({program}): {error.strerror}") from error

        def failed() -> UserError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
            messages.seek(0)
            lines = messages.read().decode(errors="replace").split("\n")
            silent = f"exit code {process.returncode}, no message"
            last = next((line.strip() for line in reversed(lines) if line.strip()), silent)
            return UserError(f"ffmpeg could not write {path}: {last}")

        def write(data: bytes) -> None:
            try:
                process.stdin.write(data)  # type: ignore[union-attr]
            except OSError as error:
                raise failed() from error

        try:
            yield write
            process.communicate(timeout=FINISH_TIMEOUT_SEC)
        except subprocess.TimeoutExpired as error:
            raise failed() from error
        finally:
            process.kill()
            process.wait()
            with contextlib.suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]
        if process.returncode != 0:
            raise failed()


def find_ffmpeg() -> str:
    """The ffmpeg that came with imageio-ffmpeg, or the one IMAGEIO_FFMPEG_EXE names."""
    from imageio_ffmpeg import get_ffmpeg_exe

    try:
        return str(get_ffmpeg_exe())
    except RuntimeError as error:
        raise UserError(f"{str(error).rstrip('.')}; set IMAGEIO_FFMPEG_EXE") from error
