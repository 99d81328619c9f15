"""Where a run keeps its files; no run writes into the folder of another."""

import dataclasses
from pathlib import Path

from estragon.errors import UserError


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """`<experiment_dir>/<experiment_name>_<number>/`, with TensorBoard's events in it."""

    path: Path

    @property
    def model(self) -> Path:
        """The model at the end of the run."""
        return self.path / "model.zip"

    @property
    def manifest(self) -> Path:
        """What was asked for, and how it ended."""
        return self.path / "run.json"

    @property
    def game_logs(self) -> Path:
        """What the games said."""
        return self.path / "games"

    def checkpoint(self, steps: int) -> Path:
        """The model after so many steps."""
        return self.path / "checkpoints" / f"rl_model_{steps}_steps.zip"


def new_run_folder(root: Path, name: str) -> RunFolder:
    """The first number that nobody has used."""
    if Path(name).name != name:
        raise UserError(f"experiment_name: expected a name, not a path, got '{name}'")
    number = 1
    while True:
        folder = root / f"{name}_{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if not root.is_dir():
                raise UserError(f"experiment_dir: {root} is no folder") from None
            number += 1
        except OSError as error:
            raise UserError(f"cannot make {folder}: {error.strerror or error}") from error
        else:
            return RunFolder(folder)
