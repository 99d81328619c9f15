"""`estragon eval-episode`: one match, its log, a picture of its paths, and a film if wanted."""

import contextlib
import dataclasses
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.support.options import optional, switched_on
from estragon.support.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from estragon.show.trajectories.trajectory import Trajectory
    from estragon.tag.arenas import Arenas
    from estragon.tag.godot_arenas import GodotArenas
    from estragon.tag.rules import Rules

TRAINED = {
    "seeker": Path("trainer", "policy_seeker.npz"),
    "hider": Path("trainer", "policy_hider.npz"),
}
STAND_INS = {"seeker": "bot:chaser", "hider": "bot:evader"}
LONGEST_SEC = 3600.0
MOST_FPS, USUAL_FPS = 240, 40
TELL_SEC = 10.0


def _fps_of_environment() -> int:
    value = os.environ.get("AI_RECORD_FPS") or str(USUAL_FPS)
    if not value.isdecimal():
        raise UserError(f"AI_RECORD_FPS: expected a whole number, got '{value}'")
    return int(value)


@dataclasses.dataclass(frozen=True)
class EvalEpisode:
    """Play one match between two players; leave its log and a picture of the paths they took."""

    seeker: Annotated[str | None, optional("WHO")] = None
    """A policy file, or bot:random, bot:chaser, bot:evader; by default trainer/policy_seeker.npz,
    or bot:chaser where there is none."""
    hider: Annotated[str | None, optional("WHO")] = None
    """The same, for the hider; by default trainer/policy_hider.npz, or bot:evader."""
    engine: Literal["embedded", "godot"] = "embedded"
    """Where it is played: in this process, or in real Godot, headless."""
    duration: Annotated[float | None, optional("SEC")] = None
    """Time limit of the match; by default as in rules.json."""
    start_role: Literal["seeker", "hider"] = "seeker"
    """What the first agent, Agent1, begins as."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """A layout's name, a .json file, or random:SEED; the game's default if not given."""
    rules: Annotated[str | None, optional("NAME")] = None
    """seek or transfer; by default as in rules.json."""
    seed: int = 0
    """Decides where they begin."""
    output: Annotated[Path | None, optional("DIR")] = None
    """The folder for log, picture and film; by default trajectories in the data folder
    (AI_DATA_ROOT, or else data)."""
    title: str = ""
    """Stands above the picture; by default who plays whom."""
    record: bool = dataclasses.field(default_factory=lambda: switched_on("AI_RECORD"))
    """Make a film of it, too; also by AI_RECORD=1."""
    record_fps: int = dataclasses.field(default_factory=_fps_of_environment)
    """Frames a second of the film; AI_RECORD_FPS if not given."""
    renderer: Literal["top-down", "godot", "auto"] = "top-down"
    """Who draws the film: the arena from above, or Godot."""

    def run(self) -> None:
        """Play, write, draw, and tell."""
        from estragon.show.trajectories.trajectory import read_trajectory

        self._check()
        folder = paths.trajectories_folder() if self.output is None else self.output
        ensure_writable(folder / "ep.jsonl")
        log = self.play(folder)
        trajectory = read_trajectory(log)
        _tell(trajectory)
        print(f"wrote {log}")
        self._draw(trajectory, log)

    def _check(self) -> None:
        if self.duration is not None and not 0.05 <= self.duration <= LONGEST_SEC:
            raise UserError(f"--duration: expected 0.05 to {LONGEST_SEC:g} s, got {self.duration}")
        if not 1 <= self.record_fps <= MOST_FPS:
            raise UserError(f"--record-fps: expected 1 to {MOST_FPS}, got {self.record_fps}")

    def play(self, folder: Path) -> Path:
        """Play the match; returns the file of its log."""
        from estragon.show.trajectories.log import TrajectoryLog
        from estragon.tag.matches import play_batches
        from estragon.tag.players import load_player

        rules = self._rules()
        names = {
            "seeker": who_plays("seeker", self.seeker),
            "hider": who_plays("hider", self.hider),
        }
        seeker = load_player(names["seeker"], rules, "seeker")
        hider = load_player(names["hider"], rules, "hider")
        log = TrajectoryLog(
            folder,
            engine=self.engine,
            players={"seeker": names["seeker"], "hider": names["hider"]},
            most=1,
        )
        with self._arenas(rules) as arenas:
            play_batches(seeker, hider, 1, lambda _: (arenas, arenas.reset()), watcher=log)
        return log.written[0]

    @contextlib.contextmanager
    def _arenas(self, rules: "Rules") -> "Iterator[Arenas | GodotArenas]":
        """One arena, in the engine that was asked for."""
        from estragon.tag.arenas import Arenas
        from estragon.tag.layout import load_layouts

        layouts = load_layouts(self.layout or rules.layout, rules)
        first_seeker = 0 if self.start_role == "seeker" else 1
        if self.engine == "embedded":
            yield Arenas(
                1, rules=rules, layout=layouts, seed=self.seed, first_seeker=first_seeker, threads=1
            )
            return
        from estragon.tag.godot_arenas import GodotArenas

        with tempfile.TemporaryDirectory(prefix="estragon-") as folder:
            file = Path(folder, "rules.json")
            file.write_bytes(msgspec.json.encode(rules))
            with GodotArenas(
                1,
                rules=rules,
                layouts=layouts,
                seed=self.seed,
                first_seeker=first_seeker,
                rules_file=file,
            ) as arenas:
                yield arenas

    def _rules(self) -> "Rules":
        from estragon.tag.rules import load_rules

        rules = load_rules(rules=self.rules)
        if self.duration is None:
            return rules
        episode = msgspec.structs.replace(rules.episode, time_limit_sec=self.duration)
        return msgspec.structs.replace(rules, episode=episode)

    def _draw(self, trajectory: "Trajectory", log: Path) -> None:
        from estragon.show.drawing.paths_picture import save_paths

        players = trajectory.start.players
        title = self.title or f"{players['seeker']} against {players['hider']}"
        save_paths(trajectory, log.with_suffix(".png"), title)
        print(f"wrote {log.with_suffix('.png')}")
        if self.record:
            self._film(log, title)

    def _film(self, log: Path, title: str) -> None:
        from estragon.show.film.match import film_match
        from estragon.show.film.renderers import choose_renderer

        with Progress(TELL_SEC) as progress:
            progress.step("film", announced=False)
            film_match(
                log,
                log.with_suffix(".mp4"),
                title=title,
                fps=self.record_fps,
                renderer=choose_renderer(self.renderer, progress.say),
                tell=lambda done, total: progress.update(done, total, " frames"),
            )
        print(f"wrote {log.with_suffix('.mp4')}")


def who_plays(role: Literal["seeker", "hider"], wanted: str | None) -> str:
    """Who plays a role; says so where nobody was asked for."""
    if wanted is not None:
        return wanted
    chosen = str(TRAINED[role]) if TRAINED[role].is_file() else STAND_INS[role]
    print(f"{role}: {chosen}", file=sys.stderr)
    return chosen


def _tell(trajectory: "Trajectory") -> None:
    from estragon.show.drawing.paths_picture import story_of

    anomalies = len(trajectory.anomalies)
    print(story_of(trajectory) + (f"; {anomalies} anomalies" if anomalies else ""))
