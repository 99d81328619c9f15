"""Charts of runs of any game, from the metrics that `train sb3` and `train rllib` write."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from estragon.show.charts.chart import COLOURS, Chart, Line, Panel, check_kinds, draw_chart
from estragon.show.charts.data import Axis, RunData, Table, group_runs
from estragon.show.charts.draw import Figures
from estragon.show.charts.figure import FAINT, ChartFigure
from estragon.support.errors import UserError
from estragon.support.files import read_json

MANIFEST, METRICS = "run.json", "run.metrics.jsonl"
COLUMNS = {
    "agent_steps": "timesteps_total",
    "updates": "training_iteration",
    "reward": "episode_reward_mean",
    "length": "episode_len_mean",
}
"""The column → the key of a metric; `lesson_name` is one of its own."""
LESSON = "lesson_name"
ALL_STEPS = Axis("agent_steps", 1.0, "steps of all agents", "{x:,.0f}")


class _Lesson(NamedTuple):
    steps: float
    name: str


def is_game_run(folder: Path) -> bool:
    """Whether the folder is of a run of `train sb3` or `train rllib`."""
    return (folder / METRICS).is_file() and not (folder / "metrics.csv").exists()


def read_game_run(folder: Path) -> RunData:
    """The run in a folder; a last line that is not finished is left out."""
    path = folder / METRICS
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("\n")]
        cells = {column: tuple(_text(row[key]) for row in rows) for column, key in COLUMNS.items()}
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: not the metrics of a run: {error}") from error
    if not rows:
        raise UserError(f"{path} has no rows yet; let the training run a little longer")
    cells[LESSON] = tuple(str(row.get(LESSON, "")) for row in rows)
    table = Table(path, cells, range(1, len(rows) + 1))
    return RunData(folder.absolute(), table, None, None, _about(folder / MANIFEST))


def draw_game_numbers(runs: Sequence[RunData]) -> Figures:
    """Reward and length, with a mark where each lesson of a curriculum begins."""
    kinds = group_runs(runs)
    check_kinds(kinds)
    figures: dict[str, ChartFigure] = {}
    missing = {}
    for column, title, unit in (
        ("reward", "Reward", "reward per episode"),
        ("length", "Length of an episode", "steps"),
    ):
        file = f"game_{column}.png"
        line = Line("metrics", column, "", COLOURS[0])
        chart = Chart(file, title, "", (Panel((line,), y=unit),), explain_smoothing=True)
        figure = draw_chart(chart, kinds, ALL_STEPS)
        if figure is None:
            missing[file] = "no episode ended"
            continue
        figures[file] = figure
        if len(runs) == 1:  # several runs change lessons at different times
            _mark_lessons(figure, runs[0])
    return Figures(figures, missing)


def _mark_lessons(figure: ChartFigure, run: RunData) -> None:
    axes = figure.axes[0]
    for lesson in _lessons(run):
        axes.axvline(lesson.steps, color=FAINT, lw=1.0, ls=":")
        axes.annotate(
            lesson.name,
            (lesson.steps, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4, -4),
            textcoords="offset points",
            va="top",
            color=FAINT,
            rotation=90,
        )


def _lessons(run: RunData) -> list[_Lesson]:
    """Where each lesson begins: as the manifest says, or the rows if the run has not ended."""
    begun = run.about.get("curriculum", {}).get("lessons")
    if begun:
        return [_Lesson(each["timesteps"], each["name"]) for each in begun]
    names, steps = run.metrics.texts(LESSON), [0.0, *run.metrics.along(ALL_STEPS).tolist()]
    pairs = zip(["", *names], names, strict=False)
    return [_Lesson(at, name) for at, (old, name) in zip(steps, pairs, strict=False) if name != old]


def _about(manifest: Path) -> dict[str, Any]:
    return read_json(manifest, dict[str, Any]) if manifest.is_file() else {}


def _text(value: Any) -> str:
    return "" if value is None else str(float(value))
