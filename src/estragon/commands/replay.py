"""`estragon replay`: a logged match in a window."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from estragon.support import paths
from estragon.support.options import optional


@dataclasses.dataclass(frozen=True)
class ReplayCommand:
    """Show a logged match again in a window: Space pauses, arrows seek and change the pace.

    Tab changes the camera (the arena, or either agent), V shows what the agents see, H hides the
    list of all keys.
    """

    file: Annotated[Path | None, tyro.conf.Positional, optional("FILE")] = None
    """A match's log, or a folder of them; by default all in the data folder."""
    window: str = "1280x720"
    """Its size in pixels."""
    speed: float = 1.0
    """Seconds of the match per second."""

    def run(self) -> None:
        """Open the window, and wait until it is closed."""
        from estragon.show.godot_frames import parse_size, show_replay

        path = paths.trajectories_folder() if self.file is None else self.file
        show_replay(path, size=parse_size(self.window), speed=self.speed)
