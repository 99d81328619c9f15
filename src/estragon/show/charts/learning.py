"""Charts of what the learner does: the terms of the reward, and the losses."""

from collections.abc import Sequence

import numpy as np

from estragon.show.charts.chart import COLOURS
from estragon.show.charts.paper import INK
from estragon.show.charts.plan import Chart, Line, PanelPlan
from estragon.show.charts.runs import Run
from estragon.show.drawing.palette import ROLES

LOSSES = {
    "policy_loss": "Policy loss",
    "value_loss": "Value loss",
    "entropy": "Entropy (nats)",
    "kl": "KL divergence (nats)",
    "explained_variance": "Explained variance",
}


def reward_terms_chart(runs: Sequence[Run]) -> Chart:
    """What each role's reward is made of: the terms that are not always zero."""
    terms = {role: _terms_in_use(runs, role) for role in ROLES}
    every = dict.fromkeys(term for role in ROLES for term in terms[role])
    colours = {term: COLOURS[number % len(COLOURS)] for number, term in enumerate(every)}
    panels = [
        PanelPlan(
            tuple(
                Line("metrics", f"{role}_term_{term}", term.replace("_", " "), colours[term])
                for term in terms[role]
            ),
            title=role.capitalize(),
            y="reward per episode",
            zero=True,
        )
        for role in ROLES
    ]
    return Chart(
        "reward_terms.png",
        "What the reward is made of",
        "mean of each term per episode in training; terms that are always 0 are left out",
        tuple(panels),
        alike=True,
    )


def losses_chart() -> Chart:
    """How the updates go, role by role."""
    panels = [
        PanelPlan(
            tuple(Line("metrics", f"{role}_{loss}", role, ROLES[role]) for role in ROLES),
            title=title,
        )
        for loss, title in LOSSES.items()
    ]
    rate = Line("metrics", "learning_rate", "", INK, times=1e4)
    panels.append(PanelPlan((rate,), title="Learning rate (× 10⁻⁴)"))
    return Chart(
        "losses.png",
        "How the updates go",
        "losses and other signs of each update's health",
        tuple(panels),
        key=ROLES,
        tells_window=True,
    )


def _terms_in_use(runs: Sequence[Run], role: str) -> list[str]:
    prefix = f"{role}_term_"
    names = dict.fromkeys(term for run in runs for term in run.metrics.names_after(prefix))
    return [
        term
        for term in names
        if any(np.nan_to_num(run.metrics.column(prefix + term)).any() for run in runs)
    ]
