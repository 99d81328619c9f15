"""The files of training runs, read for charts and films; and which runs are repeats."""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from estragon.support.errors import UserError
from estragon.support.files import read_json

Source = Literal["metrics", "strength", "elo", "final"]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]

VARIES = (
    *("run_id", "pid", "seed", "started"),
    *("estragon", "python", "torch", "numpy", "machine", "device", "workers", "torch_threads"),
)
"""Of a run's metadata, what may differ between repeats."""
WINNER_SHARE = {"seeker": 1.0, "hider": 0.0, "draw": 0.5}
MAX_NAMED_SETTINGS = 3
"""Kinds of runs that differ in more settings are named after their folders."""


class Axis(NamedTuple):
    """The x axis of charts: a column that counts the progress of training."""

    column: str
    unit: float
    label: str
    format: str


STEPS = Axis("agent_steps", 1e6, "learning agent-steps (millions)", "{x:g}")
EPISODES = Axis("episode", 1.0, "episodes", "{x:,.0f}")


class Table:
    """The columns of a CSV file by name, converted to numbers on demand.

    `cells` is the text of each column, `lines` the line of the file that each row is from.
    """

    def __init__(self, path: Path, cells: dict[str, tuple[str, ...]], lines: Sequence[int]) -> None:
        self.path = path
        self.notes: list[str] = []
        """What was left out, one line each."""
        self._cells, self._lines = cells, lines
        self._numbers: dict[str, np.ndarray] = {}

    @property
    def names(self) -> list[str]:
        """The columns, in the order of the file."""
        return list(self._cells)

    def texts(self, name: str) -> tuple[str, ...]:
        """A column as text; empty cells where the file has no such column."""
        return self._cells.get(name, ("",) * len(self._lines))

    def column(self, name: str) -> np.ndarray:
        """(rows,) float64; NaN where a cell is empty, or where the file has no such column."""
        if name not in self._numbers:
            self._numbers[name] = self._parse(name)
        return self._numbers[name]

    def along(self, axis: Axis) -> np.ndarray:
        """The place of each row along an axis: (rows,) float64, in the axis's unit."""
        places = self.column(axis.column)
        for line, place in zip(self._lines, places, strict=True):
            if math.isnan(place):
                raise UserError(f"{self.path}: line {line} has no {axis.column}")
        back = np.flatnonzero(np.diff(places) < 0.0)
        if len(back) and axis is EPISODES:  # a new session started at 1 again: count the rows
            return np.arange(1.0, len(places) + 1.0)
        if len(back):
            raise UserError(
                f"{self.path}: line {self._lines[back[0] + 1]}, {axis.column}: goes back from "
                f"{places[back[0]]:.0f} to {places[back[0] + 1]:.0f}; two runs in one file?"
            )
        return places / axis.unit

    @property
    def row_is(self) -> str:
        """What a row is: an update in embedded training, an episode in live training."""
        if "updates" in self._cells and (np.diff(self.column("updates")) == 1.0).all():
            return "update"
        return "episode"

    def _parse(self, name: str) -> np.ndarray:
        numbers = np.full(len(self._lines), np.nan)
        infinite: list[tuple[int, str]] = []
        for row, cell in enumerate(self.texts(name)):
            if not cell.strip():
                continue
            try:
                number = float(cell)
            except ValueError:
                where = f"{self.path}: line {self._lines[row]}, {name}"
                raise UserError(f"{where}: expected a number, got {cell[:40]!a}") from None
            if math.isfinite(number):
                numbers[row] = number
            else:
                infinite.append((self._lines[row], cell.strip()))
        if infinite:
            line, cell = infinite[0]
            more = f", and {len(infinite) - 1} more like it" if len(infinite) > 1 else ""
            self.notes.append(f"{self.path}: line {line}, {name}: {cell}{more} left out")
        return numbers


def read_table(path: Path, axes: Sequence[Axis] = (STEPS, EPISODES)) -> Table:
    """Read a CSV file with a header line that has a column for one of these axes.

    A last line without its end is left out: a run may be writing it right now.
    """
    try:
        lines = list(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not a CSV file: it is not UTF-8 text") from error
    if not lines:
        raise UserError(f"{path} is empty; a run writes its first row after the first update")
    whole = [line for line in lines if line.endswith(("\n", "\r"))]
    reader = csv.reader(whole)
    numbered: list[tuple[int, list[str]]] = []
    try:
        numbered.extend((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num} is not CSV: {error}") from error
    header = numbered[0][1] if numbered else []
    _check_header(path, header, axes)
    if len(numbered) == 1:
        raise UserError(f"{path} has no rows yet; let the training run a little longer")
    for number, row in numbered:
        if len(row) != len(header):
            raise UserError(f"{path}: line {number} has {len(row)} cells, expected {len(header)}")
    numbers, rows = zip(*numbered[1:], strict=True)
    table = Table(path, dict(zip(header, zip(*rows, strict=True), strict=True)), numbers)
    if len(whole) < len(lines):
        table.notes.append(f"{path}: line {len(lines)} is not finished and left out")
    return table


def _check_header(path: Path, header: Sequence[str], axes: Sequence[Axis]) -> None:
    if not any(axis.column in header for axis in axes):
        wanted = " or ".join(f"'{axis.column}'" for axis in axes)
        found = ascii(",".join(header)[:80])
        raise UserError(f"{path}: line 1: expected a header with a column {wanted}, got {found}")
    for name, times in Counter(header).items():
        if times > 1:
            raise UserError(f"{path}: line 1: {times} columns are called {name!a}")


class PlayedStage(Struct, frozen=True):
    """A stage of training whose policies were kept."""

    name: str
    agent_steps: float


class Elo(Struct, frozen=True):
    """Ratings, one per stage."""

    seeker: list[float]
    hider: list[float]


class CrossPlay(Struct, frozen=True):
    """Every stage's seeker against every stage's hider."""

    stages: Annotated[list[PlayedStage], Meta(min_length=1)]
    seeker_win_rate: list[list[Share]]
    """Rows are the seekers by stage, columns the hiders."""
    episodes: int
    """Matches per pair."""
    elo: Elo
    sampled_seeker_win_rate: list[list[Share]] | None = None
    """The same when policies draw their actions; runs of earlier versions have none."""

    def against_final(self, role: str, *, sampled: bool) -> np.ndarray:
        """(stages,) float64: how often each stage beats the other role's last stage."""
        rates = self.sampled_seeker_win_rate if sampled else self.seeker_win_rate
        if rates is None:
            return np.full(len(self.stages), np.nan)
        table = np.array(rates)
        wins: np.ndarray = table[:, -1] if role == "seeker" else 1.0 - table[-1]
        return wins


def read_cross_play(path: Path) -> CrossPlay:
    """Read and check the file a run writes at its end."""
    loaded = read_json(path, CrossPlay)
    count = len(loaded.stages)
    for name in ("seeker_win_rate", "sampled_seeker_win_rate"):
        rows = getattr(loaded, name)
        if rows is not None and [len(row) for row in rows] != [count] * count:
            raise UserError(f"{path}: {name}: expected {count} rows of {count}")
    if (len(loaded.elo.seeker), len(loaded.elo.hider)) != (count, count):
        raise UserError(f"{path}: elo: expected {count} ratings per role")
    return loaded


class Points(NamedTuple):
    """One run's numbers for one line, in order."""

    x: np.ndarray
    y: np.ndarray
    scattered: bool = False
    """Each belongs to a single episode."""


@dataclass(frozen=True)
class RunData:
    """One training run, or a file of metrics alone."""

    place: Path
    """Its folder, or its file without the suffix."""
    metrics: Table
    strength: Table | None
    cross_play: CrossPlay | None
    about: dict[str, Any]
    """Its metadata, where there is any."""

    @property
    def notes(self) -> list[str]:
        """What was left out of its tables."""
        return [*self.metrics.notes, *(self.strength.notes if self.strength else [])]

    def points(self, source: Source, column: str, axis: Axis) -> Points:
        """The numbers of a column along an axis; none where the run has no such numbers."""
        x = y = np.zeros(0)
        if source == "metrics":
            x, y = self.metrics.along(axis), self.metrics.column(column)
            if column == "seeker_win_rate" and not np.isfinite(y).any():
                winners = self.metrics.texts("winner")
                y = np.array([WINNER_SHARE.get(winner, np.nan) for winner in winners])
        elif axis is STEPS and source == "strength" and self.strength is not None:
            x, y = self.strength.along(axis), self.strength.column(column)
        elif axis is STEPS and source == "elo" and self.cross_play is not None:
            x = np.array([stage.agent_steps for stage in self.cross_play.stages]) / axis.unit
            y = np.array(getattr(self.cross_play.elo, column))
        elif axis is STEPS and source == "final" and self.cross_play is not None:
            x = np.array([stage.agent_steps for stage in self.cross_play.stages]) / axis.unit
            role, _, how = column.partition("_")
            y = self.cross_play.against_final(role, sampled=how == "sampled")
        finite = np.isfinite(y)
        scattered = source == "metrics" and self.metrics.row_is == "episode"
        return Points(x[finite], y[finite], scattered)


class Kind(NamedTuple):
    """Runs that differ by chance alone."""

    name: str
    runs: tuple[RunData, ...]


def read_run(folder: Path) -> RunData:
    """The run in a folder: `metrics.csv`, and what else exists by now."""
    strength, cross_play = folder / "strength.csv", folder / "cross_play.json"
    return RunData(
        place=folder.absolute(),
        metrics=read_table(folder / "metrics.csv"),
        strength=read_table(strength, [STEPS]) if strength.exists() else None,
        cross_play=read_cross_play(cross_play) if cross_play.exists() else None,
        about=_metadata(folder),
    )


def read_metrics(file: Path) -> RunData:
    """A file of metrics alone."""
    whole = file.absolute()
    place = whole.parent if whole.name == "metrics.csv" else whole.with_suffix("")
    return RunData(place, read_table(file), None, None, _metadata(file.parent))


def _metadata(folder: Path) -> dict[str, Any]:
    path = folder / "metadata.json"
    return read_json(path, dict[str, Any]) if path.is_file() else {}


def common_axis(runs: Sequence[RunData]) -> Axis:
    """Steps where all runs count them, else episodes."""
    for axis in (STEPS, EPISODES):
        if all(axis.column in run.metrics.names for run in runs):
            return axis
    without = next(run for run in runs if EPISODES.column not in run.metrics.names)
    raise UserError(
        f"{without.metrics.path}: no column '{EPISODES.column}', and not all of the others have "
        f"'{STEPS.column}': there is no common x axis"
    )


def group_runs(runs: Sequence[RunData]) -> list[Kind]:
    """Group the repeats of the same thing, in the order given."""
    for place, times in Counter(run.place for run in runs).items():
        if times > 1:
            raise UserError(f"{place} is given twice")
    kinds: dict[str, list[RunData]] = {}
    for run in runs:
        settings = _settings(run)
        key = json.dumps(settings, sort_keys=True) if "approach" in settings else str(run.place)
        kinds.setdefault(key, []).append(run)
    first = [repeats[0] for repeats in kinds.values()]
    names = [_name_among(run, first) for run in first]
    if len(set(names)) < len(names):
        names = _short_paths([run.place for run in first])
    return [Kind(n, tuple(repeats)) for n, repeats in zip(names, kinds.values(), strict=True)]


def _name_among(run: RunData, runs: Sequence[RunData]) -> str:
    """A kind's approach, and the settings in which it differs from others of that approach."""
    alike = [other for other in runs if other.about.get("approach") == run.about.get("approach")]
    if "approach" not in run.about:
        return _short_paths([run.place, *(o.place for o in alike if o is not run)])[0]
    own, others = _settings(run), [_settings(other) for other in alike]
    keys = [key for key in own if any(other.get(key) != own[key] for other in others)]
    if len(keys) > MAX_NAMED_SETTINGS:
        return f"{run.about['approach']} {run.place.name}"
    return ", ".join([str(run.about["approach"]), *(f"{key} {own[key]}" for key in keys)])


def _settings(run: RunData) -> dict[str, Any]:
    """What a run was asked to do; nested settings are flattened."""
    settings: dict[str, Any] = {}
    for key, value in run.about.items():
        settings |= value if isinstance(value, dict) else {key: value}
    return {k: v for k, v in settings.items() if v is not None and k not in VARIES}


def _short_paths(places: Sequence[Path]) -> list[str]:
    """The ends of paths, as long as it takes to tell them apart."""
    names: list[str] = []
    for length in range(1, max(len(place.parts) for place in places) + 1):
        names = ["/".join(place.parts[-length:]) for place in places]
        if len(set(names)) == len(names):
            break
    return names
