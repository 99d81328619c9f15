"""Charts as data (which columns, in which panels), drawn from runs as smoothed lines."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from estragon.show.charts.data import Axis, Kind, Points, Source
from estragon.show.charts.figure import (
    INK,
    ChartFigure,
    EndLabel,
    is_lowest,
    label_axes,
    label_ends,
    new_figure,
)
from estragon.support.errors import UserError

COLOURS = (
    *("#332288", "#44aa99", "#cc6677", "#999933", "#882255"),
    *("#88ccee", "#117733", "#aa4499", "#ddcc77"),
)
"""For what is not a role: Paul Tol's muted scheme, which colour-blind people can tell apart."""
SMOOTH_SHARE, SCATTERED_SHARE = 20, 10
"""A rolling mean spans this part of a run's rows: of updates, and of single episodes."""
GRID_POINTS = 240
"""Noisy runs are compared at so many evenly spaced places."""
FEW = 10
"""So few numbers get a dot each."""
FRAMED = (1.0, 99.0)
"""The frame holds every line, and of the noise behind it these percentiles."""
MARGIN = 0.05
FOREGROUND, BACKGROUND = (2.2, 1.0, 0.18, 0.25), (1.6, 0.4, 0.1, 0.12)
"""Width and opacity of a line, opacity of its band, and of the noise behind it."""
MAX_NAME = 70
"""Letters of a run's name that fit the figure; of a longer one the end is shown."""


class Line(NamedTuple):
    """One column of one table."""

    source: Source
    column: str
    label: str
    """Written where the line ends; a comparison of runs gives it a panel of this name."""
    colour: str
    style: str = "-"
    scale: float = 1.0
    background: bool = False
    """Pale, behind the main lines; left out where those exist and runs are compared."""


class Panel(NamedTuple):
    """Lines that share axes."""

    lines: tuple[Line, ...]
    title: str = ""
    y: str = ""
    format: str = ""
    """Of the numbers along the y axis, for example "{x:.0%}"."""
    lowest: float | None = None
    highest: float | None = None
    zero: bool = False
    """Draw a line at 0."""


class Chart(NamedTuple):
    """One figure."""

    file: str
    title: str
    subtitle: str
    panels: tuple[Panel, ...]
    hint: str = ""
    """How to read the lines that a comparison of runs does without."""
    share_y: bool = False
    """The same y axis in all panels."""
    legend: dict[str, str] | None = None
    """Names and colours of lines, where they are not named at their ends."""
    explain_smoothing: bool = False
    """Say how many rows a rolling mean spans."""


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


def window_of(points: Points) -> int:
    """How many rows a rolling mean spans."""
    rows, share = len(points.x), SCATTERED_SHARE if points.scattered else SMOOTH_SHARE
    return 2 * max(rows // share // 2, 1 if rows >= 10 else 0) + 1


def noisy_curve(runs: Sequence[Points]) -> Curve | None:
    """Rolling means of many noisy numbers; of several runs, where all have numbers."""
    smooth = [Points(points.x, rolling_mean(points.y, window_of(points))) for points in runs]
    if len(runs) == 1:
        return Curve(runs[0].x, smooth[0].y, every=runs[0])
    span = _common_span(runs)
    return None if span is None else _mean_and_range(smooth, np.linspace(*span, GRID_POINTS))


def exact_curve(runs: Sequence[Points]) -> Curve | None:
    """Few exact numbers; of several runs, at all places of any within the span of all."""
    if len(runs) == 1:
        return Curve(runs[0].x, runs[0].y, exact=True)
    span = _common_span(runs)
    if span is None:
        return None
    places = np.unique(np.concatenate([points.x for points in runs]))
    places = places[(places >= span[0]) & (places <= span[1])]
    return _mean_and_range(runs, places)._replace(exact=True)


def rolling_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Means over a window, an odd number of rows, centred on each row: (rows,) float64."""
    rows, reach = len(values), window // 2
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(rows) - reach, 0)
    last = np.minimum(np.arange(rows) + reach + 1, rows)
    means: np.ndarray = (sums[last] - sums[first]) / (last - first)
    return means


def _common_span(runs: Sequence[Points]) -> tuple[float, float] | None:
    first = max((float(points.x[0]) for points in runs), default=np.inf)
    last = min((float(points.x[-1]) for points in runs), default=-np.inf)
    return (first, last) if first <= last else None


def _mean_and_range(runs: Sequence[Points], places: np.ndarray) -> Curve:
    values = np.stack([np.interp(places, points.x, points.y) for points in runs])
    return Curve(places, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


class _Stroke(NamedTuple):
    """A curve and how it is drawn."""

    curve: Curve
    colour: str
    line: Line


def draw_chart(chart: Chart, kinds: Sequence[Kind], axis: Axis) -> ChartFigure | None:
    """The figure; None where the runs have no numbers for it.

    One kind of run is drawn in the chart's own colours, several in a colour each.
    """
    comparing = len(kinds) > 1
    chart = _one_line_per_panel(chart) if comparing else chart
    contents = [(panel, _strokes(panel, kinds, axis)) for panel in chart.panels]
    contents = [(panel, strokes) for panel, strokes in contents if strokes]
    if not contents:
        return None
    limits = _limits(chart, contents)
    explained = _explanations(chart, kinds, [strokes for _, strokes in contents], limits)
    subtitle = [part for part in (chart.subtitle, chart.hint, *explained) if part]
    legend = dict(zip(_names(kinds), COLOURS, strict=False)) if comparing else chart.legend
    if chart.legend and not comparing:
        used = {stroke.colour for _, strokes in contents for stroke in strokes}
        legend = {name: colour for name, colour in chart.legend.items() if colour in used}
    figure, panels = new_figure(
        chart.title, subtitle, len(contents), legend=legend, legend_below=comparing
    )
    for axes, (panel, strokes), limit in zip(panels, contents, limits, strict=True):
        axes.xaxis.set_major_formatter(axis.format)
        if panel.zero:
            axes.axhline(0.0, color=INK, lw=0.8, alpha=0.5)
        if panel.format:
            axes.yaxis.set_major_formatter(panel.format)
        for stroke in strokes:
            _draw(axes, stroke)
        label_axes(axes, title=panel.title, x=axis.label if is_lowest(axes) else "", y=panel.y)
        axes.set_ylim(*limit)
        farthest = max(float(stroke.curve.x.max()) for stroke in strokes)
        if farthest > 0.0:
            axes.set_xlim(0.0, farthest)
        labels = [
            EndLabel(float(curve.y[-1]), line.label, colour, 0.6 if line.background else 1.0)
            for curve, colour, line in strokes
            if line.label and not legend
        ]
        label_ends(figure, axes, labels)
    return figure


def check_kinds(kinds: Sequence[Kind]) -> None:
    """Refuse more kinds of runs than there are colours."""
    if len(kinds) > len(COLOURS):
        raise UserError(
            f"{len(kinds)} kinds of runs in one picture are too many, {len(COLOURS)} can be told "
            f"apart: {', '.join(kind.name for kind in kinds)}"
        )


def _one_line_per_panel(chart: Chart) -> Chart:
    """The chart for comparing runs: colours mean runs then, so each line has its own panel."""
    lines = [line for panel in chart.panels for line in panel.lines]
    front = any(not line.background for line in lines)
    panels = []
    for panel in chart.panels:
        for line in panel.lines:
            if front and line.background:
                continue
            title = ", ".join(part for part in (panel.title, line.label) if part)
            title = title[:1].upper() + title[1:]
            panels.append(panel._replace(lines=(line._replace(style="-"),), title=title))
    return chart._replace(panels=tuple(panels), hint="", legend=None)


def _strokes(panel: Panel, kinds: Sequence[Kind], axis: Axis) -> list[_Stroke]:
    strokes = []
    for line in panel.lines:
        for kind, colour in zip(kinds, COLOURS, strict=False):
            runs = [run.points(line.source, line.column, axis) for run in kind.runs]
            runs = [points._replace(y=line.scale * points.y) for points in runs if len(points.x)]
            curve = noisy_curve(runs) if line.source == "metrics" else exact_curve(runs)
            if curve is not None:
                strokes.append(_Stroke(curve, line.colour if len(kinds) == 1 else colour, line))
    return strokes


def _draw(axes: Axes, stroke: _Stroke) -> None:
    """A line with what surrounds it."""
    curve, colour, line = stroke
    width, alpha, shade, noise = BACKGROUND if line.background else FOREGROUND
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=shade, lw=0)
    if (every := curve.every) is not None:
        axes.plot(
            every.x,
            every.y,
            "." if every.scattered else "-",
            color=colour,
            lw=0.8,
            alpha=noise,
            markersize=4.0,
            markeredgewidth=0.0,
        )
    axes.plot(
        curve.x,
        curve.y,
        line.style,
        color=colour,
        lw=width,
        alpha=alpha,
        marker="o",
        markersize=5.0 if curve.exact or len(curve.x) < FEW else 0.0,
        markeredgewidth=0.0,
        clip_on=not curve.exact,
    )


def _limits(
    chart: Chart, contents: Sequence[tuple[Panel, list[_Stroke]]]
) -> list[tuple[float, float]]:
    """The lowest and the highest number that each panel shows."""
    spans = [_span(strokes) for _, strokes in contents]
    if chart.share_y:
        spans = [(min(low for low, _ in spans), max(high for _, high in spans))] * len(spans)
    limits = []
    for (panel, _), (low, high) in zip(contents, spans, strict=True):
        room = MARGIN * (high - low) or MARGIN * abs(high) or 1.0
        lowest = low - room if panel.lowest is None else panel.lowest
        limits.append((lowest, high + room if panel.highest is None else panel.highest))
    return limits


def _span(strokes: Sequence[_Stroke]) -> tuple[float, float]:
    values = []
    for curve, _, _ in strokes:
        values += [part for part in (curve.y, curve.low, curve.high) if part is not None]
        if curve.every is not None:
            values.append(np.percentile(curve.every.y, FRAMED))
    everything = np.concatenate(values)
    return float(everything.min()), float(everything.max())


def _names(kinds: Sequence[Kind]) -> list[str]:
    names = []
    for kind in kinds:
        short = kind.name if len(kind.name) <= MAX_NAME else f"…{kind.name[1 - MAX_NAME :]}"
        names.append(short if len(kind.runs) == 1 else f"{short} ({len(kind.runs)} runs)")
    return names


def _explanations(
    chart: Chart,
    kinds: Sequence[Kind],
    panels: Sequence[Sequence[_Stroke]],
    limits: Sequence[tuple[float, float]],
) -> list[str]:
    """What lines, bands and faint lines mean."""
    parts = []
    if any(len(kind.runs) > 1 for kind in kinds):
        runs = f"{len(kinds[0].runs)} runs" if len(kinds) == 1 else "the runs"
        parts += [f"lines: means of {runs}", "bands: from the lowest run to the highest"]
    elif chart.explain_smoothing and len(kinds) > 1:
        parts += ["faint: every row of the file", "lines: rolling means"]
    elif chart.explain_smoothing and (every := panels[0][0].curve.every) is not None:
        row = kinds[0].runs[0].metrics.row_is
        parts += [f"faint: every {row}", f"line: rolling mean of {window_of(every)} {row}s"]
    beyond = 0
    for strokes, (low, high) in zip(panels, limits, strict=True):
        for curve, _, _ in strokes:
            if curve.every is not None:
                beyond += int(((curve.every.y < low) | (curve.every.y > high)).sum())
    return [*parts, f"{beyond} faint points lie beyond the frame"] if beyond else parts
