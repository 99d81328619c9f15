"""Draws matches into frames, with Godot or from above; and the film of one match."""

import collections
import contextlib
import multiprocessing
import os
import signal
import struct
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from PIL import Image

from estragon.show.canvas import INK, write_text
from estragon.show.frames import (
    PARTIAL,
    OnProgress,
    Quality,
    check_frame,
    frame_path,
    is_complete,
    mp4_writer,
    read_frame,
)
from estragon.show.godot_frames import fingerprint, render_frames
from estragon.show.top_down import Motion, TopDown, motion_of
from estragon.show.trajectory import Trajectory
from estragon.show.trajectory_reader import read_trajectory
from estragon.support.errors import UserError
from estragon.support.files import cannot_write
from estragon.support.parallel import available_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

ITEMS_AHEAD = 3
"""Items given to each worker before the first result is awaited."""
TOP_DOWN_SIZE, GODOT_SIZE = (720, 800), (1280, 720)
"""Of the film of one match: with room for text around the arena, and where text is in the frame."""
HOLD_SEC = 1.0
"""How long the end of one match stays in sight."""
EDGE = 29
FILTER_UP, TRUE_COLOUR = 2, 2
"""Numbers of the PNG specification."""


class Shot(NamedTuple):
    """A match and the moments of it that are drawn."""

    trajectory: Path
    folder: Path
    """Of frame_000000.png and so on."""
    times: tuple[float, ...] = ()
    """The second of the match that each frame shows."""
    title: str | None = None
    """A headline, and with it clock and names, where the renderer has them; None for neither."""

    def missing(self, size: tuple[int, int]) -> list[int]:
        """The frames that are not drawn yet, or damaged."""
        frames = (frame_path(self.folder, number) for number in range(len(self.times)))
        return [number for number, path in enumerate(frames) if not is_complete(path, size)]

    def check(self, size: tuple[int, int]) -> None:
        """Raise on the first frame that is missing, damaged or of another size."""
        for number in range(len(self.times)):
            check_frame(frame_path(self.folder, number), size)

    def read(self, number: int) -> Image.Image:
        """One of its frames, drawn before: RGB."""
        return read_frame(frame_path(self.folder, number))


class GodotRenderer:
    """The game as a player sees it; needs Godot, and a display or Xvfb."""

    name = "Godot"

    def fingerprint(self) -> str:
        """Changes when its frames might."""
        return fingerprint()

    def draw(self, shots: Sequence[Shot], quality: Quality, on_progress: OnProgress) -> None:
        """Draw every frame that is missing."""
        missing = [len(shot.missing(quality.size)) for shot in shots]
        for number, shot in enumerate(shots):
            # as if all frames before this shot's missing ones existed
            ahead = sum(missing[: number + 1]) - len(shot.times)
            render_frames(
                shot.trajectory,
                shot.folder,
                size=quality.size,
                fps=quality.fps,
                times=shot.times,
                title=shot.title or "",
                hud=shot.title is not None,
                on_progress=lambda done, _, ahead=ahead: on_progress(ahead + done, sum(missing)),  # type: ignore[misc]
            )


class TopDownRenderer:
    """The arena from above; needs neither Godot nor a display."""

    name = "top-down"

    def fingerprint(self) -> str:
        """Empty: a film's key covers the package's source."""
        return ""

    def draw(self, shots: Sequence[Shot], quality: Quality, on_progress: OnProgress) -> None:
        """Draw every frame that is missing."""
        missing = [
            (job, number) for job, shot in enumerate(shots) for number in shot.missing(quality.size)
        ]
        if not missing:
            return
        jobs = []
        for shot in shots:
            match = read_trajectory(shot.trajectory)
            view = TopDown(match.game_rules(), match.layout, quality.size)
            jobs.append((shot.folder, view, motion_of(match, shot.times)))
        with workers(_prepare, jobs) as pool:
            for done, _ in enumerate(in_order(pool, _draw, missing), start=1):
                on_progress(done, len(missing))


Renderer = GodotRenderer | TopDownRenderer


def choose_renderer(
    wanted: Literal["auto", "godot", "top-down"], say: Callable[[str], None]
) -> Renderer:
    """The renderer that was asked for, or else the best that works here."""
    from estragon.godot.display import has_display, require_xvfb
    from estragon.godot.find import find_godot

    if wanted == "auto":
        try:
            find_godot()
            if not has_display():
                require_xvfb()
        except UserError as error:
            say(f"drawing from above, without Godot: {error}")
            wanted = "top-down"
    return TopDownRenderer() if wanted == "top-down" else GodotRenderer()


_jobs: list[tuple[Path, TopDown, Motion]]


def _prepare(jobs: list[tuple[Path, TopDown, Motion]]) -> None:
    global _jobs  # noqa: PLW0603 - one per worker
    _jobs = jobs


def _draw(frame: tuple[int, int]) -> None:
    job, number = frame
    folder, view, motion = _jobs[job]
    save_frame(view.draw(motion, number), frame_path(folder, number))


def save_frame(image: Image.Image, path: Path) -> None:
    """Write a frame, renamed into place when it is complete."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(encode_png(image))
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise cannot_write(path, error) from error


def encode_png(image: Image.Image) -> bytes:
    """A PNG of an RGB image, in a third of the time that Pillow takes.

    Pillow tries every filter on every row; frames from above are flat, and the row above is always
    a good prediction.
    """
    rows = np.asarray(image)
    height, width, channels = rows.shape
    filtered = np.empty((height, 1 + width * channels), dtype=np.uint8)
    filtered[:, 0] = FILTER_UP
    flat = rows.reshape(height, -1)
    filtered[0, 1:] = flat[0]
    np.subtract(flat[1:], flat[:-1], out=filtered[1:, 1:])
    header = struct.pack(">2I5B", width, height, 8, TRUE_COLOUR, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def film_match(
    trajectory: Path,
    path: Path,
    *,
    title: str,
    fps: int,
    renderer: Renderer,
    on_progress: OnProgress = lambda *_: None,
) -> None:
    """Write an MP4 of one logged match, at the game's own pace."""
    match = read_trajectory(trajectory)
    count = int(np.ceil((float(match.seconds[-1]) + HOLD_SEC) * fps)) + 1
    times = tuple(round(frame / fps, 6) for frame in range(count))
    captions = renderer.name == TopDownRenderer.name
    size = TOP_DOWN_SIZE if captions else GODOT_SIZE
    with (
        tempfile.TemporaryDirectory(prefix="estragon-frames-") as folder,
        mp4_writer(path, size, fps) as add,
    ):
        shot = Shot(trajectory, Path(folder), times, title)
        renderer.draw([shot], Quality(size, fps), on_progress)
        for number, second in enumerate(times):
            frame = shot.read(number)
            if captions:
                _write_caption(frame, match, second, title)
            add(frame.tobytes())


def _write_caption(frame: Image.Image, match: Trajectory, second: float, title: str) -> None:
    end = float(match.seconds[-1])
    width, height = frame.size
    write_text(frame, (EDGE, 45), title, 26, INK, weight=0.5, max_width=width - 2 * EDGE)
    left = max(0.0, match.game_rules().limit_sec - min(second, end))
    write_text(frame, (width - EDGE, height - 24), f"{left:.1f} s left", 18, INK, anchor="rs")
    if second >= end:
        max_width = width - 2 * EDGE - 130
        write_text(frame, (EDGE, height - 24), match.summary(), 18, INK, max_width=max_width)


@contextlib.contextmanager
def workers(prepare: Callable[..., None], *arguments: Any) -> Iterator[ProcessPoolExecutor]:
    """One process per core, each after `prepare(*arguments)`; they end with this process."""
    pool = ProcessPoolExecutor(
        available_cores(),
        # a fork would copy the locks of threads that no longer exist, and open files
        multiprocessing.get_context("spawn"),
        _start_worker,
        (prepare, arguments),
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def in_order(
    pool: ProcessPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """The results of all items in their order, with only a few of them in memory."""
    waiting: collections.deque[Future[Result]] = collections.deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > ITEMS_AHEAD * available_cores():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _start_worker(prepare: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides when to stop
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    prepare(*arguments)


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
