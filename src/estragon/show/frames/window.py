"""Godot with a window: how it is started, and watched while it draws frames."""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from estragon.godot.process import GodotProcess
from estragon.support.errors import UserError

STALL_SEC = 120.0
"""How long there may be no new frame."""
POLL_SEC = 0.1
SMALLEST_PX, LARGEST_PX = 64, 8192
"""The sides of a picture; Godot has no smaller windows."""
MOST_FPS = 240


def words_of(project: Path, size: tuple[int, int], fps: int | None = None) -> list[str | Path]:
    """Godot's own arguments for a window; with a rate, the game's time is not the clock's."""
    words: list[str | Path] = ["--path", project, "--rendering-driver", "opengl3"]
    words += ["--resolution", f"{size[0]}x{size[1]}"]
    if fps is not None:
        words += ["--audio-driver", "Dummy", "--disable-vsync", "--fixed-fps", str(fps)]
    return words


def watch(
    processes: Sequence[GodotProcess],
    count: Callable[[], int],
    total: int,
    tell: Callable[[int, int], None],
    stall_sec: float = STALL_SEC,
) -> None:
    """Wait until all have ended well; one that fails, or no new frame for long, is an error.

    Args:
        processes: draw frames.
        count: says how many there are.
        total: how many there should be, for `tell`.
        tell: hears how many there are, and of how many.
        stall_sec: how long there may be no new one.
    """
    seen, moved_at = -1, time.monotonic()
    while True:
        running = [process for process in processes if process.status is None]
        if (done := count()) != seen:
            seen, moved_at = done, time.monotonic()
            tell(done, total)
        for process in processes:
            if process.status not in (None, 0):
                raise why_it_failed(process)
        if not running:
            return
        if time.monotonic() - moved_at > stall_sec:
            raise running[0].error(f"no new frame in {stall_sec:g} s; there are {done} of {total}")
        time.sleep(POLL_SEC)


def why_it_failed(process: GodotProcess) -> UserError:
    """The game's own words where it gave a reason, else how it ended."""
    said = [line for line in process.tail() if line.startswith("estragon: ")]
    if said:
        return UserError(said[-1].removeprefix("estragon: "))
    return process.error(process.how_it_ended())


def check_picture(size: tuple[int, int], fps: int) -> None:
    """Refuse pictures that nobody can draw."""
    if not all(SMALLEST_PX <= side <= LARGEST_PX for side in size):
        raise UserError(
            f"size: expected {SMALLEST_PX} to {LARGEST_PX} pixels a side, got {size[0]} × {size[1]}"
        )
    if not 1 <= fps <= MOST_FPS:
        raise UserError(f"fps: expected 1 to {MOST_FPS} frames a second, got {fps}")


def parse_size(text: str) -> tuple[int, int]:
    """A size such as 1280x720."""
    found = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", text)
    if found is None:
        raise UserError(f"size: expected WIDTHxHEIGHT, such as 1280x720, got '{text}'")
    return int(found[1]), int(found[2])
