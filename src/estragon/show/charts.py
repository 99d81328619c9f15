"""Every chart of a training run, from the files in its folder."""

from pathlib import Path

from matplotlib.figure import Figure

from estragon.files import write_whole
from estragon.show.cross_play import read_cross_play
from estragon.show.cross_play_charts import draw_cross_play, draw_elo
from estragon.show.learning_charts import draw_losses, draw_reward_terms
from estragon.show.paper import png_of
from estragon.show.strength_charts import draw_length, draw_reward, draw_win_rates
from estragon.show.table import read_table


def draw_charts(run: Path, charts: Path) -> list[Path]:
    """Write PNGs into the folder `charts`; returns those for which the run has numbers.

    Args:
        run: the folder of a training run. `metrics.csv` must be there; `strength.csv` and
            `cross_play.json` come later in a run, and what shows them is left out until then.
        charts: made if it does not exist.
    """
    metrics = read_table(run / "metrics.csv")
    strength_file, cross_play_file = run / "strength.csv", run / "cross_play.json"
    strength = read_table(strength_file) if strength_file.exists() else None
    figures: dict[str, Figure | None] = {
        "reward.png": draw_reward(metrics, strength),
        "length.png": draw_length(metrics, strength),
        "win_rates.png": draw_win_rates(metrics, strength),
        "reward_terms.png": draw_reward_terms(metrics),
        "losses.png": draw_losses(metrics),
    }
    if cross_play_file.exists():
        cross_play = read_cross_play(cross_play_file)
        figures["elo.png"] = draw_elo(cross_play)
        figures["cross_play.png"] = draw_cross_play(cross_play)
    written = []
    for name, figure in figures.items():
        if figure is not None:
            write_whole(charts / name, png_of(figure))
            written.append(charts / name)
    return written
