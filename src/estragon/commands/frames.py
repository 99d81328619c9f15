"""`estragon encode` and `estragon replay`: frames into a film, and a logged match in a window."""

import dataclasses
import math
import tempfile
import time
from pathlib import Path
from typing import Annotated

import tyro

from estragon.godot.user_data import own_folders, project_folders
from estragon.show.frames.files import encode_frames, find_frames, frames_in, read_manifest
from estragon.show.frames.window import MOST_FPS, parse_size, why_it_failed, words_of
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.options import optional
from estragon.support.progress import Progress

USUAL_FPS = 60
TELL_SEC = 5.0
USER_FRAMES = ("data/frames", "frames")
"""In `user://`: where the game draws without a data root, and where older versions did."""
SLOWEST, FASTEST = 0.1, 4.0


@dataclasses.dataclass(frozen=True)
class EncodeFrames:
    """Make an MP4 that plays everywhere of the frames in a folder."""

    frames: Annotated[Path | None, optional("DIR")] = None
    """The folder of frame_000000.png and so on; by default frames in the data folder
    (AI_DATA_ROOT, or else data), then the newest imported there, then the newest in Godot's user
    folder."""
    fps: Annotated[int | None, optional("N")] = None
    """Frames a second; by default as they were drawn, or 60 where nobody knows."""
    output: Annotated[Path | None, optional("FILE")] = None
    """The film; by default learn_progress-<time>.mp4 in this folder."""
    overwrite: bool = False
    """Replace the film if it is there already."""

    def run(self) -> None:
        """Check, encode, and tell."""
        folder = self.frames
        if folder is None:
            folder = frames_folder()
            if folder != usual_folder():
                print(f"no frames in {usual_folder()}; using {folder}")
        fps = self._fps(folder)
        output = self.output or Path(f"learn_progress-{time.strftime('%Y%m%d-%H%M%S')}.mp4")
        if output.exists() and not self.overwrite:
            raise UserError(f"{output} is there already; --overwrite replaces it")
        frames = find_frames(folder)
        with Progress(TELL_SEC) as progress:
            progress.step("encoding", announced=False)
            encode_frames(
                frames, output, fps, lambda done, total: progress.update(done, total, " frames")
            )
        print(f"wrote {output}: {len(frames)} frames of {folder}, {len(frames) / fps:.1f} s")

    def _fps(self, folder: Path) -> int:
        fps = self.fps
        if fps is None:
            known = read_manifest(folder).get("fps")
            fps = known if isinstance(known, int) else USUAL_FPS
        if not 1 <= fps <= MOST_FPS:
            raise UserError(f"--fps: expected 1 to {MOST_FPS} frames a second, got {fps}")
        return fps


@dataclasses.dataclass(frozen=True)
class ShowReplay:
    """Show a logged match again in a window: Space pauses, arrows seek and change the pace.

    Tab changes the camera (the arena, or either agent), V shows what the agents see, H hides the
    list of all keys.
    """

    file: Annotated[Path | None, tyro.conf.Positional, optional("FILE")] = None
    """A match's log, or a folder of them; by default all in the data folder."""
    window: str = "1280x720"
    """Its size in pixels."""
    speed: float = 1.0
    """Seconds of the match to a second."""

    def run(self) -> None:
        """Open the window, and wait until it is closed."""
        from estragon.godot.display import has_display
        from estragon.godot.process import GodotProcess
        from estragon.godot.project import import_project
        from estragon.show.trajectories.trajectory import read_trajectory

        path = paths.trajectories_folder() if self.file is None else self.file
        size = parse_size(self.window)
        if not SLOWEST <= self.speed <= FASTEST:
            raise UserError(f"--speed: expected {SLOWEST:g} to {FASTEST:g}, got {self.speed:g}")
        if not path.is_dir():
            read_trajectory(path)
        if not has_display():
            raise UserError(
                "there is no display to open a window on; estragon record FILE draws a match into "
                "pictures"
            )
        words = [*words_of(import_project(paths.godot_project()), size), "res://scenes/Replay.tscn"]
        words += ["--", f"--replay={path.absolute()}", f"--speed={self.speed}"]
        with (
            tempfile.TemporaryDirectory(prefix="estragon-") as folder,
            GodotProcess(words, folder=Path(folder), name="replay") as process,
        ):
            if process.wait("the window to be closed", math.inf) != 0:
                raise why_it_failed(process)


def usual_folder() -> Path:
    """Where frames are drawn unless another folder is given."""
    return paths.data_root() / "frames"


def frames_folder() -> Path:
    """Where frames are found: data folder, what was imported there, Godot's user folders."""
    usual = usual_folder()
    if frames_in(usual):
        return usual
    own = own_folders()
    others = [game for game in project_folders() if game not in own]
    if newest := _newest_frames([paths.data_root() / "_imported"]):
        return newest
    for games in (own, others):
        if newest := _newest_frames([game / inside for game in games for inside in USER_FRAMES]):
            return newest
    return usual


def _newest_frames(places: list[Path]) -> Path | None:
    """The folder under these whose first frame is the newest."""
    firsts = [first for place in places for first in place.rglob("frame_000000.png")]
    return max(firsts, key=lambda path: path.stat().st_mtime).parent if firsts else None
