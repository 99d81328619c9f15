"""Every chart of training runs, from the files in their folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from estragon.show.canvas import HIDER, SEEKER
from estragon.show.charts.chart import check_kinds, draw_chart
from estragon.show.charts.data import CrossPlay, RunData, common_axis, group_runs, read_run
from estragon.show.charts.definitions import all_charts
from estragon.show.charts.figure import FAINT, INK, ChartFigure, encode_figure, new_figure
from estragon.show.charts.occupancy import draw_occupancy, occupancy_of_logs, occupancy_of_run
from estragon.support.errors import UserError
from estragon.support.files import write_whole

CROSS_PLAY, PLACES = "cross_play.png", "places.png"
WINS = LinearSegmentedColormap.from_list("wins", [HIDER, "#f7f5f0", SEEKER])
"""From the hider always wins to the seeker always wins."""


class Figures(NamedTuple):
    """Charts that are not written yet."""

    figures: dict[str, ChartFigure]
    """By the name of the file."""
    missing: dict[str, str]
    """Why a chart could not be drawn."""


def draw_charts(run: Path, charts: Path) -> list[Path]:
    """Write the charts of the run in a folder as PNGs; returns those it has the files for."""
    runs = [read_run(run)]
    figures = {**draw_numbers(runs).figures, **draw_run_places(runs).figures}
    return [write_figure(charts / name, figure) for name, figure in figures.items()]


def draw_numbers(runs: Sequence[RunData]) -> Figures:
    """The charts of numbers; with several runs, all of them in each chart."""
    kinds, axis = group_runs(runs), common_axis(runs)
    check_kinds(kinds)
    figures = {chart.file: draw_chart(chart, kinds, axis) for chart in all_charts(runs, axis)}
    played = [run.cross_play for run in runs if run.cross_play is not None]
    if len(kinds) == 1:
        figures[CROSS_PLAY] = _draw_cross_play(played)
    drawn = {name: figure for name, figure in figures.items() if figure is not None}
    missing = {name: "no numbers" for name in figures if name not in drawn}
    if len(kinds) > 1:
        missing[CROSS_PLAY] = "it shows one kind of run at a time"
    elif len(played) > 1 and CROSS_PLAY in missing:
        missing[CROSS_PLAY] = "the runs were tested at different stages"
    return Figures(drawn, missing)


def draw_run_places(runs: Sequence[RunData]) -> Figures:
    """The chart of where a run's newest policies spend their time, playing each other."""
    if len(runs) > 1:
        return Figures({}, {PLACES: "it shows one run at a time"})
    try:
        occupancy, setting = occupancy_of_run(runs[0].place, runs[0].about)
    except UserError as error:
        return Figures({}, {PLACES: str(error)})
    return Figures({PLACES: draw_occupancy(occupancy, setting)}, {})


def draw_logged_places(folder: Path) -> Figures:
    """The chart of where agents were in logged matches."""
    return Figures({PLACES: draw_occupancy(*occupancy_of_logs(folder))}, {})


def write_figure(path: Path, figure: ChartFigure) -> Path:
    """Write one chart; an existing file is replaced."""
    write_whole(path, encode_figure(figure))
    return path


def _draw_cross_play(runs: Sequence[CrossPlay]) -> ChartFigure | None:
    """How often the seeker of each stage (rows) beats the hider of each stage (columns).

    Of several runs the mean; None where they were tested at different stages, or never.
    """
    if not runs or len({tuple(stage.name for stage in run.stages) for run in runs}) > 1:
        return None
    of_runs = f", mean of {len(runs)} runs" if len(runs) > 1 else ""
    figure, (axes,) = new_figure(
        "Who beats whom: how often the seeker wins",
        [
            f"in % of {sum(run.episodes for run in runs)} matches{of_runs}",
            "red: the seeker wins, blue: the hider wins",
            "a stage is a share of the training",
        ],
    )
    rates = 100.0 * np.mean([run.seeker_win_rate for run in runs], axis=0)
    axes.imshow(rates, cmap=WINS, vmin=0.0, vmax=100.0, aspect="auto")
    names = [stage.name for stage in runs[0].stages]
    size = float(np.clip(150.0 / len(names), 6.0, 15.0))
    for (row, column), rate in np.ndenumerate(rates):
        ink = "white" if abs(rate - 50.0) > 32.0 else INK
        axes.text(column, row, f"{rate:.0f}", ha="center", va="center", color=ink, fontsize=size)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=False)
    edges = np.arange(1, len(names)) - 0.5
    axes.hlines(edges, -0.5, len(names) - 0.5, color="white", lw=2)
    axes.vlines(edges, -0.5, len(names) - 0.5, color="white", lw=2)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlabel("hider of this stage", color=FAINT, fontsize=12, labelpad=10)
    axes.set_ylabel("seeker of this stage", color=FAINT, fontsize=12, labelpad=10)
    return figure
