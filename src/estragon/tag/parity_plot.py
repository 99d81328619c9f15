"""The picture of a parity run: one episode's paths in both engines, and every error."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from estragon.support.files import write_whole

IDENTICAL = 1e-17
"""Where an error of exactly zero is drawn on a logarithmic axis."""


def plot_parity(path: Path, episodes: list[dict[str, Any]], positions: np.ndarray) -> None:
    """Draw.

    Args:
        path: a PNG file.
        episodes: the records of `Parity.compare`.
        positions: (2 engines, decisions, 2 agents, 3) of one episode.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    above, errors = figure.subplots(1, 2)
    for agent, colour in enumerate(("tab:red", "tab:blue")):
        for engine, (name, style) in enumerate((("embedded", "-"), ("Godot", ":"))):
            walked = positions[engine, :, agent]
            label = f"{'seeker' if agent == 0 else 'hider'}, {name}"
            width = 1.5 if engine == 0 else 4.0
            above.plot(walked[:, 0], walked[:, 2], style, color=colour, lw=width, label=label)
    above.set(
        title="An episode in the outermost arena, from above",
        xlabel="x (m)",
        ylabel="z (m)",
        aspect="equal",
    )
    above.invert_yaxis()
    above.legend(loc="upper right", fontsize=8)
    worst = [max(episode["worst_error_m"], IDENTICAL) for episode in episodes]
    errors.semilogy(range(len(worst)), worst, ".", color="tab:green")
    errors.axhline(0.001, color="tab:red", lw=1)
    errors.annotate("1 mm", (0, 0.0012), color="tab:red")
    errors.annotate("identical to the bit", (0, IDENTICAL * 1.5), color="tab:green")
    errors.set(
        title="Largest position error of each episode",
        xlabel="episode",
        ylabel="m",
        ylim=(IDENTICAL / 10, 10.0),
    )
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110)
    write_whole(path, stream.getvalue())
