"""The pictures of a report: changes with their intervals, distributions, time and memory."""

import numpy as np
from matplotlib.axes import Axes

from estragon.judge.evaluation_file import LENGTH, MEMORY_GROWTH, REWARD, Evaluation
from estragon.judge.regress import Finding, Verdict
from estragon.show.charts.chart import COLOURS
from estragon.show.charts.figure import FAINT, INK, encode_figure, label_axes, new_figure

BASELINE, CURRENT, BAD = COLOURS[1], COLOURS[0], COLOURS[2]
MAX_CHANGES = 16


def draw_report(
    current: Evaluation, baseline: Evaluation | None, verdict: Verdict | None
) -> list[tuple[str, bytes]]:
    """Title and PNG of every picture that there are numbers for."""
    found: list[tuple[str, bytes]] = []
    if verdict is not None and (changes := _changes(verdict)):
        found.append(("Changes", _draw_changes(changes)))
    if current.episodes:
        found.append(("Episodes", _draw_episodes(current, baseline)))
    if current.segments:
        found.append(("Time and memory", _draw_segments(current, baseline)))
    return found


def _changes(verdict: Verdict) -> list[Finding]:
    """Those that can be drawn relative to the baseline."""
    kept = [
        each
        for each in verdict.findings
        if each.interval is not None and each.baseline and each.name != MEMORY_GROWTH
    ]
    return kept[:MAX_CHANGES]


def _draw_changes(changes: list[Finding]) -> bytes:
    subtitle = ["in % of the baseline, with 95% intervals", "grey: tolerance"]
    figure, (axes,) = new_figure("Changes against the baseline", subtitle)
    axes.axvline(0.0, color=INK, lw=0.8)
    for row, each in enumerate(reversed(changes)):
        low, high = each.interval or (0.0, 0.0)
        change = each.current - each.baseline
        unit = 100.0 / abs(each.baseline)
        axes.barh(row, 2 * each.tolerance * unit, left=-each.tolerance * unit, color="#efece6")
        colour = BAD if each.status == "regression" else CURRENT if each.judged else FAINT
        axes.plot([low * unit, high * unit], [row, row], color=colour, lw=2.5)
        axes.plot([change * unit], [row], "o", color=colour, ms=8)
    axes.set_yticks(range(len(changes)), [each.name for each in reversed(changes)])
    reach = max(abs(side) for side in axes.get_xlim())
    axes.set_xlim(-min(reach, 200.0), min(reach, 200.0))
    label_axes(axes, x="change in %")
    return encode_figure(figure)


def _draw_episodes(current: Evaluation, baseline: Evaluation | None) -> bytes:
    figure, panels = new_figure(
        "Episodes", ["share of episodes with at most this value"], 2, legend=_legend(baseline)
    )
    names = {REWARD: "reward", LENGTH: "length in steps"}
    for axes, (name, text) in zip(panels, names.items(), strict=True):
        for evaluation, colour in _both(current, baseline):
            if name in (samples := evaluation.samples()):
                values = np.sort(samples[name])
                shares = np.arange(1, len(values) + 1) / len(values)
                axes.step(values, shares, where="post", color=colour, lw=2.0)
        label_axes(axes, x=text, y="share of episodes")
        axes.margins(x=0.03)
    return encode_figure(figure)


def _draw_segments(current: Evaluation, baseline: Evaluation | None) -> bytes:
    figure, panels = new_figure(
        "Time and memory of the game",
        ["over the steps of the evaluation"],
        2,
        legend=_legend(baseline),
    )
    for evaluation, colour in _both(current, baseline):
        has_cpu = any(each.step_cpu_ms is not None for each in evaluation.segments)
        _line(panels[0], evaluation, "step_cpu_ms" if has_cpu else "step_ms", colour)
        _line(panels[1], evaluation, "memory_mb", colour)
    label_axes(panels[0], x="steps", y="processor time per step in ms")
    label_axes(panels[1], x="steps", y="memory in MB")
    for axes in panels:
        axes.set_ylim(bottom=0.0)
    return encode_figure(figure)


def _line(axes: Axes, evaluation: Evaluation, name: str, colour: str) -> None:
    steps = np.cumsum([each.steps for each in evaluation.segments])
    values = np.array([getattr(each, name) for each in evaluation.segments], float)
    axes.plot(steps, values, color=colour, lw=2.0)


def _both(current: Evaluation, baseline: Evaluation | None) -> list[tuple[Evaluation, str]]:
    first = [] if baseline is None else [(baseline, BASELINE)]
    return [*first, (current, CURRENT)]


def _legend(baseline: Evaluation | None) -> dict[str, str]:
    return {"current": CURRENT} | ({} if baseline is None else {"baseline": BASELINE})
