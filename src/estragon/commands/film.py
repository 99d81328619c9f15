"""`estragon film`: the video of a training run."""

import dataclasses
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from estragon.support.options import optional
from estragon.support.progress import Progress

if TYPE_CHECKING:
    from estragon.show.film import Made


@dataclasses.dataclass(frozen=True)
class FilmCommand:
    """Make a film of a training run: the untrained pair, intermediate stages and the final pair."""

    run_name: Annotated[str | None, optional("RUN", "run")] = None
    """The run: its folder or its id; by default the latest."""
    quality: Literal["low", "high"] = "low"
    """low: 960 × 540 at 30 frames per second, takes minutes; high: 1920 × 1080 at 60."""
    renderer: Literal["auto", "godot", "top-down"] = "auto"
    """Godot, in 3D, or a flat view from above; auto uses Godot if it can render."""
    output: Annotated[Path | None, optional("FILE")] = None
    """Output file; by default learn_progress-<time>.mp4 in the current folder."""
    overwrite: bool = False
    """Replace the output if it exists."""
    keep_frames: bool = False
    """Keep the rendered frames in the run's folder."""

    def run(self) -> None:
        """Make the film and say what it took."""
        from estragon.selfplay.checkpoint import TagRun
        from estragon.show.film import make_film, read_filmed_run
        from estragon.show.film_renderers import choose_renderer
        from estragon.show.frames import QUALITIES, film_name

        run = TagRun.find(Path(), self.run_name or "latest")
        output = film_name(Path()) if self.output is None else self.output
        begun = time.monotonic()
        with Progress() as progress:
            try:
                made = make_film(
                    read_filmed_run(run),
                    output,
                    quality=QUALITIES[self.quality],
                    renderer=choose_renderer(self.renderer, progress.say),
                    folder=run.path,
                    progress=progress,
                    overwrite=self.overwrite,
                    keep_frames=self.keep_frames,
                )
            except KeyboardInterrupt:
                print("drawn frames are kept: the same command resumes", file=sys.stderr)
                raise
        _report(output, made, time.monotonic() - begun, kept=self.keep_frames)


def _report(output: Path, made: "Made", spent_sec: float, *, kept: bool) -> None:
    megabytes = output.stat().st_size / 1e6
    print(
        f"wrote {output}: {made.film_sec:.1f} s of film, {made.frames} frames, {megabytes:.1f} MB"
    )
    print(
        f"{made.drawn} frames drawn, {spent_sec:.0f} s of work: "
        f"{spent_sec / made.film_sec:.1f} s for each second of film"
    )
    print(f"the drawn frames are in {made.work}" if kept else "the drawn frames are removed again")
    others = [path for path in made.work.parent.iterdir() if path.is_dir() and path != made.work]
    if others:
        print(f"frames of other films are still in {made.work.parent}: {len(others)}")
