"""A table of numbers in a CSV file, as a training run writes it row by row."""

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from estragon.support.errors import UserError


class Axis(NamedTuple):
    """What charts have along them: a column that counts how far training was."""

    column: str
    unit: float
    label: str
    format: str
    """How places along it are written."""


STEPS = Axis("agent_steps", 1e6, "learning agent-steps (millions)", "{x:g}")
EPISODES = Axis("episode", 1.0, "episodes", "{x:,.0f}")


class Table:
    """A file's columns by name; a column is read as numbers when it is asked for.

    Args:
        path: where it came from, for messages.
        cells: the text of each column.
        lines: the line of the file that each row is from.
    """

    def __init__(self, path: Path, cells: dict[str, tuple[str, ...]], lines: Sequence[int]) -> None:
        self.path = path
        self.notes: list[str] = []
        """What was left out on the way, a line each."""
        self._cells, self._lines = cells, lines
        self._numbers: dict[str, np.ndarray] = {}

    @property
    def names(self) -> list[str]:
        """The columns, in the order of the file."""
        return list(self._cells)

    def texts(self, name: str) -> tuple[str, ...]:
        """A column as it is written; empty cells where the file has no such column."""
        return self._cells.get(name, ("",) * len(self._lines))

    def column(self, name: str) -> np.ndarray:
        """(rows,) float64; NaN where a cell is empty, or where the file has no such column."""
        if name not in self._numbers:
            self._numbers[name] = self._read(name)
        return self._numbers[name]

    def along(self, axis: Axis) -> np.ndarray:
        """Where each row lies along an axis: (rows,) float64, in the axis's unit."""
        places = self.column(axis.column)
        for number, place in zip(self._lines, places, strict=True):
            if math.isnan(place):
                raise UserError(f"{self.path}: line {number} has no {axis.column}")
        back = np.flatnonzero(np.diff(places) < 0.0)
        if len(back) and axis is EPISODES:  # a new session began to count anew: count the rows
            return np.arange(1.0, len(places) + 1.0)
        if len(back):
            raise UserError(
                f"{self.path}: line {self._lines[back[0] + 1]}, {axis.column}: goes back from "
                f"{places[back[0]]:.0f} to {places[back[0] + 1]:.0f}; two runs in one file?"
            )
        return places / axis.unit

    @property
    def row_is(self) -> str:
        """What a row tells of: an update in embedded training, an episode in live training."""
        if "updates" in self._cells and (np.diff(self.column("updates")) == 1.0).all():
            return "update"
        return "episode"

    def names_after(self, prefix: str) -> list[str]:
        """What follows `prefix` in the names of the columns that begin with it."""
        return [name.removeprefix(prefix) for name in self._cells if name.startswith(prefix)]

    def _read(self, name: str) -> np.ndarray:
        numbers = np.full(len(self._lines), np.nan)
        infinite: list[tuple[int, str]] = []
        for row, cell in enumerate(self.texts(name)):
            if not cell.strip():
                continue
            try:
                number = float(cell)
            except ValueError:
                where = f"{self.path}: line {self._lines[row]}, {name}"
                raise UserError(f"{where}: {cell[:40]!a} is no number") from None
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
    """Read a CSV file with a header line; what is missing or damaged is named in the error.

    It must have a column for one of these axes. A last line without its end is left out: somebody
    is writing it right now, or was.
    """
    lines = _lines_of(path)
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
    rows = numbered[1:]
    if not rows:
        raise UserError(f"{path} has no rows yet; let the training run a little longer")
    for number, row in rows:
        if len(row) != len(header):
            raise UserError(f"{path}: line {number} has {len(row)} cells, expected {len(header)}")
    columns = zip(*(row for _, row in rows), strict=True)
    table = Table(path, dict(zip(header, columns, strict=True)), [number for number, _ in rows])
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


def _lines_of(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not a CSV file: it is not UTF-8 text") from error
    return list(io.StringIO(text, newline=""))
