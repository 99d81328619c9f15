"""`estragon eval game`: how well does a model play when the game's parameters change?"""

import dataclasses
import itertools
from pathlib import Path
from typing import Annotated, Any

import tyro

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_json
from estragon.support.options import check_span, optional
from estragon.support.progress import counting

MEASURES = {"return": "mean return", "success_rate": "success rate"}


@dataclasses.dataclass(frozen=True)
class EvalGameCommand:
    """Play a model in a game whose parameters are drawn from ranges, and report how well it does.

    The ranges of the first two uniform or log_uniform parameters of the file are divided into
    cells, which are played equally often: a table, and with --chart a heat map. All others are
    drawn for each episode.
    """

    model: Annotated[str, tyro.conf.Positional]
    """A Stable-Baselines3 model (.zip), an RLlib checkpoint, a run folder of either, an .onnx file,
    or random."""
    parameters: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """A parameter file without a curriculum, such as ranges that the model was not trained on."""
    game: Annotated[str | None, optional("PATH")] = None
    """A project folder, a .pck or an exported game; by default the one of the model's run."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play; by default that of the model's run, or the game's main scene."""
    action_repeat: Annotated[int | None, optional("TICKS")] = None
    """Physics ticks per action; by default as in the model's run, or the game's own setting."""
    episodes: int = 250
    """Number of episodes; rounded up to as many in every cell."""
    cells: int = 5
    """Cells along each parameter."""
    success: str = "success"
    """The key of the game's info that is true at the end of a successful episode."""
    seed: int = 0
    """Seed of the games and of the parameters; the same for every model to be compared."""
    n_parallel: int = 1
    """Number of game processes; one for RLlib."""
    max_steps: int = 1_000_000
    """Stop after this many steps of all agents, whatever has ended by then."""
    trust: bool = False
    """Load a model that Estragon did not write; loading it can run any code stored in it."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Also write the result to this file."""
    chart: Annotated[Path | None, optional("FILE.png")] = None
    """Also draw it: a heat map of two parameters, or bars of one."""

    def run(self) -> None:
        """Play, print, write and draw."""
        from estragon.support.parameters import Plan
        from estragon.trainers.evaluation import evaluate, grid_of
        from estragon.trainers.players import open_player
        from estragon.trainers.settings import use_one_thread

        check_span("--episodes", self.episodes, 1, 10_000_000)
        check_span("--cells", self.cells, 1, 100)
        for path in (self.json_file, self.chart):
            if path is not None:
                ensure_writable(path)
        plan = grid_of(Plan.read(self.parameters), self.cells)
        if self.chart is not None and not plan.edges:
            raise UserError(f"--chart: {self.parameters} has no uniform or log_uniform parameter")
        settings = self._settings()
        use_one_thread()
        with (
            open_player(self.model, settings, plan) as player,
            counting("playing", " episodes") as report,
        ):
            found = evaluate(
                player,
                plan,
                self.episodes,
                success_key=self.success,
                max_steps=self.max_steps,
                report=report,
            )
        about = {"model": self.model, "game": settings.env_path, "scene": settings.scene}
        result = about | {"parameters": str(self.parameters), "seed": self.seed} | found
        self._print(result)
        if self.json_file is not None:
            write_json(self.json_file, result)
            print(f"wrote {self.json_file}")
        if self.chart is not None:
            from estragon.show.charts.cells import draw_cells
            from estragon.show.charts.draw import write_figure

            print(f"wrote {write_figure(self.chart, draw_cells(result))}")

    def _settings(self) -> Any:
        from estragon.trainers.players import game_settings

        return game_settings(
            self.model,
            self.game,
            scene=self.scene,
            action_repeat=self.action_repeat,
            seed=self.seed,
            n_parallel=self.n_parallel,
            trust=self.trust,
        )

    def _print(self, result: dict[str, Any]) -> None:
        success = result.get("success_rate")
        rate = "" if success is None else f", success {success:.1%}"
        print(
            f"{self.model}: return {result['return']:.3f} (std {result['return_std']:.3f}){rate} "
            f"over {result['episodes']} episodes"
        )
        if result["axes"]:
            for measure, cells in result["cells"].items():
                print(f"\n{MEASURES[measure]}\n{_table(result['axes'], cells)}")


def _table(axes: list[dict[str, Any]], cells: list[Any]) -> str:
    """A row per cell of the first parameter, a column per cell of the second."""
    first, *rest = axes
    columns = _spans(rest[0]) if rest else [""]
    heads = [f"{first['name']} \\ {rest[0]['name']}" if rest else first["name"], *columns]
    rows = [heads]
    for span, row in zip(_spans(first), cells, strict=True):
        values = row if rest else [row]
        rows.append([span, *("-" if value is None else f"{value:.2f}" for value in values)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = ("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _spans(axis: dict[str, Any]) -> list[str]:
    edges = axis["edges"]
    return [f"{low:.3g}..{high:.3g}" for low, high in itertools.pairwise(edges)]
