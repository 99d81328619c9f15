"""Every chart of training runs, from the files in their folders.

Lines over training are declared in `all_charts`: strength, reward terms, losses, and single columns
of `metrics.csv`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from estragon.show.canvas import HIDER, ROLE_COLOURS, SEEKER
from estragon.show.charts.chart import COLOURS, Chart, Line, Panel, check_kinds, draw_chart
from estragon.show.charts.data import (
    STEPS,
    Axis,
    CrossPlay,
    RunData,
    Source,
    common_axis,
    group_runs,
    read_run,
)
from estragon.show.charts.figure import FAINT, INK, ChartFigure, encode_figure, new_figure
from estragon.show.charts.occupancy import draw_occupancy, occupancy_of_logs, occupancy_of_run
from estragon.support.errors import UserError
from estragon.support.files import write_whole

CROSS_PLAY, PLACES = "cross_play.png", "places.png"
WINS = LinearSegmentedColormap.from_list("wins", [HIDER, "#f7f5f0", SEEKER])
"""From the hider always wins to the seeker always wins."""
PAIRINGS = {
    "seeker": (("random", "--"), ("evader", "-")),
    "hider": (("random", "--"), ("chaser", "-")),
}
"""The bots that a role is tested against; the strong one is drawn solid."""
LOSSES = {
    "policy_loss": "Policy loss",
    "value_loss": "Value loss",
    "entropy": "Entropy (nats)",
    "kl": "KL divergence (nats)",
    "explained_variance": "Explained variance",
}


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


def all_charts(runs: Sequence[RunData], axis: Axis) -> list[Chart]:
    """Every chart of numbers, whether or not these runs have the numbers for it."""
    return [
        *_strength_charts(runs, axis),
        _elo_chart(runs),
        _ladder_chart(),
        _reward_terms_chart(runs),
        _losses_chart(),
        *_column_charts(),
    ]


def _strength_charts(runs: Sequence[RunData], axis: Axis) -> list[Chart]:
    """Reward, length and wins: in training, and once all runs were tested, against the bots."""
    tested = axis is STEPS and all(run.strength is not None for run in runs)

    def training(column: str, label: str, colour: str) -> Line:
        return Line("metrics", column, label, colour, background=tested)

    def tests(roles: Iterable[str], what: str, label: str) -> list[Line]:
        return [
            Line(
                "strength",
                f"{role}_vs_{bot}_{what}",
                label.format(role=role, bot=bot),
                ROLE_COLOURS[role],
                style,
            )
            for role in roles
            for bot, style in PAIRINGS[role]
            if tested
        ]

    def chart(name: str, what: str, about: str, *panels: Panel) -> Chart:
        return Chart(
            f"{name}.png",
            f"{what} {'against the fixed bots' if tested else 'in training'}",
            about,
            panels,
            hint="dashed: against random play; pale: in training, against the opponents of that "
            "time"
            if tested
            else "",
            share_y=True,
            explain_smoothing=not tested,
        )

    rewards = [
        Panel(
            (
                training(f"{role}_reward_sum", "in training", colour),
                *tests([role], "reward", "vs {bot}"),
            ),
            title=role.capitalize(),
            y="reward per episode",
        )
        for role, colour in ROLE_COLOURS.items()
    ]
    lengths = Panel(
        (
            training("duration_sec", "in training", FAINT),
            *tests(ROLE_COLOURS, "seconds", "{role} vs {bot}"),
        ),
        y="mean length (s)",
        lowest=0.0,
    )
    wins = Panel(
        (
            training("seeker_win_rate", "seeker in training", ROLE_COLOURS["seeker"]),
            *tests(ROLE_COLOURS, "win_rate", "{role} vs {bot}"),
        ),
        y="matches won",
        format="{x:.0%}",
        lowest=0.0,
        highest=1.0,
    )
    return [
        chart("reward", "Reward per episode", "what a role earns", *rewards),
        chart("length", "Length of an episode", "until the tag or the time limit", lengths),
        chart("win_rates", "Matches won", "share of the matches", wins),
    ]


def _elo_chart(runs: Sequence[RunData]) -> Chart:
    """The rating of each role's policies, stage by stage."""
    matches = sorted({run.cross_play.episodes for run in runs if run.cross_play is not None})
    lines = tuple(Line("elo", role, role, colour) for role, colour in ROLE_COLOURS.items())
    return Chart(
        "elo.png",
        "Strength over training (Elo)",
        f"every stage's agents against every other's and the bots, whose mean rating is 1000; "
        f"{' or '.join(map(str, matches))} matches a pair",
        (Panel(lines, y="Elo rating"),),
        share_y=True,
    )


def _ladder_chart() -> Chart:
    """Whether the last policy of each role is its best."""
    final: Source = "final"
    strength: Source = "strength"
    panels = [
        Panel(
            tuple(
                Line(source, f"{role}_{column}" if column else role, label, colour, style)
                for source, column, label, style in (
                    (final, "", f"vs the last {other}", "-"),
                    (final, "sampled", "the same, sampled", "--"),
                    (strength, "vs_panel_win_rate", "vs the panel", "-."),
                    (strength, "vs_panel_sampled_win_rate", "the same, sampled", ":"),
                )
            ),
            title=role.capitalize(),
            y="matches won",
            format="{x:.0%}",
            lowest=0.0,
            highest=1.0,
        )
        for (role, colour), other in zip(ROLE_COLOURS.items(), ("hider", "seeker"), strict=True)
    ]
    return Chart(
        "ladder.png",
        "Is the last policy the best one?",
        "every stage against the other role's last policy, and against policies of other runs",
        tuple(panels),
        hint="sampled: actions are drawn as in training, instead of taking the likeliest",
        share_y=True,
    )


def _reward_terms_chart(runs: Sequence[RunData]) -> Chart:
    """What each role's reward consists of: the terms that are not always zero."""
    terms = {role: _terms_in_use(runs, f"{role}_term_") for role in ROLE_COLOURS}
    every = dict.fromkeys(term for role in ROLE_COLOURS for term in terms[role])
    colours = {term: COLOURS[number % len(COLOURS)] for number, term in enumerate(every)}
    panels = tuple(
        Panel(
            tuple(
                Line("metrics", f"{role}_term_{term}", term.replace("_", " "), colours[term])
                for term in terms[role]
            ),
            title=role.capitalize(),
            y="reward per episode",
            zero=True,
        )
        for role in ROLE_COLOURS
    )
    return Chart(
        "reward_terms.png",
        "What the reward is made of",
        "mean of each term per episode in training; terms that are always 0 are left out",
        panels,
        share_y=True,
    )


def _terms_in_use(runs: Sequence[RunData], prefix: str) -> list[str]:
    columns = [name for run in runs for name in run.metrics.names if name.startswith(prefix)]
    return [
        name.removeprefix(prefix)
        for name in dict.fromkeys(columns)
        if any(np.nan_to_num(run.metrics.column(name)).any() for run in runs)
    ]


def _losses_chart() -> Chart:
    """How the updates go, role by role."""
    panels = [Panel(_role_lines(loss), title=title) for loss, title in LOSSES.items()]
    rate = Line("metrics", "learning_rate", "", INK, scale=1e4)
    panels.append(Panel((rate,), title="Learning rate (× 10⁻⁴)"))
    return Chart(
        "losses.png",
        "How the updates go",
        "losses and other signs of each update's health",
        tuple(panels),
        legend=ROLE_COLOURS,
        explain_smoothing=True,
    )


def _role_lines(column: str) -> tuple[Line, ...]:
    return tuple(
        Line("metrics", f"{role}_{column}", role, colour) for role, colour in ROLE_COLOURS.items()
    )


def _column_charts() -> list[Chart]:
    """One chart per column, and the roles' columns of that name, for people who know which."""

    def lines(column: str) -> tuple[Line, ...]:
        return *_role_lines(column), Line("metrics", column, "both roles", INK)

    distance = Line("metrics", "seeker_avg_distance", "", INK)
    speed = Line("metrics", "agent_steps_per_s", "", INK, scale=1e-3)
    charts = {
        "reward_mean": (
            "Reward per decision",
            "what an agent earns in a decision, in training",
            Panel(lines("reward_mean"), y="mean reward per decision", zero=True),
        ),
        "advantage_mean": (
            "Advantage",
            "how much better actions turned out than the critic expected; 0: just as expected",
            Panel(lines("advantage_mean"), y="mean advantage", zero=True),
        ),
        "advantage_std": (
            "Spread of the advantage",
            "how far the outcomes of actions lie from what the critic expected",
            Panel(lines("advantage_std"), y="standard deviation", lowest=0.0),
        ),
        "policy_loss": (
            "Policy loss",
            "what an update of a policy minimises",
            Panel(lines("policy_loss"), y="policy loss", zero=True),
        ),
        "value_loss": (
            "Value loss",
            "how far the critic's forecasts are off; lower is better",
            Panel(lines("value_loss"), y="value loss", lowest=0.0),
        ),
        "avg_distance": (
            "Distance between the agents",
            "mean of an episode in training",
            Panel((distance,), y="distance (m)", lowest=0.0),
        ),
        "agent_steps_per_s": (
            "Speed of the training",
            "steps of learning agents per second of real time",
            Panel((speed,), y="thousand agent-steps per second", lowest=0.0),
        ),
    }
    return [
        Chart(f"{name}.png", title, about, (panel,), share_y=True, explain_smoothing=True)
        for name, (title, about, panel) in charts.items()
    ]
