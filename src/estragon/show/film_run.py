"""What a film shows of a training run: the players of some stages, and their matches.

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

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from estragon.selfplay.checkpoint import StageRecord, TagRun, read_stages
from estragon.selfplay.config import LEAGUE, Task
from estragon.selfplay.evaluation import PAIRINGS
from estragon.show.charts.data import CrossPlay, Table, read_cross_play, read_table
from estragon.show.film_plan import Choice, RoleCurve, RunFacts, StageFacts
from estragon.show.trajectory import Trajectory
from estragon.show.trajectory_log import TrajectoryLog
from estragon.support.errors import UserError
from estragon.tag.layout import Layout
from estragon.tag.matches import Player, load_player, play_matches
from estragon.tag.rules import ROLES, Role, Rules

STAGES_SHOWN = 5
"""Few enough to watch in a minute or so."""
MATCHES, SEED = 64, 7
CLOSE_M, NARROW_M, ESCAPED_M = 3.0, 0.6, 1.2
MIN_SEC = 4.0
"""A shorter match is hard to follow."""
ESCAPE_WEIGHT, JUMP_WEIGHT, METRE_WEIGHT = 2.0, 1.0, 0.02
"""Relative to a second of close chase."""


class Stage(NamedTuple):
    """Two players at some point of the training, and its numbers."""

    facts: StageFacts
    seeker: Player
    hider: Player


@dataclass(frozen=True)
class FilmedRun:
    """What there is to show."""

    facts: RunFacts
    """Of the run, and of the stages that are shown."""
    stages: Sequence[Stage]
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
        players.append(Stage(about, seeker, hider))
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
    last = stages[-1].agent_steps
    strength = read_table(run.strength)
    metrics = read_table(run.metrics) if last else None
    cross_play = read_cross_play(run.cross_play) if run.cross_play.exists() else None
    place = _place_of(cross_play, last)
    return RunFacts(
        name=run.run_id,
        learned_by="self-play" if task.opponent == LEAGUE else f"play against {task.opponent}",
        stages=[
            StageFacts(
                name=stage.name,
                agent_steps=stage.agent_steps,
                training_sec=_training_sec(metrics, stage.agent_steps),
                win_rates=_finite(
                    strength,
                    stage.agent_steps,
                    {f"{role}_vs_{bot}": f"{role}_vs_{bot}_win_rate" for role, bot in PAIRINGS},
                ),
                elo=_elo(cross_play, strength, stage.agent_steps),
            )
            for stage in stages
        ],
        curves=_curves(strength, last),
        seeker_wins=None
        if cross_play is None or place is None
        else cross_play.seeker_win_rate[place][place],
    )


def _training_sec(metrics: Table | None, steps: int) -> float | None:
    if metrics is None or not steps:
        return None
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
) -> tuple[Choice, Trajectory]:
    """Play matches between two players, and choose one."""
    played = play_in_memory(seeker, hider, matches, rules=rules, layouts=layouts, seed=SEED)
    choice = choose_match(played)
    return choice, played[choice.number]


def play_in_memory(
    seeker: Player,
    hider: Player,
    count: int,
    *,
    rules: Rules,
    layouts: Sequence[Layout],
    seed: int,
) -> list[Trajectory]:
    """Matches number 0 to count - 1 of a seed, on the embedded engine."""
    log = _MemoryLog(players={"seeker": seeker.name, "hider": hider.name}, most=count)
    play_matches(seeker, hider, count, rules=rules, layouts=layouts, seed=seed, watcher=log)
    return sorted(log.matches, key=lambda match: match.start.arena)


class _MemoryLog(TrajectoryLog):
    """A log that writes no files."""

    def __init__(self, *, players: dict[Role, str], most: int) -> None:
        super().__init__(Path(), engine="embedded", players=players, most=most)
        self.matches: list[Trajectory] = []

    def keep(self, trajectory: Trajectory) -> None:
        """A match has ended."""
        self.matches.append(trajectory)


def choose_match(matches: Sequence[Trajectory]) -> Choice:
    """Choose among the matches of a stage."""
    winners = np.array([match.winner for match in matches])
    kinds, counts = np.unique(winners, return_counts=True)
    usual = kinds[np.argmax(counts)]
    scores = [events_of(match).score if match.winner == usual else -np.inf for match in matches]
    won = np.where(winners < 0, 0.5, winners == 0)
    return Choice(int(np.argmax(scores)), len(matches), float(won.mean()))


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
