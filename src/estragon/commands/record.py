"""`estragon record`: frames of a logged match, or of a game that Godot plays."""

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.options import from_environment, optional
from estragon.support.progress import counting

if TYPE_CHECKING:
    from estragon.show.frames import OnProgress

DEFAULT_SEC, MAX_SEC = 12.0, 3600.0


def _quality_of_environment() -> Literal["low", "usual", "high"]:
    match os.environ.get("AI_RENDER_QUALITY") or "usual":
        case "low" | "usual" | "high" as quality:
            return quality
        case other:
            raise UserError(f"AI_RENDER_QUALITY: expected low or high, got '{other}'")


@dataclasses.dataclass(frozen=True)
class RecordCommand:
    """Render frames in Godot, of a logged match or of a new match between two players.

    Without a display, a virtual one is used. To resume an interrupted rendering of a logged match,
    run the same command again.
    """

    file: Annotated[Path | None, tyro.conf.Positional, optional("FILE")] = None
    """A match log, or a folder of logs to use the latest; without it, a new match is played."""
    seeker: Annotated[str | None, optional("WHO")] = None
    """A policy file, or bot:random, bot:chaser, bot:evader; by default trainer/policy_seeker.npz if
    it exists, else bot:chaser."""
    hider: Annotated[str | None, optional("WHO")] = None
    """The same for the hider; by default trainer/policy_hider.npz if it exists, else bot:evader."""
    play: Literal["nobody", "seeker", "hider"] = "nobody"
    """The role that you play yourself; needs a display."""
    seconds: Annotated[float | None, optional("SEC")] = None
    """Length to render; by default the whole match, or 12 s of a match between bots."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """A layout's name or a .json file; by default as in rules.json."""
    seed: int = 0
    """Seed of the start positions."""
    quality: Literal["low", "usual", "high"] = dataclasses.field(
        default_factory=_quality_of_environment
    )
    """low: 960 × 540 at 30 frames per second; usual: 1280 × 720 at 60; high: 1920 × 1080 at 60.
    Same as AI_RENDER_QUALITY."""
    size: Annotated[str | None, optional("WxH")] = None
    """Frame size, for example 960x540; by default that of --quality."""
    fps: Annotated[int | None, optional("N")] = dataclasses.field(
        default_factory=lambda: from_environment(None, "AI_RECORD_FPS", None, int)
    )
    """Frames per second; by default that of --quality. Same as AI_RECORD_FPS."""
    frames: Annotated[Path | None, optional("DIR")] = None
    """Output folder; by default frames in the data folder (AI_DATA_ROOT, or else data)."""
    title: str = ""
    """Title shown in the picture."""
    hud: bool = True
    """Show clock, names and outcome in the picture."""
    workers: Annotated[int | None, optional("N")] = None
    """Processes that render a logged match; by default one per core."""
    overwrite: bool = False
    """Remove existing frames in the output folder."""

    def run(self) -> None:
        """Draw the frames and say where they are."""
        from estragon.show.frames import default_folder, remove_frames

        folder = default_folder() if self.frames is None else self.frames
        if self.seconds is not None and not 0.0 < self.seconds <= MAX_SEC:
            raise UserError(f"--seconds: expected up to {MAX_SEC:g} s, got {self.seconds:g}")
        if self.overwrite:
            remove_frames(folder)
        with counting("drawing", " frames") as on_progress:
            drawn = self._draw(folder, on_progress)
        print(f"{len(drawn)} frames are in {folder}; estragon encode makes a film of them")

    def _draw(self, folder: Path, on_progress: "OnProgress") -> list[Path]:
        from estragon.show.godot_frames import newest_log

        if self.file is not None:
            return self._draw_log(newest_log(self.file), folder, on_progress)
        from estragon.show.trajectory_log import log_match
        from estragon.tag.matches import default_player
        from estragon.tag.rules import load_rules

        seeker = self.seeker or default_player("seeker")
        hider = self.hider or default_player("hider")
        if seeker.startswith("bot:") and hider.startswith("bot:"):
            return self._draw_live(seeker, hider, folder, on_progress)
        if self.play != "nobody":
            raise UserError(
                f"--play {self.play}: with you, Godot plays bots only; --seeker, --hider"
            )
        log = log_match(
            paths.trajectories_folder(),
            seeker,
            hider,
            rules=load_rules(),
            layout=self.layout,
            seed=self.seed,
        )
        return self._draw_log(log, folder, on_progress)

    def _draw_log(self, log: Path, folder: Path, on_progress: "OnProgress") -> list[Path]:
        from estragon.show.godot_frames import frame_times, render_frames
        from estragon.show.trajectory_reader import read_trajectory

        size, fps = self._quality()
        times = frame_times(read_trajectory(log), fps)
        if self.seconds is not None:
            times = times[: max(1, round(self.seconds * fps))]
        return render_frames(
            log,
            folder,
            size=size,
            fps=fps,
            times=times,
            title=self.title,
            hud=self.hud,
            workers=self.workers,
            on_progress=on_progress,
        )

    def _draw_live(
        self, seeker: str, hider: str, folder: Path, on_progress: "OnProgress"
    ) -> list[Path]:
        from estragon.godot.display import has_display
        from estragon.show.godot_frames import record_live

        if self.play != "nobody" and not has_display():
            raise UserError(f"--play {self.play}: there is no display to play on")
        options = [f"--seeker={seeker}", f"--hider={hider}", f"--play={self.play}"]
        options += [f"--seed={self.seed}", f"--title={self.title}", f"--hud={int(self.hud)}"]
        if self.layout is not None:
            is_file = self.layout.endswith(".json")  # Godot has another working directory
            options.append(f"--layout={Path(self.layout).absolute() if is_file else self.layout}")
        size, fps = self._quality()
        return record_live(
            folder,
            size=size,
            fps=fps,
            seconds=DEFAULT_SEC if self.seconds is None else self.seconds,
            options=options,
            real_time=self.play != "nobody",
            on_progress=on_progress,
        )

    def _quality(self) -> tuple[tuple[int, int], int]:
        from estragon.show.frames import QUALITIES
        from estragon.show.godot_frames import parse_size

        size, fps = QUALITIES[self.quality]
        return parse_size(self.size) if self.size else size, self.fps or fps
