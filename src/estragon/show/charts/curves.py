"""What a line of a chart shows: one run's numbers, or the mean and the span of several runs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SMOOTH_SHARE, SCATTERED_SHARE = 20, 10
"""A rolling mean spans this part of a run's rows: of updates, and of single episodes."""
GRID_POINTS = 240
"""Noisy runs are compared at so many evenly spaced places."""


class Points(NamedTuple):
    """One run's numbers, those that are there, in order."""

    x: np.ndarray
    y: np.ndarray
    scattered: bool = False
    """Each is one episode's, and says little alone."""

    @property
    def window(self) -> int:
        """How many numbers a rolling mean takes together."""
        rows, share = len(self.x), SCATTERED_SHARE if self.scattered else SMOOTH_SHARE
        return 2 * max(rows // share // 2, 1 if rows >= 10 else 0) + 1


class Curve(NamedTuple):
    """A line, and what surrounds it."""

    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    """The lowest and the highest run, where there are several."""
    high: np.ndarray | None = None
    every: Points | None = None
    """Every number behind a rolling mean, where there is one run."""
    exact: bool = False
    """Few numbers, each of which counts."""


def noisy_curve(runs: Sequence[Points]) -> Curve | None:
    """Rolling means of many noisy numbers; of several runs, where all have numbers."""
    if not runs:
        return None
    smooth = [Points(points.x, rolling_mean(points.y, points.window)) for points in runs]
    if len(runs) == 1:
        return Curve(runs[0].x, smooth[0].y, every=runs[0])
    span = _common_span(runs)
    return None if span is None else _span_of(smooth, np.linspace(*span, GRID_POINTS))


def exact_curve(runs: Sequence[Points]) -> Curve | None:
    """Few exact numbers; of several runs, at all the places of any between those of all."""
    if not runs:
        return None
    if len(runs) == 1:
        return Curve(runs[0].x, runs[0].y, exact=True)
    span = _common_span(runs)
    if span is None:
        return None
    places = np.unique(np.concatenate([points.x for points in runs]))
    places = places[(places >= span[0]) & (places <= span[1])]
    return _span_of(runs, places)._replace(exact=True)


def rolling_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Means over a window, an odd number of rows, centred on each row: (rows,) float64."""
    rows, reach = len(values), window // 2
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(rows) - reach, 0)
    last = np.minimum(np.arange(rows) + reach + 1, rows)
    means: np.ndarray = (sums[last] - sums[first]) / (last - first)
    return means


def _common_span(runs: Sequence[Points]) -> tuple[float, float] | None:
    first = max(float(points.x[0]) for points in runs)
    last = min(float(points.x[-1]) for points in runs)
    return (first, last) if first <= last else None


def _span_of(runs: Sequence[Points], places: np.ndarray) -> Curve:
    values = np.stack([np.interp(places, points.x, points.y) for points in runs])
    return Curve(places, values.mean(axis=0), values.min(axis=0), values.max(axis=0))
