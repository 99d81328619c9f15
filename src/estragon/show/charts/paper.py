"""The paper charts are drawn on: one look for all, and the same bytes for the same numbers."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from estragon.support.errors import UserError

WIDTH_IN, HEIGHT_IN, DPI = 12.0, 7.0, 100
ROW_IN = 2.4
"""A sheet with more than two rows of panels grows by this for each."""
GRIDS = ((1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3), (4, 3), (5, 3), (6, 3))
"""Rows and columns of panels; the smallest that holds them is taken."""
EDGE_IN, TITLE_IN, SUBTITLE_IN, KEY_IN, LINE_IN = 0.48, 0.35, 0.7, 0.32, 0.26
"""How far from the left edge text begins, and how far below one another its lines are."""
LEFT_IN, RIGHT_IN, BOTTOM_IN, ABOVE_IN = 1.0, 0.24, 0.68, 0.49
TITLED_IN = 0.28
"""What titles of panels add above them."""
BETWEEN_IN, BELOW_IN = 0.95, 0.85
"""Between two panels side by side, and between two rows."""
LETTER_IN, LABEL_IN = 0.085, 0.1
"""A letter of a label at the end of a line, and the way from the line to the label."""
INK, FAINT, GRID, FRAME = "#26241f", "#7a756e", "#e8e5df", "#b9b4ab"
LINE_WIDTH = 2.2
LABEL_GAP_IN = 0.26
"""Smallest distance between two labels at the ends of lines."""


class EndLabel(NamedTuple):
    """A line's name, written where the line ends."""

    y: float
    text: str
    colour: str
    opacity: float = 1.0


class Place(NamedTuple):
    """Axes on a sheet."""

    axes: Axes
    is_lowest: bool
    """Nothing is below."""


@dataclass
class Sheet:
    """A picture, and how far down from its top it is written on, in inches."""

    figure: Figure
    written_in: float


def grid_of(panels: int) -> tuple[int, int]:
    """Rows and columns for so many panels."""
    for rows, columns in GRIDS:
        if rows * columns >= panels:
            return rows, columns
    raise UserError(f"a picture of {panels} panels is too much; compare fewer things at once")


def new_sheet(title: str, subtitle: Sequence[str], rows: int = 1) -> Sheet:
    """An empty chart for so many rows of panels, under a title that says what one sees.

    The parts of the subtitle are kept on one line as long as they fit.
    """
    height = HEIGHT_IN + ROW_IN * max(0, rows - 2)
    figure = Figure(figsize=(WIDTH_IN, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    _write(figure, TITLE_IN, title, fontsize=18, fontweight="bold", color=INK)
    down = SUBTITLE_IN
    line = _write(figure, down, subtitle[0], fontsize=12, color=FAINT)
    for part in subtitle[1:]:
        before = line.get_text()
        line.set_text(f"{before}; {part}")
        if EDGE_IN + _width(line) > WIDTH_IN - RIGHT_IN:
            line.set_text(before)
            down += LINE_IN
            line = _write(figure, down, part, fontsize=12, color=FAINT)
    return Sheet(figure, down)


def key_beside(sheet: Sheet, colours: Mapping[str, str]) -> None:
    """Say in the upper right corner which colour means what."""
    right = WIDTH_IN - RIGHT_IN
    for name, colour in reversed(list(colours.items())):
        text = _write(sheet.figure, TITLE_IN, f"● {name}", fontsize=13, color=colour, ha="right")
        text.set_x(right / WIDTH_IN)
        right -= _width(text) + 0.24


def key_below(sheet: Sheet, colours: Mapping[str, str]) -> None:
    """Say under the subtitle which colour means what."""
    sheet.written_in += KEY_IN
    left = EDGE_IN
    for name, colour in colours.items():
        text = _write(sheet.figure, sheet.written_in, f"● {name}", fontsize=12, color=colour)
        width = _width(text)
        if left > EDGE_IN and left + width > WIDTH_IN - RIGHT_IN:
            left = EDGE_IN
            sheet.written_in += LINE_IN
            text.set_y(_from_top(sheet.figure, sheet.written_in))
        text.set_x(left / WIDTH_IN)
        left += width + 0.28


def new_panels(
    sheet: Sheet, count: int = 1, *, titled: bool = False, right_in: float = 0.0
) -> list[Place]:
    """Panels in the house style, row by row, with `right_in` kept free to the right of each."""
    rows, columns = grid_of(count)
    height = sheet.figure.get_figheight()
    top = sheet.written_in + ABOVE_IN + (TITLED_IN if titled else 0.0)
    across = (WIDTH_IN - LEFT_IN - RIGHT_IN + BETWEEN_IN) / columns
    down = (height - top - BOTTOM_IN + BELOW_IN) / rows
    width, tall = across - BETWEEN_IN - right_in, down - BELOW_IN
    places = []
    for index in range(count):
        row, column = divmod(index, columns)
        left, bottom = LEFT_IN + column * across, height - top - tall - row * down
        sides = (left / WIDTH_IN, bottom / height, width / WIDTH_IN, tall / height)
        axes = sheet.figure.add_axes(sides)
        _style(axes)
        places.append(Place(axes, is_lowest=index + columns >= count))
    return places


def label_ends(axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Write names to the right of a panel, each beside its line's end, none over another."""
    low, high = axes.get_ylim()
    wanted = [(label.y - low) / (high - low) for label in labels]
    height_in = axes.get_window_extent().height / DPI
    for label, share in zip(labels, spread(wanted, LABEL_GAP_IN / height_in), strict=True):
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


def _write(figure: Figure, down_in: float, words: str, **looks: Any) -> Text:
    """Write a line at the left edge."""
    return figure.text(EDGE_IN / WIDTH_IN, _from_top(figure, down_in), words, va="center", **looks)


def _width(text: Text) -> float:
    """How wide a line is, in inches."""
    return text.get_window_extent().width / DPI


def _from_top(figure: Figure, inches: float) -> float:
    return 1.0 - inches / figure.get_figheight()


def _style(axes: Axes) -> None:
    axes.grid(visible=True, color=GRID, linewidth=1.0)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelsize=10.5, length=0, pad=6)
    axes.margins(x=0.0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FRAME)
