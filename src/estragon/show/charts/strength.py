"""Charts of how well the agents play: reward, length of episodes, wins, and ratings."""

from collections.abc import Iterable, Sequence

from estragon.show.charts.paper import FAINT
from estragon.show.charts.plan import Chart, Line, PanelPlan
from estragon.show.charts.runs import Run
from estragon.show.charts.table import STEPS, Axis
from estragon.show.drawing.palette import ROLES

PAIRINGS = {
    "seeker": (("random", "--"), ("evader", "-")),
    "hider": (("random", "--"), ("chaser", "-")),
}
"""Against which fixed bots a role is tested; the strong one is drawn solid."""


def strength_charts(runs: Sequence[Run], axis: Axis) -> list[Chart]:
    """Reward, length and wins: in training, and once all runs were tested, against the bots."""
    tested = axis is STEPS and all(run.strength is not None for run in runs)
    reward = [
        PanelPlan(
            (
                _in_training(f"{role}_reward_sum", "in training", ROLES[role], tested=tested),
                *_tests([role], "reward", "vs {bot}", tested=tested),
            ),
            title=role.capitalize(),
            y="reward per episode",
        )
        for role in ROLES
    ]
    length = PanelPlan(
        (
            _in_training("duration_sec", "in training", FAINT, tested=tested),
            *_tests(ROLES, "seconds", "{role} vs {bot}", tested=tested),
        ),
        y="mean length (s)",
        lowest=0.0,
    )
    wins = PanelPlan(
        (
            _in_training("seeker_win_rate", "seeker in training", ROLES["seeker"], tested=tested),
            *_tests(ROLES, "win_rate", "{role} vs {bot}", tested=tested),
        ),
        y="matches won",
        format="{x:.0%}",
        lowest=0.0,
        highest=1.0,
    )
    return [
        _chart("reward", "Reward per episode", "what a role earns", reward, tested=tested),
        _chart(
            "length",
            "Length of an episode",
            "until the tag or the time limit",
            [length],
            tested=tested,
        ),
        _chart("win_rates", "Matches won", "share of the matches", [wins], tested=tested),
    ]


def elo_chart(runs: Sequence[Run]) -> Chart:
    """The rating of each role's agents, stage by stage."""
    matches = sorted({run.cross_play.episodes for run in runs if run.cross_play is not None})
    lines = tuple(Line("elo", role, role, ROLES[role]) for role in ROLES)
    return Chart(
        "elo.png",
        "Strength over training (Elo)",
        f"every stage's agents against every other's and the bots, whose mean rating is 1000; "
        f"{' or '.join(map(str, matches))} matches a pair",
        (PanelPlan(lines, y="Elo rating"),),
        alike=True,
    )


def _chart(name: str, what: str, about: str, panels: Sequence[PanelPlan], *, tested: bool) -> Chart:
    against = "against the fixed bots" if tested else "in training"
    return Chart(
        f"{name}.png",
        f"{what} {against}",
        about,
        tuple(panels),
        hint="dashed: against random play; pale: in training, against the opponents of that time"
        if tested
        else "",
        alike=True,
        tells_window=not tested,
    )


def _in_training(column: str, label: str, colour: str, *, tested: bool) -> Line:
    return Line("metrics", column, label, colour, background=tested)


def _tests(roles: Iterable[str], what: str, label: str, *, tested: bool) -> list[Line]:
    return [
        Line(
            "strength",
            f"{role}_vs_{bot}_{what}",
            label.format(role=role, bot=bot),
            ROLES[role],
            style,
        )
        for role in roles
        for bot, style in PAIRINGS[role]
        if tested
    ]
