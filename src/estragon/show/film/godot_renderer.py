"""Matches of a film drawn by real Godot."""

from collections.abc import Callable, Sequence

from estragon.show.film.plan import Quality
from estragon.show.film.shots import Shot
from estragon.show.frames.logged import fingerprint, render_frames


class GodotRenderer:
    """The game as a player sees it; needs Godot, and a display or Xvfb."""

    name = "Godot"

    def fingerprint(self) -> str:
        """Of the Godot project and of Godot."""
        return fingerprint()

    def draw(
        self, shots: Sequence[Shot], quality: Quality, tell: Callable[[int, int], None]
    ) -> None:
        """Draw every frame that is missing; `tell` hears how many are drawn, and of how many."""
        missing = [len(shot.missing(quality.size)) for shot in shots]
        drawn = 0
        for shot, wanted in zip(shots, missing, strict=True):
            # how many frames there would be if all before this shot were there already
            ahead = drawn + wanted - len(shot.times)
            render_frames(
                shot.trajectory,
                shot.folder,
                size=quality.size,
                fps=quality.fps,
                times=shot.times,
                title=shot.title or "",
                hud=shot.title is not None,
                tell=lambda there, _, ahead=ahead: tell(ahead + there, sum(missing)),  # type: ignore[misc]
            )
            drawn += wanted
