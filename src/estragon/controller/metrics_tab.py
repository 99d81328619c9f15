"""Metrics: live charts of any number of any runs, and the latest rows as a table."""

import asyncio
import csv
import io
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple

from nicegui import ui

from estragon.controller.runs import Run
from estragon.controller.series import JSON_STEPS, MetricsFile, Points, smooth, thin
from estragon.controller.tab import LINES, Tab, button, chart, empty_state, problems_shown

SETTINGS = "metrics_settings.json"
PREFERRED = ("episode_reward_mean", "seeker_win_rate", "reward_mean")
ROWS = 20
MOST_RUNS = 8
REDRAW_SEC = 5.0
"""Until what has grown is drawn again: drawing takes time from a trainer on the same machine."""
COLUMNS = {
    "training_iteration": "iteration",
    "timesteps_total": "steps",
    "episodes_total": "episodes",
    "episode_reward_mean": "reward",
    "episode_reward_min": "least",
    "episode_reward_max": "most",
    "episode_len_mean": "length",
    "env_throughput": "steps/s",
}
CSV_COLUMNS = {
    "episode": "episode",
    "agent_steps": "steps",
    "winner": "winner",
    "terminal_reason": "end",
    "seeker_reward_sum": "seeker's reward",
    "hider_reward_sum": "hider's reward",
    "duration_sec": "seconds",
}


class MetricsTab(Tab):
    """Charts of the runs."""

    def build(self) -> None:
        """Create its elements."""
        self._runs: list[Run] = []
        self._known: set[str] = set()
        """Runs that were seen before; one that begins is drawn, too."""
        self._filling = False
        """Whether the page itself changes a choice, not the user."""
        self._drawn: Any = None
        """Sizes of the files and what was chosen when the chart was drawn."""
        self._drawn_choice: Any = None
        self._drawn_at = 0.0
        settings: dict[str, Any] = {}
        with problems_shown():
            settings = self.project.read_settings(SETTINGS)
        self._empty = ui.column().classes("w-full")
        with self._empty:
            empty_state("No runs yet", "Start one in Train; its curve grows here while it trains.")
        with ui.column().classes("w-full gap-2") as self._content:
            with ui.row().classes("w-full items-center"):
                self._chosen = ui.select({}, multiple=True, label="Runs", value=[])
                self._chosen.props("use-chips dense").classes("grow basis-64")
                self._metric = ui.select([], label="Metric", with_input=True)
                self._metric.props("dense").classes("grow basis-64")
            with ui.row().classes("w-full items-center"):
                ui.label("Smoothing").classes("text-sm")
                share = settings.get("smoothing", 0.0)
                share = share if isinstance(share, int | float) else 0.0
                self._smoothing = ui.slider(min=0.0, max=0.2, step=0.005, value=share)
                self._smoothing.classes("w-40")
                self._log = ui.switch("log scale", value=bool(settings.get("log", False)))
                ui.space()
                button("CSV", self._download).props("icon=download")
            self._chart = ui.echart(_options()).classes("w-full h-96")
            self._took = ui.label().classes("text-xs opacity-70").props("data-took")
            self._table = ui.table(columns=[], rows=[]).classes("w-full").props("dense flat")
        self._content.set_visibility(False)
        self._wanted = settings.get("metric")
        for each in (self._chosen, self._metric, self._smoothing, self._log):
            each.on_value_change(self._changed)

    async def refresh(self) -> None:
        """Draw again what has grown."""
        self._runs = await asyncio.to_thread(self.state.runs, self.project)
        self._runs = [each for each in self._runs if each.metrics.exists()]
        self._empty.set_visibility(not self._runs)
        self._content.set_visibility(bool(self._runs))
        if not self._runs:
            return
        titles = {each.id: f"{each.title} · {each.status}" for each in self._runs}
        if titles != self._chosen.options:
            kept = [each for each in self._chosen.value if each in titles]
            new = [each for each in titles if self._chosen.options and each not in self._known]
            self._filling = True
            self._chosen.set_options(titles, value=[*new, *kept] or [self._runs[0].id])
            self._filling = False
            self._known = set(titles)
        await self._draw()

    def _selected(self) -> list[Run]:
        return [each for each in self._runs if each.id in self._chosen.value][:MOST_RUNS]

    def _changed(self) -> Coroutine[Any, Any, None] | None:
        return None if self._filling else self._remember()

    async def _remember(self) -> None:
        """What the user has chosen is kept, and drawn."""
        chosen = {"metric": self._metric, "smoothing": self._smoothing, "log": self._log}
        with problems_shown():
            self.project.write_settings(
                SETTINGS, {name: each.value for name, each in chosen.items()}
            )
            await self._draw()

    async def _draw(self) -> None:
        runs = self._selected()
        sizes = [(each.id, each.metrics.stat().st_size) for each in runs if each.metrics.exists()]
        share, log = float(self._smoothing.value), bool(self._log.value)
        state = (sizes, self._metric.value, share, log)
        if not runs or state == self._drawn:
            return
        begun = time.monotonic()
        chosen = ([each.id for each in runs], *state[1:])
        if chosen == self._drawn_choice and begun < self._drawn_at + REDRAW_SEC:
            return
        files = [self.state.metrics(each) for each in runs]
        wanted = self._metric.value or self._wanted
        found = await asyncio.to_thread(_read, files, wanted, share)
        if wanted != (self._metric.value or self._wanted):
            return  # the user has chosen another one meanwhile, which draws itself
        if found.names != self._metric.options or found.metric != self._metric.value:
            self._filling = True
            self._metric.set_options(found.names, value=found.metric)
            self._filling = False
        self._chart.options.clear()
        self._chart.options.update(_options(found.metric, log=log))
        self._chart.options["series"] = [
            _series(each.title, points, found.lessons, log=log)
            for each, points in zip(runs, found.lines, strict=False)
        ]
        self._chart.update()
        known = COLUMNS if JSON_STEPS in next(iter(found.rows), {}) else CSV_COLUMNS
        there = [name for name in known if found.rows and name in found.rows[0]]
        self._table.columns = [
            {"name": name, "label": known[name], "field": name, "align": "right"} for name in there
        ]
        self._table.rows = [
            {name: _cell(row.get(name)) for name in there} | {"id": number}
            for number, row in enumerate(found.rows)
        ]
        self._drawn = (sizes, found.metric, share, log)
        self._drawn_choice = (chosen[0], *self._drawn[1:])
        self._drawn_at = begun
        drawn, took = sum(len(points.x) for points in found.lines), time.monotonic() - begun
        self._took.text = f"{drawn:,} points drawn, read in {took:.2f} s"

    async def _download(self) -> None:
        """All rows of the chosen metric, as they are."""
        stream = io.StringIO()
        table = csv.writer(stream)
        table.writerow(["run", "steps", self._metric.value])
        with problems_shown():
            for each in self._selected():
                file = self.state.metrics(each)
                points = await asyncio.to_thread(file.points, self._metric.value)
                table.writerows(
                    (_plain_cell(each.title), x, y) for x, y in zip(*points, strict=True)
                )
            ui.download.content(stream.getvalue(), f"{self._metric.value.replace('/', '_')}.csv")


class _Found(NamedTuple):
    """What the files of the chosen runs say."""

    names: list[str]
    metric: str | None
    lines: list[Points]
    lessons: list[tuple[float, str]]
    rows: list[dict[str, Any]]


def _read(files: list[MetricsFile], wanted: str | None, share: float) -> _Found:
    names = list(dict.fromkeys(name for file in files for name in file.names()))
    metric = next((each for each in (wanted, *PREFERRED, *names) if each in names), None)
    lines = [thin(smooth(file.points(metric), share)) for file in files] if metric else []
    lessons = files[0].lessons() if len(files) == 1 else []
    return _Found(names, metric, lines, lessons, files[0].last_rows(ROWS))


def _series(
    title: str, points: Points, lessons: list[tuple[float, str]], *, log: bool
) -> dict[str, Any]:
    pairs = [
        [float(x), float(y)] for x, y in zip(*points, strict=True) if not log or float(y) > 0.0
    ]
    series: dict[str, Any] = {
        "name": title,
        "type": "line",
        "data": pairs,
        "showSymbol": len(pairs) < 30,
        "animation": False,
    }
    if lessons:
        marks = [{"xAxis": x, "label": {"formatter": _label(name)}} for x, name in lessons]
        series["markLine"] = {"symbol": "none", "data": marks, "lineStyle": {"type": "dashed"}}
    return series


def _options(metric: str | None = None, *, log: bool = False) -> dict[str, Any]:
    return chart(
        grid={"left": 60, "right": 24, "top": 40, "bottom": 48},
        toolbox={"feature": {"dataZoom": {}, "restore": {}, "saveAsImage": {"title": "PNG"}}},
        xAxis={"type": "value", "name": "steps", "nameLocation": "middle", "nameGap": 28,
               "axisLine": {"onZero": False}, "splitLine": LINES},
        yAxis={"type": "log" if log else "value", "name": metric or "", "scale": True,
               "splitLine": LINES},
        series=[],
    )  # fmt: skip


def _label(name: str) -> str:
    """A label of a chart; braces would be a template."""
    return name.replace("{", "(").replace("}", ")")[:40]


def _cell(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return str(value)[:60]
    if isinstance(value, int | float):
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
    return "–"


def _plain_cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@" else text
