"""The learning curve in a film: how often each role wins, growing as the film goes on."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from estragon.show.drawing.palette import ROLES
from estragon.show.film.facts import RoleCurve, steps_text
from estragon.show.film.layer import FAINT, INK, TRACK, Layer

HEAD, ROW, FOOT = 21.0, 16.0, 15.0
"""Heights of the heading, of a curve's name, and of what is below the plot."""
GUTTER, MARGIN = 30.0, 12.0


class Frame(NamedTuple):
    """Where on the layer a curve is drawn."""

    left: float
    top: float
    right: float
    bottom: float


def draw_curves(
    layer: Layer, frame: Frame, curves: Sequence[RoleCurve], agent_steps: float
) -> None:
    """A panel with the curves up to a moment of the training, and their values there."""
    layer.panel(*frame)
    left, right = frame.left + MARGIN, frame.right - MARGIN
    layer.write(left, frame.top + HEAD, "wins against the bots", 12.0, FAINT)
    for row, curve in enumerate(curves):
        baseline = frame.top + HEAD + (row + 1) * ROW
        layer.cube(left + 4.0, baseline - 4.0, curve.role, 8.0)
        layer.write(left + 13.0, baseline, f"{curve.role} beats {curve.bot}", 12.0, INK)
        layer.write(right, baseline, f"{curve.at(agent_steps):.0%}", 13.0, INK, anchor="rs")
    top = frame.top + HEAD + len(curves) * ROW + 14.0
    plot = Frame(left + GUTTER, top, right - 5.0, frame.bottom - FOOT - 8.0)
    whole = max(1.0, *(curve.agent_steps[-1] for curve in curves))
    _draw_axes(layer, plot, whole)
    for curve in curves:
        _draw_curve(layer, plot, curve, agent_steps, whole)


def _draw_axes(layer: Layer, plot: Frame, whole: float) -> None:
    for share in (0.0, 0.5, 1.0):
        height = plot.bottom + (plot.top - plot.bottom) * share
        layer.line(np.array([[plot.left, height], [plot.right, height]]), 1.0, TRACK)
        layer.write(plot.left - 6.0, height, f"{share:.0%}", 9.5, FAINT, anchor="rm")
    below = plot.bottom + FOOT
    layer.write(plot.left, below, "0", 9.5, FAINT, anchor="ls")
    layer.write(plot.right, below, steps_text(whole), 9.5, FAINT, anchor="rs")


def _draw_curve(
    layer: Layer, plot: Frame, curve: RoleCurve, agent_steps: float, whole: float
) -> None:
    until = min(agent_steps, curve.agent_steps[-1])
    steps = [step for step in curve.agent_steps if step < until] + [until]
    rates = np.array([curve.at(step) for step in steps])
    across = plot.left + (plot.right - plot.left) * np.array(steps) / whole
    points = np.stack([across, plot.bottom + (plot.top - plot.bottom) * rates], axis=1)
    if len(points) > 1:
        layer.line(points, 2.2, ROLES[curve.role])
    x, y = points[-1]
    layer.disc(x, y, 4.0, ROLES[curve.role])
