"""A training run as its film needs it: the game, the players of some stages, and the facts."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from estragon.selfplay.checkpoint import StageRecord, TagRun, read_stages
from estragon.selfplay.config import LEAGUE, Task
from estragon.selfplay.ladder import PAIRINGS
from estragon.show.charts.cross_play import CrossPlay, read_cross_play
from estragon.show.charts.table import Table, read_table
from estragon.show.film.facts import RoleCurve, RunFacts, StageFacts
from estragon.show.film.make import Stage
from estragon.support.errors import UserError
from estragon.tag.matches import Player, load_player
from estragon.tag.rules import ROLES, Role

STAGES_SHOWN = 5
"""Few enough to watch in a minute or so."""


@dataclass(frozen=True)
class FilmedRun:
    """What there is to show."""

    task: Task
    facts: RunFacts
    """Of the run, and of the stages that are shown."""
    stages: list[Stage]
    digest: str
    """Of every policy that plays."""


def read_run(folder: TagRun) -> FilmedRun:
    """Read a run that has come to its first stage at least."""
    task, kept = read_stages(folder)
    places = np.linspace(0, len(kept) - 1, min(STAGES_SHOWN, len(kept))).astype(int)
    shown = [kept[place] for place in places]
    facts = _run_facts(folder, task, [(stage.name, stage.agent_steps) for stage in shown])
    files: list[Path] = []
    stages = []
    for about, stage in zip(facts.stages, shown, strict=True):
        seeker, hider = (_player(folder, task, role, stage, files) for role in ROLES)
        stages.append(Stage(about, seeker, hider))
    return FilmedRun(task, facts, stages, _digest(files))


def _player(
    folder: TagRun, task: Task, role: Role, stage: StageRecord, files: list[Path]
) -> Player:
    """Who plays a role: the stage's own policy, or the opponent that the other one learned with."""
    spec = task.opponent
    if role in stage.roles:
        spec = str(folder.checkpoint(role, stage.updates, ".npz"))
    elif (opponent := folder.path / Path(spec).name).is_file():
        spec = str(opponent)
    if not spec.startswith("bot:"):
        files.append(Path(spec))
    return load_player(spec, task.rules, role)


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _run_facts(folder: TagRun, task: Task, stages: Sequence[tuple[str, int]]) -> RunFacts:
    strength = read_table(folder.strength)
    metrics = read_table(folder.metrics) if stages[-1][1] else None
    cross_play = read_cross_play(folder.cross_play) if folder.cross_play.exists() else None
    return RunFacts(
        name=folder.run_id,
        learned_by="self-play" if task.opponent == LEAGUE else f"play against {task.opponent}",
        stages=[
            StageFacts(
                name=name,
                agent_steps=steps,
                training_sec=_training_sec(metrics, steps),
                win_rates=_win_rates(strength, steps),
                elo=_elo(cross_play, strength, steps),
            )
            for name, steps in stages
        ],
        curves=_curves(strength, stages[-1][1]),
        seeker_wins=_duel(cross_play, stages[-1][1]),
    )


def _training_sec(metrics: Table | None, steps: int) -> float | None:
    if metrics is None or not steps:
        return None
    there = np.flatnonzero(metrics.column("agent_steps") == steps)
    rate = metrics.column("agent_steps_per_s")[there]
    return float(steps / rate[0]) if len(there) and rate[0] > 0.0 else None


def _row_of(strength: Table, steps: int) -> int:
    there = np.flatnonzero(strength.column("agent_steps") == steps)
    if not len(there):
        raise UserError(f"{strength.path} has no row for the stage at {steps:,} steps")
    return int(there[0])


def _win_rates(strength: Table, steps: int) -> dict[str, float]:
    row = _row_of(strength, steps)
    names = [f"{role}_vs_{bot}" for role, bot in PAIRINGS]
    rates = {name: float(strength.column(f"{name}_win_rate")[row]) for name in names}
    return {name: rate for name, rate in rates.items() if np.isfinite(rate)}


def _elo(cross_play: CrossPlay | None, strength: Table, steps: int) -> dict[str, float]:
    """As fitted to all matches of the run; where only one role learned, to those until then."""
    place = _place_of(cross_play, steps)
    if cross_play is not None and place is not None:
        rated = cross_play.elo
        return {"seeker": rated.seeker[place], "hider": rated.hider[place]}
    row = _row_of(strength, steps)
    ratings = {role: float(strength.column(f"{role}_elo")[row]) for role in ROLES}
    return {role: rating for role, rating in ratings.items() if np.isfinite(rating)}


def _duel(cross_play: CrossPlay | None, steps: int) -> float | None:
    """How often the seeker of a stage beats the hider of the same stage."""
    place = _place_of(cross_play, steps)
    if cross_play is None or place is None:
        return None
    return cross_play.seeker_win_rate[place][place]


def _place_of(cross_play: CrossPlay | None, steps: int) -> int | None:
    played = [] if cross_play is None else [stage.agent_steps for stage in cross_play.stages]
    return played.index(steps) if steps in played else None


def _curves(strength: Table, last: int) -> list[RoleCurve]:
    """Each role against the bot that is hard for it, up to the last stage that is shown."""
    hard = dict(PAIRINGS)
    curves = []
    steps = strength.column("agent_steps")
    for role, bot in hard.items():
        rates = strength.column(f"{role}_vs_{bot}_win_rate")
        there = np.isfinite(rates) & (steps <= last)
        if there.any():
            curves.append(RoleCurve(role, bot, steps[there].tolist(), rates[there].tolist()))
    return curves
