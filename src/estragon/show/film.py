"""The film of a training run: for every stage a card and an eventful match.

Of a stage's matches the film shows an eventful one with the outcome that is usual there. A match's
score is

    length × (seconds of close chase + 2 × narrow escapes + jumps over or onto boxes + run / 50 m)

where `length` is 1, or the share of 4 s that a shorter match lasts;
a chase is close while the seeker sees the hider and the gap between the cubes is below 3 m;
a narrow escape is a gap that fell below 0.6 m without a tag and then grew beyond 1.2 m;
a jump counts each time an agent's middle comes over a box;
and `run` is how far the two ran together.

Of the matches that the more frequent winner won, the film shows the one with the highest score, of
equal ones the first. The same seed gives the same matches, so the choice is always the same.
"""

import contextlib
import hashlib
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from estragon import __version__
from estragon.selfplay.checkpoint import StageRecord, TagRun, read_stages
from estragon.selfplay.config import LEAGUE, Task
from estragon.selfplay.evaluation import PAIRINGS
from estragon.show.charts.data import CrossPlay, Table, read_cross_play, read_table
from estragon.show.charts.draw import draw_charts
from estragon.show.film_overlays import encode_film
from estragon.show.film_plan import (
    MatchChoice,
    RoleCurve,
    RunFacts,
    Scene,
    StageFacts,
    plan_scene,
    time_text,
)
from estragon.show.film_renderers import Renderer, Shot, TopDownRenderer
from estragon.show.frames import PARTIAL, QUALITIES, OnProgress, Quality, film_name
from estragon.show.trajectory import Trajectory, encode_trajectory
from estragon.show.trajectory_log import play_in_memory
from estragon.show.trajectory_reader import read_trajectory
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import cannot_write, ensure_writable, locked, write_whole
from estragon.support.progress import Progress
from estragon.tag.layout import Layout
from estragon.tag.matches import Player, load_player
from estragon.tag.rules import ROLES, Role, Rules

STAGES_SHOWN = 5
"""Few enough to watch in a minute or so."""
MATCHES, SEED = 64, 7
CLOSE_M, NARROW_M, ESCAPED_M = 3.0, 0.6, 1.2
MIN_SEC = 4.0
"""A shorter match is hard to follow."""
ESCAPE_WEIGHT, JUMP_WEIGHT, METRE_WEIGHT = 2.0, 1.0, 0.02
"""Relative to a second of close chase."""
BYTES_PER_PIXEL = 0.3
"""Of a drawn frame as a PNG, at most as far as was seen."""


class FilmStage(NamedTuple):
    """Two players at some point of the training, and its numbers."""

    facts: StageFacts
    seeker: Player
    hider: Player


@dataclass(frozen=True)
class FilmedRun:
    """What there is to show."""

    facts: RunFacts
    """Of the run, and of the stages that are shown."""
    stages: Sequence[FilmStage]
    policies: str
    """A digest of every policy that plays."""
    rules: Rules
    layouts: Sequence[Layout]


def read_filmed_run(run: TagRun) -> FilmedRun:
    """Read a run that has finished one stage at least."""
    task, stages = read_stages(run)
    places = np.linspace(0, len(stages) - 1, min(STAGES_SHOWN, len(stages))).astype(int)
    shown = [stages[place] for place in places]
    facts = _run_facts(run, task, shown)
    files: list[Path] = []
    players = []
    for about, stage in zip(facts.stages, shown, strict=True):
        seeker, hider = (_player(run, task, role, stage, files) for role in ROLES)
        players.append(FilmStage(about, seeker, hider))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return FilmedRun(facts, players, digest, task.rules, task.layouts)


def _player(run: TagRun, task: Task, role: Role, stage: StageRecord, files: list[Path]) -> Player:
    """A role's player: the stage's own policy, or the opponent that the other role learned with."""
    spec = task.opponent
    if role in stage.roles:
        spec = str(run.checkpoint(role, stage.updates, ".npz"))
    elif (opponent := run.path / Path(spec).name).is_file():
        spec = str(opponent)
    if not spec.startswith("bot:"):
        files.append(Path(spec))
    return load_player(spec, task.rules, role)


def _run_facts(run: TagRun, task: Task, stages: Sequence[StageRecord]) -> RunFacts:
    strength = read_table(run.strength)
    cross_play = read_cross_play(run.cross_play) if run.cross_play.exists() else None
    pairings = {f"{role}_vs_{bot}": f"{role}_vs_{bot}_win_rate" for role, bot in PAIRINGS}
    last = stages[-1].agent_steps
    place = _place_of(cross_play, last)
    return RunFacts(
        name=run.run_id,
        learned_by="self-play" if task.opponent == LEAGUE else f"play against {task.opponent}",
        stages=[
            StageFacts(
                name=stage.name,
                agent_steps=stage.agent_steps,
                training_sec=_training_sec(run.metrics, stage.agent_steps),
                win_rates=_finite(strength, stage.agent_steps, pairings),
                elo=_elo(cross_play, strength, stage.agent_steps),
            )
            for stage in stages
        ],
        curves=_curves(strength, last),
        seeker_wins=None
        if cross_play is None or place is None
        else cross_play.seeker_win_rate[place][place],
    )


def _training_sec(path: Path, steps: int) -> float | None:
    if not steps:
        return None
    metrics = read_table(path)
    rows = np.flatnonzero(metrics.column("agent_steps") == steps)
    rate = metrics.column("agent_steps_per_s")[rows]
    return float(steps / rate[0]) if len(rows) and rate[0] > 0.0 else None


def _finite(strength: Table, steps: int, columns: dict[str, str]) -> dict[str, float]:
    """The numbers of a stage that exist, by the keys of `columns`."""
    rows = np.flatnonzero(strength.column("agent_steps") == steps)
    if not len(rows):
        raise UserError(f"{strength.path} has no row for the stage at {steps:,} steps")
    values = {key: float(strength.column(name)[rows[0]]) for key, name in columns.items()}
    return {key: value for key, value in values.items() if np.isfinite(value)}


def _elo(cross_play: CrossPlay | None, strength: Table, steps: int) -> dict[str, float]:
    """As fitted to all matches of the run; where only one role learned, to those until then."""
    place = _place_of(cross_play, steps)
    if cross_play is not None and place is not None:
        rated = cross_play.elo
        return {"seeker": rated.seeker[place], "hider": rated.hider[place]}
    return _finite(strength, steps, {role: f"{role}_elo" for role in ROLES})


def _place_of(cross_play: CrossPlay | None, steps: int) -> int | None:
    played = [] if cross_play is None else [stage.agent_steps for stage in cross_play.stages]
    return played.index(steps) if steps in played else None


def _curves(strength: Table, last: int) -> list[RoleCurve]:
    """Each role against the bot that is hard for it, up to the last stage that is shown."""
    curves = []
    steps = strength.column("agent_steps")
    for role, bot in dict(PAIRINGS).items():
        rates = strength.column(f"{role}_vs_{bot}_win_rate")
        rows = np.isfinite(rates) & (steps <= last)
        if rows.any():
            curves.append(RoleCurve(role, bot, steps[rows].tolist(), rates[rows].tolist()))
    return curves


class Events(NamedTuple):
    """What happened in a match."""

    seconds: float
    close_chase_sec: float
    narrow_escapes: int
    jumps: int
    run_m: float

    @property
    def score(self) -> float:
        """How eventful it was."""
        eventful = self.close_chase_sec + ESCAPE_WEIGHT * self.narrow_escapes
        eventful += JUMP_WEIGHT * self.jumps + METRE_WEIGHT * self.run_m
        return min(1.0, self.seconds / MIN_SEC) * eventful


def find_match(
    seeker: Player,
    hider: Player,
    *,
    rules: Rules,
    layouts: Sequence[Layout],
    matches: int = MATCHES,
) -> tuple[MatchChoice, Trajectory]:
    """Play matches between two players, and choose one."""
    played = play_in_memory(seeker, hider, matches, rules=rules, layouts=layouts, seed=SEED)
    choice = choose_match(played)
    return choice, played[choice.number]


def choose_match(matches: Sequence[Trajectory]) -> MatchChoice:
    """Choose among the matches of a stage."""
    winners = np.array([match.winner for match in matches])
    kinds, counts = np.unique(winners, return_counts=True)
    usual = kinds[np.argmax(counts)]
    scores = [events_of(match).score if match.winner == usual else -np.inf for match in matches]
    won = np.where(winners < 0, 0.5, winners == 0)
    return MatchChoice(int(np.argmax(scores)), len(matches), float(won.mean()))


def events_of(match: Trajectory) -> Events:
    """Measure a match."""
    gaps = gaps_m(match)
    # what holds at a row holds since the one before
    durations = np.diff(match.seconds)
    sees = (match.sees & match.is_seeker).any(axis=1)
    close = (sees & (gaps < CLOSE_M))[1:]
    steps = np.diff(match.positions[..., ::2], axis=0)
    over = _over_boxes(match)
    return Events(
        seconds=float(match.seconds[-1]),
        close_chase_sec=float(durations[close].sum()),
        narrow_escapes=_count_escapes(gaps),
        jumps=int((over[1:] & ~over[:-1]).sum()),
        run_m=float(np.hypot(steps[..., 0], steps[..., 1]).sum()),
    )


def gaps_m(match: Trajectory) -> np.ndarray:
    """The shortest distance between the two cubes: (rows,) float64."""
    apart = np.abs(match.positions[:, 0] - match.positions[:, 1]) - match.start.agent_size_m
    gaps: np.ndarray = np.sqrt((np.maximum(apart, 0.0) ** 2).sum(axis=1))
    return gaps


def _count_escapes(gaps: np.ndarray) -> int:
    escapes, narrow = 0, False
    for gap in gaps:
        if gap < NARROW_M:
            narrow = True
        elif narrow and gap > ESCAPED_M:
            escapes += 1
            narrow = False
    return escapes


def _over_boxes(match: Trajectory) -> np.ndarray:
    """Whose middle is over a box: (rows, agents) bool."""
    places = match.positions[..., ::2]
    over = np.zeros(places.shape[:2], dtype=bool)
    for box in match.layout.boxes:
        half = np.array([box.size_m[0], box.size_m[2]]) / 2.0
        over |= (np.abs(places - np.array(box.at_m)) < half).all(axis=-1)
    return over


class Made(NamedTuple):
    """A finished film."""

    film_sec: float
    frames: int
    drawn: int
    """Frames that were drawn this time."""
    work: Path
    """The folder of the drawn frames, removed unless they were to be kept."""


def draw_results(run: TagRun, progress: Progress, *, film: bool) -> tuple[list[Path], Path | None]:
    """Draw the charts of a run and, if asked for, the quick film, which needs no Godot."""
    progress.step("charts")
    charts = draw_charts(run.path, run.root / "charts")
    if not film:
        return charts, None
    output = film_name(run.root)
    make_film(
        read_filmed_run(run),
        output,
        quality=QUALITIES["low"],
        renderer=TopDownRenderer(),
        folder=run.path,
        progress=progress,
    )
    return charts, output


def make_film(
    run: FilmedRun,
    output: Path,
    *,
    quality: Quality,
    renderer: Renderer,
    folder: Path,
    progress: Progress,
    overwrite: bool = False,
    keep_frames: bool = False,
) -> Made:
    """Make a film, or resume one that was interrupted, in a folder inside the run's `folder`."""
    _check_output(output, overwrite)
    ensure_writable(output)
    with _work_folder(folder, film_key(run, quality, renderer)) as work:
        progress.step("choosing matches")
        scenes = _scenes(run, quality, work, _time_left(progress, "stages"))
        shots = [scene.shot for scene in scenes]
        missing = sum(len(shot.missing(quality.size)) for shot in shots)
        _check_disk(work, quality.size, missing)
        progress.step("drawing", f"{missing} frames, {renderer.name}")
        renderer.draw(shots, quality, _time_left(progress, "frames"))
        progress.step("encoding")
        film = work / "film.mp4"
        frames = encode_film(run.facts, scenes, quality, film, _time_left(progress, "frames"))
        _check_output(output, overwrite)
        write_whole(output, film.read_bytes())
        if not keep_frames:
            shutil.rmtree(work)
    return Made(frames / quality.fps, frames, missing, work)


def film_key(run: FilmedRun, quality: Quality, renderer: Renderer) -> str:
    """A name that depends on everything a film's frames depend on, this program included."""
    digest = hashlib.sha256(__version__.encode())
    for room in ("show", "tag"):
        for path in sorted((paths.PACKAGE / room).rglob("*.py")):
            digest.update(path.read_bytes())
    game = [run.rules, list(run.layouts), run.facts, run.policies, quality]
    digest.update(msgspec.json.encode([*game, renderer.name, renderer.fingerprint()]))
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _work_folder(run: Path, key: str) -> Iterator[Path]:
    """The folder of the film with this key, for one process at a time.

    What a killed process was writing is removed, and everything complete is kept.
    """
    folder = run / "film" / key
    with locked(run / "film" / "lock", timeout_sec=0.0):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.rglob("*"):
                if path.name.startswith(".") or path.name.endswith(PARTIAL):
                    path.unlink()
        except OSError as error:
            raise cannot_write(folder, error) from error
        yield folder


def _check_output(output: Path, overwrite: bool) -> None:
    if output.exists() and not overwrite:
        raise UserError(f"{output} already exists; use --overwrite, or another --output")


def _check_disk(folder: Path, size: tuple[int, int], frames: int) -> None:
    needed = BYTES_PER_PIXEL * size[0] * size[1] * frames
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"{folder}: {frames} frames need up to {needed / 1e9:.1f} GB, and only "
            f"{free / 1e9:.1f} GB are free; free some space, or use --quality low"
        )


def _time_left(progress: Progress, unit: str) -> OnProgress:
    """Reports how far a step is, and the time left at the pace since it began."""
    begun: tuple[float, int] | None = None

    def report(done: int, total: int) -> None:
        nonlocal begun
        now = time.monotonic()
        if begun is None:
            begun = now, done
        since, first = begun
        left = time_text((total - done) * (now - since) / (done - first)) if done > first else "?"
        progress.update(done, total, f" {unit}, {left} left")

    return report


def _scenes(run: FilmedRun, quality: Quality, work: Path, on_progress: OnProgress) -> list[Scene]:
    """The scenes of a film; matches that were chosen before are not chosen again."""
    chosen = work / "chosen.json"
    files = [work / f"match_{number}.jsonl" for number in range(len(run.stages))]
    if not chosen.is_file():
        found = []
        for (_, seeker, hider), file in zip(run.stages, files, strict=True):
            choice, match = find_match(seeker, hider, rules=run.rules, layouts=run.layouts)
            write_whole(file, encode_trajectory(match))
            found.append(choice)
            on_progress(len(found), len(files))
        write_whole(chosen, msgspec.json.encode(found))
    choices = msgspec.json.decode(chosen.read_bytes(), type=list[MatchChoice])
    return [
        plan_scene(
            read_trajectory(file),
            stage.facts,
            choice,
            Shot(file, work / f"scene_{number}"),
            rules=run.rules,
            fps=quality.fps,
        )
        for number, (stage, choice, file) in enumerate(zip(run.stages, choices, files, strict=True))
    ]
