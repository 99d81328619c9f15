"""The table of everybody against everybody."""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from estragon.show.charts.cross_play import CrossPlay
from estragon.show.charts.paper import FAINT, INK, new_panels, new_sheet
from estragon.show.drawing.palette import HIDER, SEEKER

WINS = LinearSegmentedColormap.from_list("wins", [HIDER, "#f7f5f0", SEEKER])
"""From the hider always wins to the seeker always wins."""


def draw_cross_play(runs: Sequence[CrossPlay]) -> Figure | None:
    """How often the seeker of each stage (rows) beats the hider of each stage (columns).

    Of several runs the mean; None where they were judged at different stages, or never.
    """
    if not runs or len({tuple(stage.name for stage in run.stages) for run in runs}) > 1:
        return None
    episodes = sum(run.episodes for run in runs)
    of_runs = f", mean of {len(runs)} runs" if len(runs) > 1 else ""
    sheet = new_sheet(
        "Who beats whom: how often the seeker wins",
        [
            f"in % of {episodes} matches{of_runs}",
            "red: the seeker wins, blue: the hider wins",
            "a stage is a share of the training",
        ],
    )
    axes = new_panels(sheet)[0].axes
    rates = 100.0 * np.mean([run.seeker_win_rate for run in runs], axis=0)
    axes.imshow(rates, cmap=WINS, vmin=0.0, vmax=100.0, aspect="auto")
    names = [stage.name for stage in runs[0].stages]
    places = range(len(names))
    size = float(np.clip(150.0 / len(names), 6.0, 15.0))
    for row in places:
        for column in places:
            rate = rates[row, column]
            ink = "white" if abs(rate - 50.0) > 32.0 else INK
            axes.text(
                column, row, f"{rate:.0f}", ha="center", va="center", color=ink, fontsize=size
            )
    axes.set_xticks(places, names)
    axes.set_yticks(places, names)
    axes.grid(visible=False)
    edges = np.arange(1, len(names)) - 0.5
    axes.hlines(edges, -0.5, len(names) - 0.5, color="white", lw=2)
    axes.vlines(edges, -0.5, len(names) - 0.5, color="white", lw=2)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlabel("hider of this stage", color=FAINT, fontsize=12, labelpad=10)
    axes.set_ylabel("seeker of this stage", color=FAINT, fontsize=12, labelpad=10)
    return sheet.figure
