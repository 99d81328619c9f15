"""`estragon record`: frames of a logged match, or of a game that Godot plays."""

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import tyro

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.options import optional
from estragon.support.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

TELL_SEC = 5.0
USUAL_SEC, LONGEST_SEC = 12.0, 3600.0


class Quality(NamedTuple):
    """How frames are drawn unless something else is asked for."""

    size: str
    fps: int


QUALITIES = {
    "low": Quality("640x360", 30),
    "usual": Quality("1280x720", 60),
    "high": Quality("1920x1080", 60),
}


def _quality_of_environment() -> Literal["low", "usual", "high"]:
    match os.environ.get("AI_RENDER_QUALITY", ""):
        case "":
            return "usual"
        case "low":
            return "low"
        case "high":
            return "high"
        case other:
            raise UserError(f"AI_RENDER_QUALITY: expected low or high, got '{other}'")


def _fps_of_environment() -> int | None:
    value = os.environ.get("AI_RECORD_FPS", "")
    if value and not value.isdecimal():
        raise UserError(f"AI_RECORD_FPS: expected a whole number, got '{value}'")
    return int(value) if value else None


@dataclasses.dataclass(frozen=True)
class Record:
    """Let real Godot draw frames, of a logged match or else of a game between two players.

    Without a display it draws on a virtual one. A match whose drawing was broken off is gone on
    with by the same command.
    """

    file: Annotated[Path | None, tyro.conf.Positional, optional("FILE")] = None
    """A match's log, or a folder of them, whose newest is taken; without one, a game is played and
    drawn."""
    seeker: Annotated[str | None, optional("WHO")] = None
    """A policy file, or bot:random, bot:chaser, bot:evader; by default trainer/policy_seeker.npz,
    or bot:chaser where there is none."""
    hider: Annotated[str | None, optional("WHO")] = None
    """The same, for the hider; by default trainer/policy_hider.npz, or bot:evader."""
    play: Literal["nobody", "seeker", "hider"] = "nobody"
    """The role you play yourself; that needs a display."""
    seconds: Annotated[float | None, optional("SEC")] = None
    """How much is drawn: by default all of a match, or 12 s of a game between bots."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """The boxes of the game: a layout's name or a .json file; by default as in rules.json."""
    seed: int = 0
    """Decides where they begin."""
    quality: Literal["low", "usual", "high"] = dataclasses.field(
        default_factory=_quality_of_environment
    )
    """640 × 360 at 30 frames a second, 1280 × 720 or 1920 × 1080 at 60; also by
    AI_RENDER_QUALITY."""
    size: Annotated[str | None, optional("WxH")] = None
    """Another size, such as 960x540."""
    fps: Annotated[int | None, optional("N")] = dataclasses.field(
        default_factory=_fps_of_environment
    )
    """Another rate; also by AI_RECORD_FPS."""
    frames: Annotated[Path | None, optional("DIR")] = None
    """The folder for the frames; by default frames in the data folder (AI_DATA_ROOT, or else
    data)."""
    title: str = ""
    """Stands in the picture."""
    hud: bool = True
    """Whether clock, names and verdict are in the picture."""
    workers: Annotated[int | None, optional("N")] = None
    """Processes that draw a logged match; by default one for every core."""
    overwrite: bool = False
    """Remove the frames that are in the folder already."""

    def run(self) -> None:
        """Draw, and tell."""
        from estragon.show.frames.files import remove_frames

        folder = paths.data_root() / "frames" if self.frames is None else self.frames
        if self.seconds is not None and not 0.0 < self.seconds <= LONGEST_SEC:
            raise UserError(f"--seconds: expected up to {LONGEST_SEC:g} s, got {self.seconds:g}")
        if self.overwrite:
            remove_frames(folder)
        with Progress(TELL_SEC) as progress:
            progress.step("drawing", announced=False)
            drawn = self._draw(folder, lambda done, total: progress.update(done, total, " frames"))
        print(f"{len(drawn)} frames are in {folder}; estragon encode makes a film of them")

    def _draw(self, folder: Path, tell: "Callable[[int, int], None]") -> list[Path]:
        if self.file is not None:
            return self._draw_log(newest_log(self.file), folder, tell)
        from estragon.show.trajectories.log import log_match
        from estragon.tag.matches import default_player
        from estragon.tag.rules import load_rules

        seeker = self.seeker or default_player("seeker")
        hider = self.hider or default_player("hider")
        if seeker.startswith("bot:") and hider.startswith("bot:"):
            return self._draw_live(seeker, hider, folder, tell)
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
        return self._draw_log(log, folder, tell)

    def _draw_log(self, log: Path, folder: Path, tell: "Callable[[int, int], None]") -> list[Path]:
        from estragon.show.frames.logged import frame_times, render_frames
        from estragon.show.trajectories.trajectory import read_trajectory

        times = frame_times(read_trajectory(log), self._fps())
        if self.seconds is not None:
            times = times[: max(1, round(self.seconds * self._fps()))]
        return render_frames(
            log,
            folder,
            size=self._size(),
            fps=self._fps(),
            times=times,
            title=self.title,
            hud=self.hud,
            workers=self.workers,
            tell=tell,
        )

    def _draw_live(
        self, seeker: str, hider: str, folder: Path, tell: "Callable[[int, int], None]"
    ) -> list[Path]:
        from estragon.godot.display import has_display
        from estragon.show.frames.live import record_live

        if self.play != "nobody" and not has_display():
            raise UserError(f"--play {self.play}: there is no display to play on")
        options = [f"--seeker={seeker}", f"--hider={hider}", f"--play={self.play}"]
        options += [f"--seed={self.seed}", f"--title={self.title}", f"--hud={int(self.hud)}"]
        if self.layout is not None:
            options.append(f"--layout={_for_godot(self.layout)}")
        return record_live(
            folder,
            size=self._size(),
            fps=self._fps(),
            seconds=USUAL_SEC if self.seconds is None else self.seconds,
            options=options,
            real_time=self.play != "nobody",
            tell=tell,
        )

    def _fps(self) -> int:
        return QUALITIES[self.quality].fps if self.fps is None else self.fps

    def _size(self) -> tuple[int, int]:
        from estragon.show.frames.window import parse_size

        return parse_size(self.size or QUALITIES[self.quality].size)


def _for_godot(layout: str) -> str:
    """A layout's name, or its file's whole path: Godot changes folders."""
    return str(Path(layout).absolute()) if layout.endswith(".json") else layout


def newest_log(path: Path) -> Path:
    """The log itself, or the newest one in a folder."""
    if not path.is_dir():
        return path
    logs = [(log.stat().st_mtime_ns, log) for log in path.glob("*.jsonl")]
    if not logs:
        raise UserError(f"{path}: no logged match in this folder; estragon eval-episode logs one")
    return max(logs)[1]
