"""Frames of a game while real Godot plays it: bots, or a person at the keys."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from estragon.godot.display import display
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.show.frames.files import (
    LOGS,
    MANIFEST,
    check_frame,
    find_frames,
    frames_in,
    frames_in_the_way,
    remove_unfinished,
)
from estragon.show.frames.window import STALL_SEC, check_picture, watch, words_of
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, locked, write_json
from estragon.tag.rules import load_rules


def record_live(
    folder: Path,
    *,
    size: tuple[int, int],
    fps: int,
    seconds: float,
    options: Sequence[str],
    real_time: bool = False,
    stall_sec: float = STALL_SEC,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Path]:
    """Let Godot play, and draw every 1/fps second of it; ends early if the window is closed.

    Args:
        folder: of the frames; there may be none in it yet.
        size: width and height in pixels.
        fps: frames a second of the game, at most as many as it has ticks.
        seconds: of the game.
        options: the game's own, such as `--seeker=bot:chaser`.
        real_time: whether somebody plays, so that the game goes no faster than the clock.
        stall_sec: how long there may be no new frame before that is an error.
        tell: hears how many frames there are, and of how many.

    Returns:
        The frames, in order.
    """
    check_picture(size, fps)
    ticks = load_rules().physics.ticks_per_second
    if fps > ticks:
        raise UserError(f"fps: a game has {ticks} ticks a second to draw, got {fps}")
    total = max(1, round(seconds * fps))
    project = import_project(paths.godot_project())
    folder = folder.absolute()
    ensure_writable(folder / MANIFEST)
    with locked(folder / ".lock", timeout_sec=0.0):
        if there := frames_in(folder):
            raise frames_in_the_way(folder, len(there))
        remove_unfinished(folder)
        write_json(folder / MANIFEST, {"made_from": "a game", "size": list(size), "fps": fps})
        words = [*words_of(project, size, None if real_time else fps), "--", *options]
        words += [f"--frames-to={folder}", f"--record-fps={fps}", f"--last-frame={total - 1}"]
        with (
            display(*size) as env,
            GodotProcess(words, folder=folder / LOGS, env=env) as process,
        ):
            watch([process], lambda: len(frames_in(folder)), total, tell, stall_sec)
        found = find_frames(folder)
        check_frame(found[0], size)
        shutil.rmtree(folder / LOGS, ignore_errors=True)
    return found
