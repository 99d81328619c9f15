"""A film of one logged match, at the game's own pace, by whoever draws frames."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from estragon.show.drawing.lettering import write
from estragon.show.drawing.paths_picture import story_of
from estragon.show.film.plan import Quality
from estragon.show.film.renderers import Renderer
from estragon.show.film.shots import Shot
from estragon.show.film.top_down_renderer import TopDownRenderer
from estragon.show.frames.encode import Mp4Writer
from estragon.show.trajectories.trajectory import Trajectory, read_trajectory

FROM_ABOVE, WIDE = (720, 800), (1280, 720)
"""Pixels: with room for words above and below the arena, and where words are in the picture."""
HOLD_SEC = 1.0
"""How long the end stays in sight."""
EDGE, INK = 29, (38, 36, 34)


def film_match(
    trajectory: Path,
    path: Path,
    *,
    title: str,
    fps: int,
    renderer: Renderer,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Write an MP4 of a logged match.

    Args:
        trajectory: the match's file.
        path: the film; written whole, or not at all.
        title: stands above the arena, or where Godot shows it.
        fps: frames a second.
        renderer: who draws.
        tell: hears how many frames are drawn, and of how many.
    """
    match = read_trajectory(trajectory)
    times = _times(match, fps)
    words = renderer.name == TopDownRenderer.name
    size = FROM_ABOVE if words else WIDE
    with (
        tempfile.TemporaryDirectory(prefix="estragon-frames-") as folder,
        Mp4Writer(path, size, fps) as film,
    ):
        shot = Shot(trajectory, Path(folder), times, title)
        renderer.draw([shot], Quality(size, fps), tell)
        for number, second in enumerate(times):
            frame = shot.read(number)
            if words:
                _caption(frame, match, second, title)
            film.add(frame)


def _times(match: Trajectory, fps: int) -> tuple[float, ...]:
    """The second of the match that each frame shows."""
    frames = int(np.ceil((float(match.seconds[-1]) + HOLD_SEC) * fps)) + 1
    return tuple(round(frame / fps, 6) for frame in range(frames))


def _caption(frame: Image.Image, match: Trajectory, second: float, title: str) -> None:
    end = float(match.seconds[-1])
    width, height = frame.size
    write(frame, (EDGE, 45), title, 26, INK, weight=0.5, widest=width - 2 * EDGE)
    left = max(0.0, match.start.time_limit_sec - min(second, end))
    at = (width - EDGE, height - 24)
    write(frame, at, f"{left:.1f} s left", 18, INK, anchor="rs")
    if second >= end:
        widest = width - 2 * EDGE - 130
        write(frame, (EDGE, height - 24), story_of(match), 18, INK, widest=widest)
