"""Real Godot draws a logged match into frames; what is drawn already stays as it is."""

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from estragon.godot.display import display
from estragon.godot.find import check_version, require_godot
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.show.frames.files import (
    LOGS,
    MANIFEST,
    check_frame,
    frame_path,
    frames_in,
    frames_in_the_way,
    is_whole,
    read_manifest,
    remove_unfinished,
)
from estragon.show.frames.window import STALL_SEC, check_picture, watch, words_of
from estragon.show.trajectories.trajectory import Trajectory, read_trajectory
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import cannot_write, ensure_writable, locked, write_json
from estragon.support.parallel import available_cores
from estragon.tag.rules import Role

HOLD_SEC = 1.5
"""How long the end of a match stays in sight."""
FEWEST_FRAMES = 20
"""Of a process: starting one takes as long as drawing some frames."""
MOST_FRAMES = 1_000_000
DRAWS_BY = ("project.godot", "scenes", "tag")
"""What of the Godot project can change a picture."""


class _Plan(NamedTuple):
    """What all processes that draw a match have in common."""

    project: Path
    folder: Path
    size: tuple[int, int]
    fps: int
    options: list[str]


def render_frames(
    trajectory: Path,
    folder: Path,
    *,
    size: tuple[int, int],
    fps: int = 60,
    times: Sequence[float] | None = None,
    title: str = "",
    players: Mapping[Role, str] | None = None,
    hud: bool = True,
    workers: int | None = None,
    stall_sec: float = STALL_SEC,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Path]:
    """Draw a match; frames that are there already are kept, those that are missing are drawn.

    The same arguments give the same pixels, in one go or after an interruption.

    Args:
        trajectory: the match's file.
        folder: of the frames; one that holds frames of something else is refused.
        size: width and height in pixels.
        fps: frames a second.
        times: the second of the match that each frame shows, never going back; by default the
            whole match at its own pace, and a moment after it.
        title: a headline.
        players: who plays a role, if that is to be told otherwise than in the log.
        hud: whether clock, names and verdict are drawn, too.
        workers: processes that share the work; by default as many as this machine has use for.
        stall_sec: how long there may be no new frame before that is an error.
        tell: hears how many frames there are, and of how many.

    Returns:
        The frames, in order.
    """
    match = read_trajectory(trajectory)
    moments = frame_times(match, fps) if times is None else list(times)
    check_picture(size, fps)
    _check_times(moments)
    project = import_project(paths.godot_project())
    made_from = [fingerprint(), trajectory.read_bytes(), size, moments, title, players, hud]
    digest = hashlib.sha256(repr(made_from).encode()).hexdigest()
    folder = folder.absolute()
    ensure_writable(folder / MANIFEST)
    with (
        locked(folder / ".lock", timeout_sec=0.0),
        tempfile.TemporaryDirectory(prefix="estragon-frames-") as scratch,
    ):
        _claim(folder, {"made_from": digest, "size": list(size), "fps": fps})
        frames = [frame_path(folder, number) for number in range(len(moments))]
        write_json(Path(scratch) / "times.json", moments)
        options = [f"--replay={trajectory.absolute()}", f"--times={scratch}/times.json"]
        options += [f"--title={title}", f"--hud={int(hud)}", "--keep-frames=1"]
        options += [f"--{role}-name={name}" for role, name in (players or {}).items()]
        plan = _Plan(project, folder, size, fps, options)
        if missing := _missing(frames, size):
            with _drawing(plan, _shares(missing, workers)) as processes:
                watch(processes, lambda: _count(frames), len(frames), tell, stall_sec)
        for frame in frames:
            check_frame(frame, size)
        shutil.rmtree(folder / LOGS, ignore_errors=True)
    return frames


def frame_times(match: Trajectory, fps: int) -> list[float]:
    """A whole match at its own pace, and a moment after it: the second of each frame."""
    end_sec = float(match.seconds[-1]) + HOLD_SEC
    return [number / fps for number in range(int(end_sec * fps) + 1)]


def fingerprint() -> str:
    """Changes when Godot's pictures of a match might."""
    project = paths.godot_project()
    digest = hashlib.sha256(check_version(require_godot()).text.encode())
    for part in DRAWS_BY:
        inside = sorted(path for path in (project / part).rglob("*") if path.is_file())
        for path in inside or [project / part]:
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _check_times(times: Sequence[float]) -> None:
    if not 1 <= len(times) < MOST_FRAMES:
        raise UserError(f"times: expected 1 to {MOST_FRAMES - 1} frames, got {len(times)}")
    if times[0] < 0.0 or any(after < before for before, after in pairwise(times)):
        raise UserError("times: expected seconds of a match that never go back")


def _claim(folder: Path, manifest: dict[str, object]) -> None:
    """Make the folder ours, or go on where the same frames were being drawn."""
    remove_unfinished(folder)
    if read_manifest(folder) == manifest:
        return
    if there := frames_in(folder):
        raise frames_in_the_way(folder, len(there))
    write_json(folder / MANIFEST, manifest)


def _missing(frames: Sequence[Path], size: tuple[int, int]) -> list[int]:
    """The numbers of frames that are still to be drawn; what is no good is removed."""
    missing = [number for number, frame in enumerate(frames) if not is_whole(frame, size)]
    for number in missing:
        try:
            frames[number].unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(frames[number], error) from error
    return missing


def _count(frames: Sequence[Path]) -> int:
    return sum(frame.exists() for frame in frames)


def _shares(missing: list[int], workers: int | None) -> list[tuple[int, int]]:
    """The first and the last frame of every process."""
    wanted = available_cores() if workers is None else workers
    count = max(1, min(wanted, len(missing) // FEWEST_FRAMES))
    edges = [len(missing) * share // count for share in range(count + 1)]
    return [(missing[start], missing[end - 1]) for start, end in pairwise(edges)]


@contextlib.contextmanager
def _drawing(plan: _Plan, shares: list[tuple[int, int]]) -> Iterator[list[GodotProcess]]:
    """Processes of which each draws its share."""
    threads = str(max(1, available_cores() // len(shares)))
    with display(*plan.size) as env, contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                GodotProcess(
                    [
                        *words_of(plan.project, plan.size, plan.fps),
                        *("res://scenes/Replay.tscn", "--", *plan.options),
                        *(f"--frames-to={plan.folder}", f"--record-fps={plan.fps}"),
                        *(f"--first-frame={first}", f"--last-frame={last}"),
                    ],
                    folder=plan.folder / LOGS,
                    name=f"godot-{number}",
                    env=env | {"LP_NUM_THREADS": threads},  # of Mesa, where there is no GPU
                )
            )
            for number, (first, last) in enumerate(shares)
        ]
