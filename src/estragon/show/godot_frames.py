"""Godot draws frames: of a logged match, or of a game while it is played."""

import contextlib
import hashlib
import math
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from estragon.godot.display import display, has_display
from estragon.godot.find import check_version, require_godot
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.show.frames import (
    MANIFEST,
    MAX_FPS,
    OnProgress,
    check_frame,
    find_frames,
    frame_path,
    frames_in,
    is_complete,
    read_manifest,
    remove_files,
    remove_partial,
)
from estragon.show.trajectory import Trajectory
from estragon.show.trajectory_reader import read_trajectory
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, locked, write_json
from estragon.support.parallel import available_cores
from estragon.tag.rules import load_rules

LOGS = "logs"
"""A folder beside the frames with Godot's logs, until all frames are drawn."""
STALL_SEC = 120.0
"""How long there may be no new frame."""
POLL_SEC = 0.1
HOLD_SEC = 1.5
"""How long the end of a match stays in sight."""
MIN_FRAMES_PER_PROCESS = 20
"""Starting a process takes as long as drawing some frames."""
MAX_FRAMES = 1_000_000
MIN_SIDE_PX, MAX_SIDE_PX = 64, 8192
"""Godot has no smaller windows."""
SLOWEST, FASTEST = 0.1, 4.0
DRAWN_BY = ("project.godot", "scenes", "tag")
"""The parts of the Godot project that can change a frame."""


def render_frames(
    trajectory: Path,
    folder: Path,
    *,
    size: tuple[int, int],
    fps: int = 60,
    times: Sequence[float] | None = None,
    title: str = "",
    hud: bool = True,
    workers: int | None = None,
    stall_sec: float = STALL_SEC,
    on_progress: OnProgress = lambda *_: None,
) -> list[Path]:
    """Draw a logged match; frames that exist already are kept.

    The same arguments give the same pixels, in one go or after an interruption.

    Args:
        folder: of the frames; one that holds other frames is refused.
        times: the second of the match that each frame shows, never decreasing; by default the
            whole match at its own pace, and a moment after it.
        hud: whether clock, names and verdict are drawn, too.
        workers: processes that share the work; by default one per core.
        stall_sec: how long there may be no new frame before that is an error.
    """
    match = read_trajectory(trajectory)
    seconds = frame_times(match, fps) if times is None else list(times)
    check_picture(size, fps)
    if not 1 <= len(seconds) < MAX_FRAMES:
        raise UserError(f"times: expected 1 to {MAX_FRAMES - 1} frames, got {len(seconds)}")
    if seconds[0] < 0.0 or any(after < before for before, after in pairwise(seconds)):
        raise UserError("times: expected seconds of a match that never decrease")
    project = import_project(paths.godot_project())
    made_from = [fingerprint(), trajectory.read_bytes(), size, seconds, title, hud]
    digest = hashlib.sha256(repr(made_from).encode()).hexdigest()
    with (
        _claimed(folder.absolute(), {"made_from": digest, "size": list(size), "fps": fps}) as own,
        tempfile.TemporaryDirectory(prefix="estragon-frames-") as scratch,
    ):
        frames = [frame_path(own, number) for number in range(len(seconds))]
        write_json(Path(scratch) / "times.json", seconds)
        words = [*window_arguments(project, size, fps), "res://scenes/Replay.tscn", "--"]
        words += [f"--replay={trajectory.absolute()}", f"--times={scratch}/times.json"]
        words += [f"--title={title}", f"--hud={int(hud)}", "--keep-frames=1"]
        words += [f"--frames-to={own}", f"--record-fps={fps}"]

        def count() -> int:
            return sum(frame.exists() for frame in frames)

        if missing := _remove_incomplete(frames, size):
            with _processes(words, own, size, _shares(missing, workers)) as processes:
                _watch(processes, count, len(frames), on_progress, stall_sec)
        for frame in frames:
            check_frame(frame, size)
        shutil.rmtree(own / LOGS, ignore_errors=True)
    return frames


def record_live(
    folder: Path,
    *,
    size: tuple[int, int],
    fps: int,
    seconds: float,
    options: Sequence[str],
    real_time: bool = False,
    stall_sec: float = STALL_SEC,
    on_progress: OnProgress = lambda *_: None,
) -> list[Path]:
    """Let Godot play, and draw every 1/fps second of it; ends early if the window is closed.

    Args:
        folder: of the frames; there may be none in it yet.
        options: the game's own, such as `--seeker=bot:chaser`.
        real_time: whether a person plays, so that the game runs no faster than the clock.
        stall_sec: how long there may be no new frame before that is an error.
    """
    check_picture(size, fps)
    ticks = load_rules().physics.ticks_per_second
    if fps > ticks:
        raise UserError(f"fps: a game has {ticks} ticks a second to draw, got {fps}")
    total = max(1, round(seconds * fps))
    project = import_project(paths.godot_project())
    words = window_arguments(project, size, None if real_time else fps)
    manifest = {"made_from": "a game", "size": list(size), "fps": fps}
    with _claimed(folder.absolute(), manifest, resume=False) as own:
        words += ["--", *options, f"--frames-to={own}", f"--record-fps={fps}"]
        words.append(f"--last-frame={total - 1}")
        with display(*size) as env, GodotProcess(words, folder=own / LOGS, env=env) as process:
            _watch([process], lambda: len(frames_in(own)), total, on_progress, stall_sec)
        found = find_frames(own)
        check_frame(found[0], size)
        shutil.rmtree(own / LOGS, ignore_errors=True)
    return found


def show_replay(path: Path, *, size: tuple[int, int], speed: float) -> None:
    """Show a logged match, or all in a folder, in a window until it is closed."""
    if not SLOWEST <= speed <= FASTEST:
        raise UserError(f"--speed: expected {SLOWEST:g} to {FASTEST:g}, got {speed:g}")
    if not path.is_dir():
        read_trajectory(path)
    if not has_display():
        raise UserError(
            "there is no display to open a window on; estragon record FILE draws a match into "
            "pictures"
        )
    words = window_arguments(import_project(paths.godot_project()), size)
    words += ["res://scenes/Replay.tscn", "--"]
    words += [f"--replay={path.absolute()}", f"--speed={speed}"]
    with (
        tempfile.TemporaryDirectory(prefix="estragon-") as folder,
        GodotProcess(words, folder=Path(folder), name="replay") as process,
    ):
        if process.wait("the window to be closed", math.inf) != 0:
            raise game_error(process)


def newest_log(path: Path) -> Path:
    """The log itself, or the newest one in a folder."""
    if not path.is_dir():
        return path
    logs = [(log.stat().st_mtime_ns, log) for log in path.glob("*.jsonl")]
    if not logs:
        raise UserError(f"{path}: no logged match in this folder; estragon eval-episode logs one")
    return max(logs)[1]


def frame_times(match: Trajectory, fps: int) -> list[float]:
    """A whole match at its own pace, and a moment after it: the second of each frame."""
    end_sec = float(match.seconds[-1]) + HOLD_SEC
    return [number / fps for number in range(int(end_sec * fps) + 1)]


def fingerprint() -> str:
    """A digest of everything that can change Godot's frames of a match."""
    project = paths.godot_project()
    digest = hashlib.sha256(check_version(require_godot()).encode())
    for part in DRAWN_BY:
        inside = sorted(path for path in (project / part).rglob("*") if path.is_file())
        for path in inside or [project / part]:
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def window_arguments(
    project: Path, size: tuple[int, int], fps: int | None = None
) -> list[str | Path]:
    """Godot's own arguments for a window; with a rate, the game's time is not the clock's."""
    words: list[str | Path] = ["--path", project, "--rendering-driver", "opengl3"]
    words += ["--resolution", f"{size[0]}x{size[1]}"]
    if fps is not None:
        words += ["--audio-driver", "Dummy", "--disable-vsync", "--fixed-fps", str(fps)]
    return words


def game_error(process: GodotProcess) -> UserError:
    """The game's own message where it printed one, else how it ended."""
    said = [line for line in process.tail() if line.startswith("estragon: ")]
    if said:
        return UserError(said[-1].removeprefix("estragon: "))
    return process.error(process.how_it_ended())


def check_picture(size: tuple[int, int], fps: int) -> None:
    """Refuse a size or a rate that cannot be drawn."""
    if not all(MIN_SIDE_PX <= side <= MAX_SIDE_PX for side in size):
        raise UserError(
            f"size: expected {MIN_SIDE_PX} to {MAX_SIDE_PX} pixels a side, "
            f"got {size[0]} × {size[1]}"
        )
    if not 1 <= fps <= MAX_FPS:
        raise UserError(f"fps: expected 1 to {MAX_FPS} frames a second, got {fps}")


def parse_size(text: str) -> tuple[int, int]:
    """A size such as 1280x720."""
    found = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", text)
    if found is None:
        raise UserError(f"size: expected WIDTHxHEIGHT, such as 1280x720, got '{text}'")
    return int(found[1]), int(found[2])


@contextlib.contextmanager
def _claimed(folder: Path, manifest: dict[str, object], *, resume: bool = True) -> Iterator[Path]:
    """The folder, locked and ready for these frames; refused if it holds other frames."""
    ensure_writable(folder / MANIFEST)
    with locked(folder / ".lock", timeout_sec=0.0):
        remove_partial(folder)
        if not resume or read_manifest(folder) != manifest:
            if existing := frames_in(folder):
                raise UserError(
                    f"{folder} holds {len(existing)} frames of something else; choose another "
                    "folder, or remove them (estragon record --overwrite does)"
                )
            write_json(folder / MANIFEST, manifest)
        yield folder


def _remove_incomplete(frames: Sequence[Path], size: tuple[int, int]) -> list[int]:
    """The numbers of frames that are still to be drawn; damaged ones are removed."""
    missing = [number for number, frame in enumerate(frames) if not is_complete(frame, size)]
    remove_files(frames[number] for number in missing)
    return missing


def _shares(missing: list[int], workers: int | None) -> list[tuple[int, int]]:
    """The first and the last frame of every process."""
    wanted = available_cores() if workers is None else workers
    count = max(1, min(wanted, len(missing) // MIN_FRAMES_PER_PROCESS))
    edges = [len(missing) * share // count for share in range(count + 1)]
    return [(missing[start], missing[end - 1]) for start, end in pairwise(edges)]


@contextlib.contextmanager
def _processes(
    words: Sequence[str | Path], folder: Path, size: tuple[int, int], shares: list[tuple[int, int]]
) -> Iterator[list[GodotProcess]]:
    """Processes that draw a share of the frames each."""
    threads = str(max(1, available_cores() // len(shares)))
    with display(*size) as env, contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                GodotProcess(
                    [*words, f"--first-frame={first}", f"--last-frame={last}"],
                    folder=folder / LOGS,
                    name=f"godot-{number}",
                    env=env | {"LP_NUM_THREADS": threads},  # of Mesa, where there is no GPU
                )
            )
            for number, (first, last) in enumerate(shares)
        ]


def _watch(
    processes: Sequence[GodotProcess],
    count: Callable[[], int],
    total: int,
    on_progress: OnProgress,
    stall_sec: float,
) -> None:
    """Wait until all have ended well; a failure, or no new frame for long, is an error."""
    seen, moved_at = -1, time.monotonic()
    while True:
        running = [process for process in processes if process.status is None]
        if (done := count()) != seen:
            seen, moved_at = done, time.monotonic()
            on_progress(done, total)
        for process in processes:
            if process.status not in (None, 0):
                raise game_error(process)
        if not running:
            return
        if time.monotonic() - moved_at > stall_sec:
            raise running[0].error(f"no new frame in {stall_sec:g} s; there are {done} of {total}")
        time.sleep(POLL_SEC)
