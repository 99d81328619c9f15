"""Charts of what the learner does: the terms of the reward, and the losses."""

import numpy as np
from matplotlib.figure import Figure

from estragon.show.palette import ROLES
from estragon.show.panel import Panel, has_numbers
from estragon.show.paper import INK, STEPS_LABEL, name_roles, new_panels, new_sheet
from estragon.show.table import Table

TERM_COLOURS = (
    "#e08e2b",
    "#4a9a62",
    "#7d5ba6",
    "#2aa1a1",
    "#c2476f",
    "#8c6d46",
    "#3b6fb6",
    "#9a9a3c",
    "#5d6470",
)
LOSSES = {
    "policy_loss": "Policy loss",
    "value_loss": "Value loss",
    "entropy": "Entropy (nats)",
    "kl": "KL divergence (nats)",
    "explained_variance": "Explained variance",
}


def draw_reward_terms(metrics: Table) -> Figure | None:
    """What each role's reward is made of: the terms that are not always zero."""
    terms = {role: _terms_in_use(metrics, role) for role in ROLES}
    roles = [role for role in ROLES if terms[role]]
    if not roles:
        return None
    colours: dict[str, str] = {}
    for role in roles:
        for term in terms[role]:
            colours.setdefault(term, TERM_COLOURS[len(colours) % len(TERM_COLOURS)])
    figure = new_sheet(
        "What the reward is made of",
        "mean of each term per episode in training; terms that are always zero are left out",
    )
    grid = {"top": 0.79, "right": 0.9, "wspace": 0.3}
    panels = [Panel(axes) for axes in new_panels(figure, 1, len(roles), alike=True, **grid)]
    for panel, role in zip(panels, roles, strict=True):
        panel.axes.axhline(0.0, color=INK, lw=0.8, alpha=0.5)
        for term in terms[role]:
            values = metrics.column(f"{role}_term_{term}")
            panel.draw_noisy(metrics.millions, values, term.replace("_", " "), colours[term])
    for panel, role in zip(panels, roles, strict=True):
        panel.finish(title=role.capitalize(), y="mean reward per episode")
    return figure


def draw_losses(metrics: Table) -> Figure | None:
    """How the updates go, role by role."""
    roles = {
        role: colour
        for role, colour in ROLES.items()
        if has_numbers(metrics, *(f"{role}_{loss}" for loss in LOSSES))
    }
    if not roles:
        return None
    figure = new_sheet("How the updates go", "every update faint, their rolling mean in front")
    name_roles(figure, roles)
    panels = new_panels(figure, 2, 3, top=0.79, hspace=0.42, wspace=0.24)
    for axes, (loss, title) in zip(panels[:-1], LOSSES.items(), strict=True):
        panel = Panel(axes)
        for role, colour in roles.items():
            panel.draw_noisy(metrics.millions, metrics.column(f"{role}_{loss}"), "", colour)
        panel.finish(title=title, x=STEPS_LABEL if axes in panels[3:] else "")
    rate = Panel(panels[-1])
    rate.draw_noisy(metrics.millions, 1e4 * metrics.column("learning_rate"), "", INK)
    rate.finish(title="Learning rate (× 10⁻⁴)")
    return figure


def _terms_in_use(metrics: Table, role: str) -> list[str]:
    prefix = f"{role}_term_"
    columns = {term: metrics.column(prefix + term) for term in metrics.names_after(prefix)}
    return [term for term, values in columns.items() if np.nan_to_num(values).any()]
