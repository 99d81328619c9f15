"""The result of a hunt for people and for CI: Markdown, HTML, JUnit, and a map of what was seen."""

from pathlib import Path
from typing import Any

import msgspec

from estragon.judge.hunt.state import HuntState
from estragon.judge.report import Report, Table, junit, link_to, to_html, to_markdown
from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json, write_whole

FORMATS = (".md", ".html", ".xml")


def result(state: HuntState) -> dict[str, Any]:
    """For `--json`."""
    found: dict[str, Any] = msgspec.to_builtins(state)
    return {key: value for key, value in found.items() if key not in ("usual", "level")}


def write_reports(state: HuntState, folder: Path, outputs: tuple[Path, ...]) -> None:
    """Write every report in the format of its name."""
    pictures = draw(folder, state.level)
    for name, data in pictures:
        write_whole(folder / f"{name}.png", data)
    for path in outputs:
        if path.suffix == ".json":
            write_json(path, result(state))
            continue
        files = [each for bug in state.bugs for each in (f"{bug.trace[:-5]}.md", bug.trace)]
        links = [(each, link_to(str(folder / each), path)) for each in files]
        report = make_report(state, links)
        if path.suffix == ".md":
            text = to_markdown(report)
        elif path.suffix == ".html":
            text = to_html(report, pictures)
        else:
            text = junit(report.title, _cases(state))
        write_whole(path, text.encode())


def check_name(path: Path) -> None:
    """Raise a UserError for a report of an unknown format."""
    if path.suffix not in FORMATS:
        raise UserError(f"--report {path}: expected a name that ends in {', '.join(FORMATS)}")


def make_report(state: HuntState, links: list[tuple[str, str]]) -> Report:
    """What all formats show."""
    bugs = [
        (
            bug.oracle,
            bug.key,
            bug.text,
            ", ".join(f"{value:.4g}" for value in bug.place),
            f"{bug.length} (first {bug.first_length})",
            f"{bug.explorer}, {bug.found_sec:.0f} s",
        )
        for bug in state.bugs
    ]
    explorers = [
        (name, f"{each['sec']:.0f}", f"{each['cells']:.0f}", f"{each['bugs']:.0f}")
        for name, each in state.explorers.items()
    ]
    unconfirmed = len(state.unconfirmed)
    notes = [
        f"{state.steps} steps in {state.played_sec:.0f} s, {state.cells} cells",
        f"determinism: {state.determinism}",
    ]
    if unconfirmed:
        notes.append(f"{unconfirmed} suspicions did not show again in a replay; not reported")
    head = ("oracle", "what", "seen", "place", "actions", "found by")
    tables = [
        Table("Bugs", head, bugs, ["bad"] * len(bugs)),
        Table("Explorers", ("explorer", "seconds", "new cells", "bugs"), explorers),
    ]
    count = len(state.bugs)
    verdict = (
        f"FAIL: {count} bug{'s' if count > 1 else ''} found" if count else "PASS: no bug found"
    )
    title = f"Hunt of {state.scene or state.game}"
    return Report(title, not state.bugs, verdict, tables, notes, links)


def _cases(state: HuntState) -> list[tuple[str, str, str, bool]]:
    cases = [
        ("hunt", f"{bug.oracle}: {bug.key}", f"{bug.text} ({bug.trace})", True)
        for bug in state.bugs
    ]
    return cases or [("hunt", "no bug found", f"{state.steps} steps, {state.cells} cells", False)]


def draw(folder: Path, level: float) -> list[tuple[str, bytes]]:
    """The map of visits, and cells over time, as far as there are numbers."""
    from estragon.judge.hunt.archive import BINS
    from estragon.show.charts.figure import encode_figure, label_axes, new_figure

    archive = read_json(folder / "archive.json", dict[str, Any])
    found = []
    if archive["heat"]:
        import numpy as np

        x, y, visits = np.array(archive["heat"]).T
        grid = np.full((np.ptp(y) + 1, np.ptp(x) + 1), np.nan)
        grid[y - y.min(), x - x.min()] = np.log10(visits)
        size = level / BINS
        ends = (x.min() * size, (x.max() + 1) * size, (y.max() + 1) * size, y.min() * size)
        figure, (axes,) = new_figure("Visits", ["seen from above; the darker, the more"])
        axes.imshow(grid, extent=ends, cmap="viridis_r", interpolation="nearest", aspect="equal")
        label_axes(axes, x="x", y="z or y")
        found.append(("coverage", encode_figure(figure)))
    if len(archive["curve"]) > 1:
        figure, (axes,) = new_figure("Cells over time", ["visited at least once"])
        axes.plot(*zip(*archive["curve"], strict=True))
        label_axes(axes, x="seconds", y="cells")
        found.append(("cells", encode_figure(figure)))
    return found
