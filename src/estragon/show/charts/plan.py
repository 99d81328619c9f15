"""What a chart shows, as data: which columns, in which panels, under which words."""

from typing import NamedTuple

from estragon.show.charts.runs import Source


class Line(NamedTuple):
    """One column of one table."""

    source: Source
    column: str
    label: str
    """Written where the line ends; a comparison of runs gives it a panel of this name."""
    colour: str
    style: str = "-"
    times: float = 1.0
    background: bool = False
    """Pale, behind the lines that matter; left out where they are and runs are compared."""


class PanelPlan(NamedTuple):
    """Lines that share axes."""

    lines: tuple[Line, ...]
    title: str = ""
    y: str = ""
    format: str = ""
    """How numbers along the y axis are written, for example "{x:.0%}"."""
    lowest: float | None = None
    highest: float | None = None
    zero: bool = False
    """Draw a line at 0."""


class Chart(NamedTuple):
    """One picture."""

    file: str
    title: str
    subtitle: str
    panels: tuple[PanelPlan, ...]
    hint: str = ""
    """How to read the lines that a comparison of runs does without."""
    alike: bool = False
    """The same y axis in all panels."""
    key: dict[str, str] | None = None
    """Names and colours of lines, where they are not named at their ends."""
    tells_window: bool = False
    """Say how many rows a rolling mean takes together."""


def one_line_a_panel(chart: Chart) -> Chart:
    """The same chart for comparing runs: colours mean runs then, so each line has its own panel."""
    lines = [line for panel in chart.panels for line in panel.lines]
    front = any(not line.background for line in lines)
    panels = [
        panel._replace(lines=(line._replace(style="-"),), title=_title(panel, line))
        for panel in chart.panels
        for line in panel.lines
        if not (front and line.background)
    ]
    return chart._replace(panels=tuple(panels), hint="", key=None)


def _title(panel: PanelPlan, line: Line) -> str:
    words = ", ".join(part for part in (panel.title, line.label) if part)
    return words[:1].upper() + words[1:]
