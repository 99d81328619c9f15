"""How well a model plays over the ranges of one or two parameters: bars, or a heat map."""

import itertools
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from estragon.show.charts.chart import COLOURS
from estragon.show.charts.figure import FAINT, INK, ChartFigure, new_figure

RANGE = LinearSegmentedColormap.from_list("cells", ["#f7f5f0", COLOURS[1], COLOURS[0]])
TITLES = {"return": "Mean return", "success_rate": "Success rate"}


def draw_cells(result: dict[str, Any]) -> ChartFigure:
    """The result of `estragon eval game`; a panel of returns, and one of success if known."""
    axes, measures = result["axes"], result["cells"]
    names = " and ".join(axis["name"] for axis in axes)
    about = [f"{result['model']}", f"{result['episodes']} episodes"]
    figure, panels = new_figure(f"How well it plays over {names}", about, len(measures))
    for panel, (measure, cells) in zip(panels, measures.items(), strict=True):
        values = np.array(cells, float)
        panel.set_title(TITLES[measure], color=INK, fontsize=13, loc="left")
        panel.grid(visible=False)
        text = "{:.0%}" if measure == "success_rate" else "{:.2f}"
        span = (0.0, 1.0) if measure == "success_rate" else _span(values)
        if len(axes) == 1:
            panel.bar(range(len(values)), np.nan_to_num(values), color=COLOURS[1])
        else:
            # The first parameter goes upwards, the second to the right.
            panel.imshow(
                values, cmap=RANGE, vmin=span[0], vmax=span[1], aspect="auto", origin="lower"
            )
            _tick(panel, "y", axes[0])
        _tick(panel, "x", axes[-1])
        for place in itertools.product(*map(range, values.shape)):
            value = values[place]
            x, y = (place[0], max(value, 0.0)) if len(axes) == 1 else (place[1], place[0])
            if np.isfinite(value):
                dark = len(axes) == 2 and value > span[0] + 0.6 * (span[1] - span[0])
                panel.text(
                    x,
                    y,
                    text.format(value),
                    ha="center",
                    va="bottom" if len(axes) == 1 else "center",
                    color="white" if dark else INK,
                )
    return figure


def _span(values: np.ndarray) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return low, max(high, low + 1e-9)


def _tick(panel: Axes, direction: str, axis: dict[str, Any]) -> None:
    """Name the edges of the cells along an axis."""
    edges = axis["edges"]
    places, labels = np.arange(len(edges)) - 0.5, [f"{edge:.3g}" for edge in edges]
    if direction == "x":
        panel.set_xticks(places, labels)
        panel.set_xlabel(axis["name"], color=FAINT, fontsize=12)
    else:
        panel.set_yticks(places, labels)
        panel.set_ylabel(axis["name"], color=FAINT, fontsize=12)
