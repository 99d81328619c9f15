"""A match to be drawn, frame by frame, into a folder; and which frames are there already."""

from pathlib import Path
from typing import NamedTuple

from PIL import Image

from estragon.show.frames.files import check_frame, frame_path, is_whole, read_frame


class Shot(NamedTuple):
    """A match and the moments of it that are shown."""

    trajectory: Path
    folder: Path
    """Of frame_000000.png and so on."""
    times: tuple[float, ...]
    """The second of the match that each frame shows."""
    title: str | None = None
    """A headline, and with it clock and names, where the renderer has them; None for neither."""

    def missing(self, size: tuple[int, int]) -> list[int]:
        """The frames that are not drawn yet, or not whole."""
        frames = (frame_path(self.folder, number) for number in range(len(self.times)))
        return [number for number, path in enumerate(frames) if not is_whole(path, size)]

    def check(self, size: tuple[int, int]) -> None:
        """Name the first frame that is missing, damaged or of another size."""
        for number in range(len(self.times)):
            check_frame(frame_path(self.folder, number), size)

    def read(self, number: int) -> Image.Image:
        """One of its frames, drawn before: RGB."""
        return read_frame(frame_path(self.folder, number))
