"""Charts named after one column of `metrics.csv`, for those who know which number they want."""

from estragon.show.charts.paper import INK
from estragon.show.charts.plan import Chart, Line, PanelPlan
from estragon.show.drawing.palette import ROLES


def column_charts() -> list[Chart]:
    """One chart a column; where the roles have columns of that name, those too."""
    return [
        _chart(
            "reward_mean",
            "Reward per decision",
            "what an agent earns in a decision, in training",
            PanelPlan(_lines("reward_mean"), y="mean reward per decision", zero=True),
        ),
        _chart(
            "advantage_mean",
            "Advantage",
            "how much better actions turned out than the critic expected; 0: just as expected",
            PanelPlan(_lines("advantage_mean"), y="mean advantage", zero=True),
        ),
        _chart(
            "advantage_std",
            "Spread of the advantage",
            "how far the outcomes of actions lie from what the critic expected",
            PanelPlan(_lines("advantage_std"), y="standard deviation", lowest=0.0),
        ),
        _chart(
            "policy_loss",
            "Policy loss",
            "what an update of a policy makes small",
            PanelPlan(_lines("policy_loss"), y="policy loss", zero=True),
        ),
        _chart(
            "value_loss",
            "Value loss",
            "how far the critic's forecasts are off; lower is better",
            PanelPlan(_lines("value_loss"), y="value loss", lowest=0.0),
        ),
        _chart(
            "avg_distance",
            "Distance between the agents",
            "mean of an episode in training",
            PanelPlan(
                (Line("metrics", "seeker_avg_distance", "", INK),), y="distance (m)", lowest=0.0
            ),
        ),
        _chart(
            "agent_steps_per_s",
            "Speed of the training",
            "steps of learning agents in a second of real time",
            PanelPlan(
                (Line("metrics", "agent_steps_per_s", "", INK, times=1e-3),),
                y="thousand agent-steps per second",
                lowest=0.0,
            ),
        ),
    ]


def _chart(name: str, title: str, subtitle: str, panel: PanelPlan) -> Chart:
    return Chart(f"{name}.png", title, subtitle, (panel,), alike=True, tells_window=True)


def _lines(column: str) -> tuple[Line, ...]:
    """The roles' own columns, and the one of both."""
    roles = (Line("metrics", f"{role}_{column}", role, ROLES[role]) for role in ROLES)
    return *roles, Line("metrics", column, "both roles", INK)
