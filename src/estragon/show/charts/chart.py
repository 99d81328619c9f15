"""Turns the plan of a chart and some runs into a picture."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from estragon.show.charts.curves import Curve, exact_curve, noisy_curve
from estragon.show.charts.panel import Panel
from estragon.show.charts.paper import (
    INK,
    LABEL_IN,
    LETTER_IN,
    grid_of,
    key_below,
    key_beside,
    new_panels,
    new_sheet,
)
from estragon.show.charts.plan import Chart, Line, PanelPlan, one_line_a_panel
from estragon.show.charts.runs import Kind
from estragon.show.charts.table import Axis
from estragon.support.errors import UserError

COLOURS = (
    "#332288",
    "#44aa99",
    "#cc6677",
    "#999933",
    "#882255",
    "#88ccee",
    "#117733",
    "#aa4499",
    "#ddcc77",
)
"""For what is not a role: Paul Tol's muted scheme, which colour-blind people can tell apart."""


FRAMED = (1.0, 99.0)
"""The frame holds every line, and of the noise behind it what lies between these percentiles."""
MARGIN = 0.05
LONGEST_NAME = 70
"""Letters of a run's name that fit the sheet; of a longer one the end is shown."""


class Stroke(NamedTuple):
    """A curve and how it is drawn."""

    curve: Curve
    label: str
    colour: str
    line: Line


class Drawn(NamedTuple):
    """A panel's plan, and what there is to draw of it."""

    plan: PanelPlan
    strokes: list[Stroke]


def draw_chart(chart: Chart, kinds: Sequence[Kind], axis: Axis) -> Figure | None:
    """The picture; None where the runs have no numbers for it.

    One kind of run is drawn in the plan's own colours, several in a colour each.
    """
    comparing = len(kinds) > 1
    chart = one_line_a_panel(chart) if comparing else chart
    contents = [Drawn(plan, _strokes(plan, kinds, axis)) for plan in chart.panels]
    contents = [drawn for drawn in contents if drawn.strokes]
    if not contents:
        return None
    frames = _frames(chart, contents)
    words = [chart.subtitle, chart.hint, *_how_drawn(chart, kinds, contents, frames)]
    rows, _ = grid_of(len(contents))
    sheet = new_sheet(chart.title, [part for part in words if part], rows)
    if comparing:
        key_below(sheet, dict(zip(_names(kinds), COLOURS, strict=False)))
    elif chart.key:
        used = {stroke.colour for drawn in contents for stroke in drawn.strokes}
        key_beside(sheet, {name: c for name, c in chart.key.items() if c in used})
    named = not (comparing or chart.key)
    longest = max(len(stroke.label) for drawn in contents for stroke in drawn.strokes)
    room = LABEL_IN + LETTER_IN * longest if named and longest else 0.0
    titled = any(drawn.plan.title for drawn in contents)
    places = new_panels(sheet, len(contents), titled=titled, right_in=room)
    for place, (plan, strokes), frame in zip(places, contents, frames, strict=True):
        panel = Panel(place.axes)
        panel.axes.xaxis.set_major_formatter(axis.format)
        if plan.zero:
            panel.axes.axhline(0.0, color=INK, lw=0.8, alpha=0.5)
        if plan.format:
            panel.axes.yaxis.set_major_formatter(plan.format)
        for curve, label, colour, line in strokes:
            name = label if named else ""
            panel.draw(curve, name, colour, line.style, pale=line.background)
        x = axis.label if place.is_lowest else ""
        panel.finish(title=plan.title, x=x, y=plan.y, frame=frame)
    return sheet.figure


def check_kinds(kinds: Sequence[Kind]) -> None:
    """Refuse more kinds of runs than there are colours."""
    if len(kinds) > len(COLOURS):
        raise UserError(
            f"{len(kinds)} kinds of runs in one picture are too many, {len(COLOURS)} can be told "
            f"apart: {', '.join(kind.name for kind in kinds)}"
        )


def _strokes(plan: PanelPlan, kinds: Sequence[Kind], axis: Axis) -> list[Stroke]:
    strokes = []
    for line in plan.lines:
        for kind, colour in zip(kinds, COLOURS, strict=False):
            if (curve := _curve(line, kind, axis)) is not None:
                own = line.colour if len(kinds) == 1 else colour
                strokes.append(Stroke(curve, line.label, own, line))
    return strokes


def _curve(line: Line, kind: Kind, axis: Axis) -> Curve | None:
    """What all runs of a kind that have such numbers say together."""
    runs = [run.points(line.source, line.column, axis) for run in kind.runs]
    runs = [points._replace(y=line.times * points.y) for points in runs if len(points.x)]
    return noisy_curve(runs) if line.source == "metrics" else exact_curve(runs)


def _frames(chart: Chart, contents: Sequence[Drawn]) -> list[tuple[float, float]]:
    """The lowest and the highest number that each panel shows."""
    spans = [_span(drawn.strokes) for drawn in contents]
    if chart.alike:
        spans = [(min(low for low, _ in spans), max(high for _, high in spans))] * len(spans)
    frames = []
    for drawn, (low, high) in zip(contents, spans, strict=True):
        room = MARGIN * (high - low) or MARGIN * abs(high) or 1.0
        lowest, highest = drawn.plan.lowest, drawn.plan.highest
        frames.append(
            (low - room if lowest is None else lowest, high + room if highest is None else highest)
        )
    return frames


def _span(strokes: Sequence[Stroke]) -> tuple[float, float]:
    values = []
    for stroke in strokes:
        curve = stroke.curve
        values += [part for part in (curve.y, curve.low, curve.high) if part is not None]
        if curve.every is not None:
            values.append(np.percentile(curve.every.y, FRAMED))
    everything = np.concatenate(values)
    return float(everything.min()), float(everything.max())


def _names(kinds: Sequence[Kind]) -> list[str]:
    names = []
    for kind in kinds:
        short = kind.name if len(kind.name) <= LONGEST_NAME else f"…{kind.name[1 - LONGEST_NAME :]}"
        names.append(short if len(kind.runs) == 1 else f"{short} ({len(kind.runs)} runs)")
    return names


def _how_drawn(
    chart: Chart,
    kinds: Sequence[Kind],
    contents: Sequence[Drawn],
    frames: Sequence[tuple[float, float]],
) -> list[str]:
    """The words that say what lines, bands and faint lines are."""
    words = []
    if any(len(kind.runs) > 1 for kind in kinds):
        runs = f"{len(kinds[0].runs)} runs" if len(kinds) == 1 else "the runs"
        words += [f"lines: means of {runs}", "bands: from the lowest run to the highest"]
    elif chart.tells_window and len(kinds) > 1:
        words += ["faint: every row of the file", "lines: rolling means"]
    elif chart.tells_window and (every := contents[0].strokes[0].curve.every) is not None:
        row = kinds[0].runs[0].metrics.row_is
        words += [f"faint: every {row}", f"line: rolling mean of {every.window} {row}s"]
    beyond = 0
    for drawn, (low, high) in zip(contents, frames, strict=True):
        for stroke in drawn.strokes:
            if (every := stroke.curve.every) is not None:
                beyond += int(((every.y < low) | (every.y > high)).sum())
    return [*words, f"{beyond} faint points lie beyond the frame"] if beyond else words
