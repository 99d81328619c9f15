"""Charts of how well the agents play: reward, length of episodes, and wins."""

from matplotlib.figure import Figure

from estragon.show.palette import ROLES
from estragon.show.panel import Panel, has_numbers
from estragon.show.paper import FAINT, new_panels, new_sheet
from estragon.show.table import Table

PAIRINGS = {
    "seeker": (("random", "--"), ("evader", "-")),
    "hider": (("random", "--"), ("chaser", "-")),
}
"""Against which fixed bots a role is tested; the strong one is drawn solid."""


def draw_reward(metrics: Table, strength: Table | None) -> Figure | None:
    """Reward per episode of each role: against the fixed bots, and pale behind, in training."""
    roles = [
        role
        for role in ROLES
        if has_numbers(metrics, f"{role}_reward_sum") or _is_tested(strength, role, "reward")
    ]
    if not roles:
        return None
    figure = _sheet("Reward per episode", "mean of the episodes that ended in an update", strength)
    grid = {"top": 0.79, "right": 0.9, "wspace": 0.3}
    panels = [Panel(axes) for axes in new_panels(figure, 1, len(roles), alike=True, **grid)]
    for panel, role in zip(panels, roles, strict=True):
        reward = metrics.column(f"{role}_reward_sum")
        pale = _is_tested(strength, role, "reward")
        panel.draw_noisy(metrics.millions, reward, "in training", ROLES[role], pale=pale)
        _draw_tests(panel, strength, role, "reward", "vs {bot}")
    for panel, role in zip(panels, roles, strict=True):
        panel.finish(title=role.capitalize(), y="mean reward per episode")
    return figure


def draw_length(metrics: Table, strength: Table | None) -> Figure | None:
    """How long episodes last, in seconds of the game."""
    tested = [role for role in ROLES if _is_tested(strength, role, "seconds")]
    if not tested and not has_numbers(metrics, "duration_sec"):
        return None
    figure = _sheet("Length of an episode", "until the tag, or until the time is up", strength)
    panel = Panel(new_panels(figure, right=0.86)[0])
    duration = metrics.column("duration_sec")
    panel.draw_noisy(metrics.millions, duration, "in training", FAINT, pale=bool(tested))
    for role in tested:
        _draw_tests(panel, strength, role, "seconds", "{role} vs {bot}")
    panel.axes.set_ylim(bottom=0.0)
    panel.finish(y="mean length of an episode (s)")
    return figure


def draw_win_rates(metrics: Table, strength: Table | None) -> Figure | None:
    """How often each role wins."""
    tested = [role for role in ROLES if _is_tested(strength, role, "win_rate")]
    if not tested and not has_numbers(metrics, "seeker_win_rate"):
        return None
    figure = _sheet("Matches won", "the seeker's share of the episodes in training", strength)
    panel = Panel(new_panels(figure, right=0.86)[0])
    won = 100.0 * metrics.column("seeker_win_rate")
    panel.draw_noisy(
        metrics.millions, won, "seeker in training", ROLES["seeker"], pale=bool(tested)
    )
    for role in tested:
        _draw_tests(panel, strength, role, "win_rate", "{role} vs {bot}", times=100.0)
    panel.axes.set_ylim(0.0, 100.0)
    panel.axes.yaxis.set_major_formatter("{x:.0f}%")
    panel.finish(y="matches won")
    return figure


def _sheet(what: str, in_training: str, strength: Table | None) -> Figure:
    if strength is None:
        return new_sheet(f"{what} in training", in_training)
    return new_sheet(
        f"{what} against the fixed bots",
        "dashed: against random play; pale: in training, against the opponents of that time",
    )


def _is_tested(strength: Table | None, role: str, what: str) -> bool:
    return has_numbers(strength, *(f"{role}_vs_{bot}_{what}" for bot, _ in PAIRINGS[role]))


def _draw_tests(
    panel: Panel, strength: Table | None, role: str, what: str, label: str, times: float = 1.0
) -> None:
    if strength is None:
        return
    for bot, style in PAIRINGS[role]:
        values = times * strength.column(f"{role}_vs_{bot}_{what}")
        named = label.format(role=role, bot=bot)
        panel.draw_exact(strength.millions, values, named, ROLES[role], style)
