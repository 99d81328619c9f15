"""`estragon replay`: a logged match in a window."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from estragon.support import paths
from estragon.support.options import optional


@dataclasses.dataclass(frozen=True)
class ReplayCommand:
    """Replay a logged match in a window: Space pauses, arrow keys seek and change the speed.

    Tab switches the camera (arena, seeker or hider), V shows the agents' rays, H hides the list of
    keys.
    """

    file: Annotated[Path | None, tyro.conf.Positional, optional("FILE")] = None
    """A match log, or a folder of logs; by default trajectories in the data folder."""
    window: str = "1280x720"
    """Window size in pixels."""
    speed: float = 1.0
    """Initial speed: seconds of the match per second."""

    def run(self) -> None:
        """Open the window, and wait until it is closed."""
        from estragon.show.godot_frames import parse_size, show_replay

        path = paths.trajectories_folder() if self.file is None else self.file
        show_replay(path, size=parse_size(self.window), speed=self.speed)
