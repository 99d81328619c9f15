"""`estragon plot`: the charts of training runs."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from estragon.support.errors import UserError
from estragon.support.options import optional
from estragon.support.runs import LATEST_RUN, LOGS, latest_run

if TYPE_CHECKING:
    from estragon.show.charts.data import RunData
    from estragon.show.charts.draw import Figures

Paths = Annotated[tuple[tuple[Path, ...], ...], tyro.conf.UseAppendAction]
"""Given one after the other, or the option again for each."""


@dataclasses.dataclass(frozen=True)
class PlotCommand:
    """Draw the charts of training runs: reward, length, wins, strength, losses, places.

    Of runs of `train sb3` and `train rllib`: reward and length, with the lessons of a curriculum.

    Several runs are drawn into the same charts: runs that differ only in seed as their mean with a
    band from the lowest to the highest, others as separate lines.
    """

    run_folders: Annotated[Paths, optional("DIR [DIR ...]", "run")] = ()
    """Run folders; by default the latest, according to trainer/logs/latest_run.txt."""
    metrics: Annotated[Paths, optional("FILE [FILE ...]")] = ()
    """Metrics files without a run, for example from live training, with one row per episode."""
    trajectories: Annotated[Path | None, optional("DIR")] = None
    """Draw heat maps of the matches logged in this folder (*.jsonl)."""
    output: Path = Path("charts")
    """Output folder; existing pictures with the same names are replaced."""

    def run(self) -> None:
        """Draw, write, and list what was written."""
        from estragon.show.charts.draw import draw_logged_places, draw_numbers, draw_run_places
        from estragon.show.charts.game_runs import draw_game_numbers, is_game_run

        places = None if self.trajectories is None else draw_logged_places(self.trajectories)
        runs = self._runs()
        drawn = []
        are_games = bool(runs) and is_game_run(runs[0].place)
        if runs:
            drawn.append(draw_game_numbers(runs) if are_games else draw_numbers(runs))
            _check_numbers(runs[0], drawn[0])
        if places is not None or not are_games:
            drawn.append(places or draw_run_places(runs))
        for run in runs:
            for note in run.notes:
                print(f"note: {note}", file=sys.stderr)
        for figures in drawn:
            self._write(figures)

    def _runs(self) -> "Sequence[RunData]":
        from estragon.show.charts.data import read_metrics, read_run
        from estragon.show.charts.game_runs import is_game_run, read_game_run

        folders = [_run_folder(folder) for group in self.run_folders for folder in group]
        files = [file for group in self.metrics for file in group]
        if not (folders or files or self.trajectories):
            if not LATEST_RUN.exists() and (LOGS / "metrics.csv").exists():
                files = [LOGS / "metrics.csv"]
            else:
                folders = [latest_run()]
        games = [folder for folder in folders if is_game_run(folder)]
        if games and (len(games) < len(folders) or files):
            raise UserError("runs of tag and of other games have no chart in common")
        if games:
            return [read_game_run(folder) for folder in games]
        return [*(read_run(folder) for folder in folders), *(read_metrics(file) for file in files)]

    def _write(self, drawn: "Figures") -> None:
        from estragon.show.charts.draw import write_figure

        for name, figure in drawn.figures.items():
            path = self.output / name
            done = "replaced" if path.exists() else "wrote"
            print(f"{done} {write_figure(path, figure)}")
        reasons: dict[str, list[str]] = {}
        for name, reason in drawn.missing.items():
            old = " (the existing one is kept)" if (self.output / name).exists() else ""
            reasons.setdefault(reason, []).append(f"{name}{old}")
        for reason, names in reasons.items():
            print(f"left out {', '.join(names)}: {reason}", file=sys.stderr)


def _run_folder(folder: Path) -> Path:
    """A run directory: `folder` itself, or the latest run in an output directory."""
    if not (folder / "metrics.csv").exists() and (folder / LATEST_RUN).exists():
        return latest_run(folder)
    return folder


def _check_numbers(run: "RunData", drawn: "Figures") -> None:
    """Say what is wrong with a file of which nothing can be drawn."""
    if drawn.figures:
        return
    table = run.metrics
    if table.notes:
        raise UserError(f"{table.path} has nothing but NaN to draw; the first: {table.notes[0]}")
    known = ", ".join(table.names[:8])
    raise UserError(f"{table.path} has no numbers to draw in its columns {known} …")
