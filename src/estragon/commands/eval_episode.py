"""`estragon eval-episode`: one match, its log, a picture of its paths, and a film if wanted."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from estragon.support import paths
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, from_environment, optional, switched_on
from estragon.support.progress import Progress, counting


@dataclasses.dataclass(frozen=True)
class EvalEpisodeCommand:
    """Play one match between two players; write its log and a picture of the paths they took."""

    seeker: Annotated[str | None, optional("WHO")] = None
    """A policy file, or bot:random, bot:chaser, bot:evader; by default trainer/policy_seeker.npz if
    it exists, else bot:chaser."""
    hider: Annotated[str | None, optional("WHO")] = None
    """The same for the hider; by default trainer/policy_hider.npz if it exists, else bot:evader."""
    engine: Literal["embedded", "godot"] = "embedded"
    """Where to play: in this process, or in headless Godot."""
    duration: Annotated[float | None, optional("SEC")] = None
    """Time limit of the match; by default as in rules.json."""
    start_role: Literal["seeker", "hider"] = "seeker"
    """The role in which the first agent, Agent1, starts."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """A layout's name, a .json file, or random:SEED; by default as in rules.json."""
    rules: Annotated[str | None, optional("NAME")] = None
    """seek, transfer or hide; by default as in rules.json."""
    seed: int = 0
    """Seed of the start positions."""
    output: Annotated[Path | None, optional("DIR")] = None
    """Output folder for log, picture and film; by default trajectories in the data folder
    (AI_DATA_ROOT, or else data)."""
    title: str = ""
    """Title of the picture; by default the two players."""
    record: bool = dataclasses.field(default_factory=lambda: switched_on("AI_RECORD"))
    """Also make a film; same as AI_RECORD=1."""
    record_fps: int = dataclasses.field(
        default_factory=lambda: from_environment(None, "AI_RECORD_FPS", 40, int)
    )
    """Frames per second of the film; same as AI_RECORD_FPS."""
    renderer: Literal["top-down", "godot", "auto"] = "top-down"
    """Renderer of the film: a flat view from above, or Godot; auto uses Godot if it can render."""

    def run(self) -> None:
        """Play, write, draw, and report."""
        from estragon.show.paths_picture import save_paths
        from estragon.show.trajectory_log import log_match
        from estragon.show.trajectory_reader import read_trajectory
        from estragon.tag.matches import default_player
        from estragon.tag.rules import load_rules

        check_span("--duration", self.duration, 0.05, 3600.0)
        check_span("--record-fps", self.record_fps, 1, 240)
        folder = paths.trajectories_folder() if self.output is None else self.output
        ensure_writable(folder / "ep.jsonl")
        rules = load_rules(rules=self.rules)
        if self.duration is not None:
            episode = msgspec.structs.replace(rules.episode, time_limit_sec=self.duration)
            rules = msgspec.structs.replace(rules, episode=episode)
        seeker = self.seeker or default_player("seeker")
        hider = self.hider or default_player("hider")
        log = log_match(
            folder,
            seeker,
            hider,
            rules=rules,
            layout=self.layout,
            engine=self.engine,
            seed=self.seed,
            first_seeker=0 if self.start_role == "seeker" else 1,
        )
        trajectory = read_trajectory(log)
        anomalies = len(trajectory.anomalies)
        print(trajectory.summary() + (f"; {anomalies} anomalies" if anomalies else ""))
        print(f"wrote {log}")
        title = self.title or f"{seeker} against {hider}"
        save_paths(trajectory, log.with_suffix(".png"), title)
        print(f"wrote {log.with_suffix('.png')}")
        if self.record:
            self._film(log, title)

    def _film(self, log: Path, title: str) -> None:
        from estragon.show.film_renderers import choose_renderer, film_match

        renderer = choose_renderer(self.renderer, Progress().say)
        with counting("film", " frames") as on_progress:
            film_match(
                log,
                log.with_suffix(".mp4"),
                title=title,
                fps=self.record_fps,
                renderer=renderer,
                on_progress=on_progress,
            )
        print(f"wrote {log.with_suffix('.mp4')}")
