"""`estragon encode`: an MP4 of frames."""

import dataclasses
from pathlib import Path
from typing import Annotated

from estragon.show.frames import (
    MAX_FPS,
    default_folder,
    encode_frames,
    film_name,
    find_frames,
    find_frames_folder,
    read_manifest,
)
from estragon.support.errors import UserError
from estragon.support.options import check_span, optional
from estragon.support.progress import counting

DEFAULT_FPS = 60


@dataclasses.dataclass(frozen=True)
class EncodeCommand:
    """Encode the frames in a folder as an MP4 that plays everywhere."""

    frames: Annotated[Path | None, optional("DIR")] = None
    """The folder of frame_000000.png and so on; by default frames in the data folder (AI_DATA_ROOT,
    or else data); if that is empty, the latest imported frames, then the latest in Godot's user
    folders."""
    fps: Annotated[int | None, optional("N")] = None
    """Frames per second; by default the rate of the recording, or 60 if that is unknown."""
    output: Annotated[Path | None, optional("FILE")] = None
    """Output file; by default learn_progress-<time>.mp4 in the current folder."""
    overwrite: bool = False
    """Replace the output if it exists."""

    def run(self) -> None:
        """Check the frames and encode them."""
        folder = self.frames
        if folder is None:
            folder = find_frames_folder()
            if folder != default_folder():
                print(f"no frames in {default_folder()}; using {folder}")
        fps = self.fps
        if fps is None:
            known = read_manifest(folder).get("fps")
            fps = known if isinstance(known, int) else DEFAULT_FPS
        check_span("--fps", fps, 1, MAX_FPS)
        output = self.output or film_name(Path())
        if output.exists() and not self.overwrite:
            raise UserError(f"{output} already exists; --overwrite replaces it")
        frames = find_frames(folder)
        with counting("encoding", " frames") as on_progress:
            encode_frames(frames, output, fps, on_progress)
        print(f"wrote {output}: {len(frames)} frames of {folder}, {len(frames) / fps:.1f} s")
