"""A table of numbers in a CSV file, as a training run writes it row by row."""

import csv
import math
from pathlib import Path

import numpy as np

from estragon.errors import UserError

STEPS = "agent_steps"
"""The column every table has: how many steps the agents had learned from by then."""


class Table:
    """A file's columns by name; a column is read as numbers when it is asked for.

    Args:
        path: where it came from, for messages.
        cells: the text of each column.
    """

    def __init__(self, path: Path, cells: dict[str, tuple[str, ...]]) -> None:
        self._path, self._cells = path, cells
        steps = self.column(STEPS)
        if not np.isfinite(steps).all():
            raise UserError(f"{path}: a row has no {STEPS}")
        self.millions: np.ndarray = steps / 1e6
        """The x axis of charts: (rows,) float64, millions of agent-steps."""

    def column(self, name: str) -> np.ndarray:
        """(rows,) float64; NaN where a cell is empty, or where the file has no such column."""
        if name not in self._cells:
            return np.full(len(self._cells[STEPS]), np.nan)
        numbers = []
        for row, cell in enumerate(self._cells[name], start=1):
            try:
                number = float(cell) if cell.strip() else math.nan
            except ValueError:
                shown = ascii(cell[:40])
                raise UserError(f"{self._path}: row {row}, {name}: {shown} is no number") from None
            numbers.append(number if math.isfinite(number) else math.nan)
        return np.array(numbers)

    def names_after(self, prefix: str) -> list[str]:
        """What follows `prefix` in the names of the columns that begin with it."""
        return [name.removeprefix(prefix) for name in self._cells if name.startswith(prefix)]


def read_table(path: Path) -> Table:
    """Read a CSV file with a header line; what is missing or damaged is named in the error."""
    try:
        rows = list(csv.reader(_whole_lines(path)))
    except csv.Error as error:
        raise UserError(f"{path} is not a CSV file: {error}") from error
    if not rows or STEPS not in rows[0]:
        raise UserError(f"{path}: expected a header line with a column '{STEPS}'")
    header, rows = rows[0], [row for row in rows[1:] if row]
    if not rows:
        raise UserError(f"{path} has no rows yet; let the training run a little longer")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise UserError(f"{path}: row {number} has {len(row)} cells, expected {len(header)}")
    return Table(path, dict(zip(header, zip(*rows, strict=True), strict=True)))


def _whole_lines(path: Path) -> list[str]:
    """All lines but a last one without its end: somebody is writing it right now, or was."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not a CSV file: it is not UTF-8 text") from error
    lines = text.splitlines(keepends=True)
    return [line for line in lines if line.endswith(("\n", "\r"))]
