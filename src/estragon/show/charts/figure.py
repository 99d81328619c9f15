"""The look of all charts: header, panels, and labels at the ends of lines."""

import functools
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from estragon.support.errors import UserError

WIDTH_IN, HEIGHT_IN, DPI = 12.0, 7.0, 100
ROW_IN = 2.4
"""A figure with more than two rows of panels grows by this for each."""
MAX_COLUMNS, MAX_ROWS = 3, 6
EDGE_IN, TITLE_IN, SUBTITLE_IN, LINE_IN = 0.48, 0.35, 0.7, 0.26
"""The left edge of text, and how far below the top its lines are."""
HEADER_GAP_IN = 0.2
MAX_LETTERS = 124
"""Of a line of the subtitle, or of the legend."""
INK, FAINT, GRID, FRAME = "#26241f", "#7a756e", "#e8e5df", "#b9b4ab"
LABEL_GAP_IN = 0.26
"""Smallest distance between two labels at the ends of lines."""


class EndLabel(NamedTuple):
    """A line's name, written where the line ends."""

    y: float
    text: str
    colour: str
    opacity: float = 1.0


class ChartFigure(Figure):
    """A figure whose end labels are placed when it is encoded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.end_labels: dict[Axes, list[tuple[EndLabel, Annotation]]] = {}


def new_figure(
    title: str,
    subtitle: Sequence[str],
    panels: int = 1,
    *,
    legend: Mapping[str, str] | None = None,
    legend_below: bool = False,
) -> tuple[ChartFigure, list[Axes]]:
    """A figure with empty panels, laid out by matplotlib when it is saved.

    The parts of the subtitle share a line as long as they fit. The legend, names and their colours,
    is in the upper right corner, or below the subtitle.
    """
    columns = 2 if panels == 4 else min(panels, MAX_COLUMNS)
    rows = -(-panels // columns)
    if rows > MAX_ROWS:
        raise UserError(f"{panels} panels do not fit one figure; compare fewer things at once")
    height = HEIGHT_IN + ROW_IN * max(0, rows - 2)
    figure = ChartFigure(figsize=(WIDTH_IN, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    left = EDGE_IN / WIDTH_IN
    figure.text(
        left, 1.0 - TITLE_IN / height, title, va="center", fontsize=18, fontweight="bold", color=INK
    )
    down = SUBTITLE_IN
    for line in _joined(subtitle):
        figure.text(left, 1.0 - down / height, line, va="center", fontsize=12, color=FAINT)
        down += LINE_IN
    if legend:
        longest = max(map(len, legend)) + 6
        across = min(len(legend), max(1, MAX_LETTERS // longest)) if legend_below else len(legend)
        dot = functools.partial(Line2D, [], [], marker="o", markersize=9, lw=0.0)
        figure.legend(
            [dot(color=colour) for colour in legend.values()],
            list(legend),
            loc="upper left" if legend_below else "upper right",
            bbox_to_anchor=(left, 1.0 - (down - 0.07) / height) if legend_below else (1.0, 1.0),
            ncols=across,
            labelcolor="linecolor",
            fontsize=12,
            frameon=False,
            borderaxespad=0.0 if legend_below else 1.2,
            borderpad=0.0,
            handlelength=0.9,
            handletextpad=0.4,
        ).set_in_layout(False)
        if legend_below:
            down += LINE_IN * -(-len(legend) // across) + 0.05
    top = 1.0 - (down + HEADER_GAP_IN - LINE_IN / 2.0) / height
    layout = ConstrainedLayoutEngine(rect=(0.02, 0.02, 0.965, top - 0.02), wspace=0.06, hspace=0.06)
    figure.set_layout_engine(layout)
    axes = [figure.add_subplot(rows, columns, number + 1) for number in range(panels)]
    for number, each in enumerate(axes):
        _style(each)
        each.set_label("" if number + columns < panels else "lowest")
    return figure, axes


def is_lowest(axes: Axes) -> bool:
    """Whether no panel is below."""
    return axes.get_label() == "lowest"


def _joined(parts: Sequence[str]) -> list[str]:
    """Parts of a text on as few lines as they need."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 2 <= MAX_LETTERS:
            lines[-1] += f"; {part}"
        else:
            lines.append(part)
    return lines


def _style(axes: Axes) -> None:
    axes.grid(visible=True, color=GRID, linewidth=1.0)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelsize=10.5, length=0, pad=6)
    axes.margins(x=0.0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FRAME)


def label_axes(axes: Axes, *, title: str = "", x: str = "", y: str = "") -> None:
    """Write a panel's title and the names of its axes."""
    axes.set_title(title, color=INK, fontsize=13, loc="left", pad=10)
    axes.set_xlabel(x, color=FAINT, fontsize=11, labelpad=8)
    axes.set_ylabel(y, color=FAINT, fontsize=11, labelpad=8)


def label_ends(figure: ChartFigure, axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Write names to the right of a panel, each beside its line's end."""
    notes = [
        axes.annotate(
            label.text,
            (1.0, 0.5),
            xycoords="axes fraction",
            xytext=(8, 0),
            textcoords="offset points",
            color=label.colour,
            alpha=label.opacity,
            fontsize=11,
            va="center",
            annotation_clip=False,
        )
        for label in labels
    ]
    figure.end_labels[axes] = list(zip(labels, notes, strict=True))


def place_labels(figure: ChartFigure) -> None:
    """Lay the figure out, then move labels apart, as far as the panels' height needs."""
    if not any(figure.end_labels.values()):
        return
    figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
    figure.set_layout_engine("none")
    for axes, pairs in figure.end_labels.items():
        low, high = axes.get_ylim()
        wanted = [(label.y - low) / (high - low) for label, _ in pairs]
        gap = LABEL_GAP_IN * DPI / axes.get_window_extent().height
        for (_, note), share in zip(pairs, spread(wanted, gap), strict=True):
            note.xy = (1.0, share)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places as near as possible to the wanted ones, in their order, at least `gap` apart."""
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


def encode_figure(figure: ChartFigure) -> bytes:
    """The bytes of a PNG file."""
    place_labels(figure)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": None})
    return stream.getvalue()
