"""The paper charts are drawn on: one look for all, and the same bytes for the same numbers."""

import io
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

WIDTH_IN, HEIGHT_IN, DPI = 12.0, 7.0, 100
INK, FAINT, GRID, FRAME = "#26241f", "#7a756e", "#e8e5df", "#b9b4ab"
LINE_WIDTH = 2.2
STEPS_LABEL = "learning agent-steps (millions)"
LABEL_GAP = 0.052
"""Smallest distance between two labels at the ends of lines, as a share of the panel's height."""


class EndLabel(NamedTuple):
    """A line's name, written where the line ends."""

    y: float
    text: str
    colour: str
    opacity: float = 1.0


def new_sheet(title: str, subtitle: str) -> Figure:
    """An empty chart under a title that says what one sees."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(0.04, 0.95, title, fontsize=18, fontweight="bold", color=INK, va="center")
    figure.text(0.04, 0.9, subtitle, fontsize=12, color=FAINT, va="center")
    return figure


def new_panels(
    figure: Figure, rows: int = 1, columns: int = 1, *, alike: bool = False, **grid: float
) -> list[Axes]:
    """Panels in the house style, row by row.

    Args:
        alike: the same y axis in all of them.
        grid: where they lie on the sheet, as matplotlib's GridSpec has it.
    """
    places = {"left": 0.075, "right": 0.98, "bottom": 0.095, "top": 0.83} | grid
    panels = figure.subplots(rows, columns, squeeze=False, sharey=alike, gridspec_kw=places)
    for axes in panels.flat:
        axes.grid(visible=True, color=GRID, linewidth=1.0)
        axes.set_axisbelow(True)
        axes.tick_params(colors=FAINT, labelsize=10.5, length=0, pad=6)
        axes.margins(x=0.0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(FRAME)
    return list(panels.flat)


def name_roles(figure: Figure, colours: Mapping[str, str]) -> None:
    """Say in the upper right corner which colour means what."""
    right = 0.98
    for name, colour in reversed(list(colours.items())):
        text = figure.text(
            right, 0.95, f"● {name}", fontsize=13, color=colour, va="center", ha="right"
        )
        right -= text.get_window_extent().width / (WIDTH_IN * DPI) + 0.02


def label_ends(axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Write names to the right of a panel, each beside its line's end, none over another."""
    low, high = axes.get_ylim()
    wanted = [(label.y - low) / (high - low) for label in labels]
    for label, share in zip(labels, spread(wanted, LABEL_GAP), strict=True):
        axes.annotate(
            label.text,
            (1.0, share),
            xycoords="axes fraction",
            xytext=(8, 0),
            textcoords="offset points",
            color=label.colour,
            alpha=label.opacity,
            fontsize=11,
            va="center",
            annotation_clip=False,
        )


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places as near as can be to the wanted ones, in their order, at least `gap` apart."""
    order = np.argsort(wanted, kind="stable")
    placed = np.array(wanted, dtype=np.float64)[order] - gap * np.arange(len(order))
    # Without the gaps the places must only not decrease: pool those that do (isotonic regression).
    pools: list[list[float]] = []
    for place in placed:
        pools.append([float(place)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    fitted = [float(np.mean(pool)) for pool in pools for _ in pool]
    shares = np.empty(len(order))
    shares[order] = np.array(fitted) + gap * np.arange(len(order))
    return [float(share) for share in shares]


def png_of(figure: Figure) -> bytes:
    """The chart as a PNG file's bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": None})
    return stream.getvalue()
