"""The folder of a run of Stable-Baselines3."""

import dataclasses
from pathlib import Path

from estragon.trainers import run_folder


@dataclasses.dataclass(frozen=True)
class RunFolder(run_folder.RunFolder):
    """With a model at the end, and checkpoints on the way."""

    @property
    def model(self) -> Path:
        """The model at the end of the run."""
        return self.path / "model.zip"

    def checkpoint(self, steps: int) -> Path:
        """The model after so many steps."""
        return self.path / "checkpoints" / f"rl_model_{steps}_steps.zip"


def new_run_folder(root: Path, name: str) -> RunFolder:
    """The first number that nobody has used."""
    return RunFolder(run_folder.numbered_folder(root, name))
