"""Frames: pictures of one size, numbered from 0 without a gap, found, checked and encoded."""

import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from estragon.support.errors import UserError
from estragon.support.files import cannot_write

if TYPE_CHECKING:
    from PIL import Image

NUMBERED = re.compile(r"frame_(\d{6})\.png")
MANIFEST = "frames.json"
"""Beside the frames: what they were made from, their size and rate."""
LOGS = "logs"
"""A folder beside the frames: what Godot said, until all are drawn."""
UNFINISHED = ".part"
PNG_START, PNG_END = b"\x89PNG\r\n\x1a\n", b"\0\0\0\0IEND\xaeB`\x82"
HEADER = struct.Struct(">8s4x4sII")


def frame_path(folder: Path, number: int) -> Path:
    """Where a frame lies."""
    return folder / f"frame_{number:06d}.png"


def frames_in(folder: Path) -> list[Path]:
    """What is there, in order; there may be gaps."""
    if not folder.is_dir():
        return []
    named = (path for path in folder.iterdir() if NUMBERED.fullmatch(path.name))
    return sorted(path for path in named if path.is_file())


def find_frames(folder: Path) -> list[Path]:
    """All frames of a folder; one that is missing, damaged or of another size is an error."""
    found = frames_in(folder)
    if not found:
        raise _no_frames(folder)
    for number, path in enumerate(found):
        if path != frame_path(folder, number):
            raise lost_frame(frame_path(folder, number))
    size = frame_size(found[0])
    for path in found:
        check_frame(path, size)
    return found


def check_frame(path: Path, size: tuple[int, int]) -> None:
    """Name a frame that is not there, not whole, or not of this size."""
    found = frame_size(path)
    if found != size:
        (wide, high), (width, height) = found, size
        raise UserError(f"frame {path}: expected {width} × {height} pixels, got {wide} × {high}")


def frame_size(path: Path) -> tuple[int, int]:
    """Width and height of a picture that is whole, in pixels."""
    try:
        with path.open("rb") as stream:
            start = stream.read(HEADER.size)
            stream.seek(max(0, path.stat().st_size - len(PNG_END)))
            end = stream.read()
    except FileNotFoundError as error:
        raise lost_frame(path) from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    if len(start) < HEADER.size or end != PNG_END:
        raise damaged_frame(path)
    signature, kind, width, height = HEADER.unpack(start)
    if (signature, kind) != (PNG_START, b"IHDR"):
        raise damaged_frame(path)
    return width, height


def is_whole(path: Path, size: tuple[int, int]) -> bool:
    """Whether a frame is there, as it should be."""
    try:
        check_frame(path, size)
    except UserError:
        return False
    return True


def read_frame(path: Path) -> "Image.Image":
    """A frame's picture, RGB."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            return picture.convert("RGB")
    except FileNotFoundError as error:
        raise lost_frame(path) from error
    except (OSError, UnidentifiedImageError, SyntaxError) as error:
        raise damaged_frame(path) from error


def encode_frames(
    frames: Sequence[Path],
    path: Path,
    fps: int,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Make an MP4 of frames of one size; whole, or not at all."""
    from estragon.show.frames.encode import Mp4Writer

    size = frame_size(frames[0])
    if size[0] % 2 or size[1] % 2:
        raise UserError(f"{frames[0]}: H.264 needs even sides, this has {size[0]} × {size[1]}")
    with Mp4Writer(path, size, fps) as film:
        for done, frame in enumerate(frames, 1):
            film.add(read_frame(frame))
            tell(done, len(frames))


def read_manifest(folder: Path) -> dict[str, Any]:
    """What is known of the frames in a folder; nothing where nobody said."""
    try:
        known = msgspec.json.decode((folder / MANIFEST).read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return known if isinstance(known, dict) else {}


def remove_frames(folder: Path) -> None:
    """Remove frames and what belongs to them, and nothing else."""
    try:
        for path in (*frames_in(folder), folder / MANIFEST):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    remove_unfinished(folder)


def remove_unfinished(folder: Path) -> None:
    """Remove what was being written when somebody was killed."""
    try:
        for path in folder.glob(f"frame_*.png{UNFINISHED}"):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def frames_in_the_way(folder: Path, count: int) -> UserError:
    """What to say of frames that nobody wants to lose."""
    return UserError(
        f"{folder} holds {count} frames of something else; choose another folder, or remove them "
        "(estragon record --overwrite does)"
    )


def lost_frame(path: Path) -> UserError:
    """What to say of a frame that should be there."""
    return UserError(f"frame {path} is missing; frames are numbered from 0 without a gap")


def damaged_frame(path: Path) -> UserError:
    """What to say of a frame that is not whole."""
    return UserError(f"frame {path} is damaged: it is not a whole PNG; remove it and draw it again")


def _no_frames(folder: Path) -> UserError:
    if not folder.is_dir():
        return UserError(f"there is no folder {folder}; estragon record makes frames")
    others = sorted(folder.glob("*.png"))
    seen = f"; there are pictures of other names, such as {others[0].name}" if others else ""
    return UserError(f"{folder} has no frames (frame_000000.png and so on){seen}")
