"""Every chart of training runs, from the files in their folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from estragon.show.charts.chart import check_kinds, draw_chart
from estragon.show.charts.columns import column_charts
from estragon.show.charts.cross_play_chart import draw_cross_play
from estragon.show.charts.learning import losses_chart, reward_terms_chart
from estragon.show.charts.paper import png_of
from estragon.show.charts.places_chart import draw_places
from estragon.show.charts.places_of import Seen, places_of_run
from estragon.show.charts.runs import Run, common_axis, read_run, sort_runs
from estragon.show.charts.strength import elo_chart, strength_charts
from estragon.support.errors import UserError
from estragon.support.files import write_whole

CROSS_PLAY, PLACES = "cross_play.png", "places.png"


class Pictures(NamedTuple):
    """Charts that are not on the disk yet."""

    figures: dict[str, Figure]
    """By the name of the file."""
    missing: dict[str, str]
    """Why a chart could not be drawn."""


def draw_charts(run: Path, charts: Path) -> list[Path]:
    """Write PNGs into the folder `charts`; returns those for which the run has numbers.

    Args:
        run: the folder of a training run. `metrics.csv` must be there; `strength.csv`,
            `cross_play.json` and policies come later, and what shows them is left out until then.
        charts: made if it does not exist.
    """
    runs = [read_run(run)]
    figures = {**draw_numbers(runs).figures, **draw_matches(runs).figures}
    return [write_picture(charts / name, figure) for name, figure in figures.items()]


def draw_numbers(runs: Sequence[Run]) -> Pictures:
    """The charts of what was counted; with several runs, all of them in each chart."""
    kinds, axis = sort_runs(runs), common_axis(runs)
    check_kinds(kinds)
    plans = [
        *strength_charts(runs, axis),
        elo_chart(runs),
        reward_terms_chart(runs),
        losses_chart(),
        *column_charts(),
    ]
    figures = {plan.file: draw_chart(plan, kinds, axis) for plan in plans}
    played = [run.cross_play for run in runs if run.cross_play is not None]
    if len(kinds) == 1:
        figures[CROSS_PLAY] = draw_cross_play(played)
    drawn = {name: figure for name, figure in figures.items() if figure is not None}
    missing = {name: "no numbers" for name in figures if name not in drawn}
    if len(kinds) > 1:
        missing[CROSS_PLAY] = "it shows one kind of run at a time"
    elif len(played) > 1 and CROSS_PLAY in missing:
        missing[CROSS_PLAY] = "the runs were judged at different stages"
    return Pictures(drawn, missing)


def draw_matches(runs: Sequence[Run]) -> Pictures:
    """The chart of where a run's newest policies spend their time, playing each other."""
    if len(runs) > 1:
        return Pictures({}, {PLACES: "it shows one run at a time"})
    try:
        return draw_seen(places_of_run(runs[0].place, runs[0].about))
    except UserError as error:
        return Pictures({}, {PLACES: str(error)})


def draw_seen(seen: Seen) -> Pictures:
    """The chart of where agents were."""
    return Pictures({PLACES: draw_places(*seen)}, {})


def write_picture(path: Path, figure: Figure) -> Path:
    """Write one chart; one of that name is replaced."""
    write_whole(path, png_of(figure))
    return path
