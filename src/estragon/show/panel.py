"""One panel of a chart: lines over training, each named where it ends."""

import numpy as np
from matplotlib.axes import Axes

from estragon.show.paper import (
    FAINT,
    INK,
    LINE_WIDTH,
    STEPS_LABEL,
    EndLabel,
    label_ends,
)
from estragon.show.table import Table

SMOOTH_SHARE = 20
"""A rolling mean spans this part of a run's rows."""


class Panel:
    """Axes with training steps along them."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self._labels: list[EndLabel] = []
        self._farthest = 0.0

    def draw_exact(
        self, x: np.ndarray, y: np.ndarray, label: str, colour: str, style: str = "-"
    ) -> None:
        """Few, exact numbers: a line with a dot on each."""
        there = np.isfinite(y)
        if not there.any():
            return
        x, y = x[there], y[there]
        width, dot = LINE_WIDTH, 5.0
        self.axes.plot(
            x, y, style, color=colour, lw=width, marker="o", ms=dot, mew=0, clip_on=False
        )
        self._note(x, EndLabel(float(y[-1]), label, colour))

    def draw_noisy(
        self, x: np.ndarray, y: np.ndarray, label: str, colour: str, *, pale: bool = False
    ) -> None:
        """Many noisy numbers, faint, and their rolling mean; pale where it is only background."""
        there = np.isfinite(y)
        if not there.any():
            return
        x, y = x[there], y[there]
        smooth = rolling_mean(y)
        self.axes.plot(x, y, color=colour, lw=0.8, alpha=0.12 if pale else 0.25)
        width, alpha = (1.6, 0.4) if pale else (LINE_WIDTH, 1.0)
        self.axes.plot(x, smooth, color=colour, lw=width, alpha=alpha)
        self._note(x, EndLabel(float(smooth[-1]), label, colour, 0.6 if pale else 1.0))

    def finish(self, *, title: str = "", y: str = "", x: str = STEPS_LABEL) -> None:
        """Name the axes, and the lines that have names."""
        self.axes.set_title(title, color=INK, fontsize=13, loc="left", pad=10)
        self.axes.set_xlabel(x, color=FAINT, fontsize=11, labelpad=8)
        self.axes.set_ylabel(y, color=FAINT, fontsize=11, labelpad=8)
        if self._farthest > 0.0:
            self.axes.set_xlim(0.0, self._farthest)
        label_ends(self.axes, self._labels)

    def _note(self, x: np.ndarray, label: EndLabel) -> None:
        self._farthest = max(self._farthest, float(x.max()))
        if label.text:
            self._labels.append(label)


def rolling_mean(values: np.ndarray) -> np.ndarray:
    """Means over a window centred on each row: (rows,) float64."""
    rows = len(values)
    reach = max(rows // SMOOTH_SHARE // 2, 1 if rows >= 10 else 0)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(rows) - reach, 0)
    last = np.minimum(np.arange(rows) + reach + 1, rows)
    means: np.ndarray = (sums[last] - sums[first]) / (last - first)
    return means


def has_numbers(table: Table | None, *columns: str) -> bool:
    """Whether a table has anything to draw in one of these columns."""
    return table is not None and any(np.isfinite(table.column(name)).any() for name in columns)
