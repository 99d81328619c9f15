"""Charts of cross-play: ratings over training, and the table of everybody against everybody."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from estragon.show.cross_play import CrossPlay
from estragon.show.palette import HIDER, ROLES, SEEKER
from estragon.show.panel import Panel
from estragon.show.paper import FAINT, INK, new_panels, new_sheet

WINS = LinearSegmentedColormap.from_list("wins", [HIDER, "#f7f5f0", SEEKER])
"""From the hider always wins to the seeker always wins."""


def draw_elo(cross_play: CrossPlay) -> Figure:
    """The rating of each role's agents, stage by stage."""
    figure = new_sheet(
        "Strength over training (Elo)",
        f"every stage's agents against every other's, {cross_play.episodes} matches a pair",
    )
    panel = Panel(new_panels(figure, right=0.92)[0])
    millions = np.array([stage.agent_steps for stage in cross_play.stages]) / 1e6
    for role, colour in ROLES.items():
        panel.draw_exact(millions, np.array(getattr(cross_play.elo, role)), role, colour)
    panel.finish(y="Elo rating")
    return figure


def draw_cross_play(cross_play: CrossPlay) -> Figure:
    """How often the seeker of each stage (rows) beats the hider of each stage (columns)."""
    figure = new_sheet(
        "Who beats whom: how often the seeker wins",
        f"in % of {cross_play.episodes} matches; red: the seeker wins, blue: the hider wins",
    )
    axes = new_panels(figure, left=0.13)[0]
    rates = 100.0 * np.array(cross_play.seeker_win_rate)
    axes.imshow(rates, cmap=WINS, vmin=0.0, vmax=100.0, aspect="auto")
    names = [stage.name for stage in cross_play.stages]
    places = range(len(names))
    size = float(np.clip(150.0 / len(names), 6.0, 15.0))
    for row in places:
        for column in places:
            rate = rates[row, column]
            ink = "white" if abs(rate - 50.0) > 32.0 else INK
            axes.text(
                column, row, f"{rate:.0f}", ha="center", va="center", color=ink, fontsize=size
            )
    axes.set_xticks(places, names)
    axes.set_yticks(places, names)
    axes.grid(visible=False)
    edges = np.arange(1, len(names)) - 0.5
    axes.hlines(edges, -0.5, len(names) - 0.5, color="white", lw=2)
    axes.vlines(edges, -0.5, len(names) - 0.5, color="white", lw=2)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlabel("hider of this stage", color=FAINT, fontsize=12, labelpad=10)
    axes.set_ylabel("seeker of this stage", color=FAINT, fontsize=12, labelpad=10)
    return figure
