"""`estragon plot`: the charts of a training run."""

import dataclasses
import importlib.util
from pathlib import Path
from typing import Annotated

from estragon.errors import UserError
from estragon.options import optional

LATEST_RUN = Path("trainer", "logs", "latest_run.txt")
"""A file with one line: the folder of the newest run."""


@dataclasses.dataclass(frozen=True)
class DrawCharts:
    """Draw the charts of a training run: reward, length, wins, strength, losses."""

    run_folder: Annotated[Path | None, optional("DIR", "run")] = None
    """The folder of the run; by default the newest, as trainer/logs/latest_run.txt names it."""
    output: Path = Path("charts")
    """The folder for the pictures."""

    def run(self) -> None:
        """Draw, write, and list what was written."""
        folder = latest_run() if self.run_folder is None else self.run_folder
        if importlib.util.find_spec("matplotlib") is None:
            raise UserError("charts need matplotlib: pip install 'estragon[train]'")
        from estragon.show.charts import draw_charts

        for path in draw_charts(folder, self.output):
            print(f"wrote {path}")


def latest_run(pointer: Path = LATEST_RUN) -> Path:
    """The folder that `latest_run.txt` names, absolute or from where that file lies."""
    try:
        named = pointer.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"no run given and no {pointer} to name one; give --run DIR") from error
    if not named or "\n" in named:
        raise UserError(f"{pointer}: expected one line, the folder of a run; or give --run DIR")
    return pointer.parent / named
