"""Where a run keeps its files; no run writes into the folder of another."""

import dataclasses
from pathlib import Path

from estragon.support.errors import UserError


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """`<experiment_dir>/<experiment_name>_<number>/`, with TensorBoard's events in it."""

    path: Path

    @property
    def manifest(self) -> Path:
        """What was asked for, and how it ended."""
        return self.path / "run.json"

    @property
    def game_logs(self) -> Path:
        """What the games said."""
        return self.path / "games"


def numbered_folder(root: Path, name: str) -> Path:
    """A new folder with the first number that nobody has used."""
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
            return folder
