"""`estragon tune`: search for the best hyperparameters for a game."""

import dataclasses

from estragon.trainers.sb3.settings import TuneSettings


@dataclasses.dataclass(frozen=True)
class TuneCommand(TuneSettings):
    """Search for hyperparameters with Optuna; bad trials are pruned.

    The study is saved in a file: the same command continues it, and several processes can share it.
    """

    def run(self) -> int:
        """Search, and report."""
        self.check()
        from estragon.trainers.sb3.tune import tune

        return tune(self)
