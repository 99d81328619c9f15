"""The files of a run of Stable-Baselines3 or RLlib."""

from pathlib import Path

from estragon.support.runs import RunFolder


class TrainerRun(RunFolder):
    """`<experiment_dir>/<experiment_name>_<number>/`, with TensorBoard's events in it."""

    @property
    def manifest(self) -> Path:
        """The settings of the run, and how it ended."""
        return self.path / "run.json"

    @property
    def game_logs(self) -> Path:
        """The directory of the games' logs."""
        return self.path / "games"

    @property
    def model(self) -> Path:
        """The SB3 model at the end of the run."""
        return self.path / "model.zip"

    def checkpoint(self, steps: int) -> Path:
        """The SB3 model after so many steps."""
        return self.path / "checkpoints" / f"rl_model_{steps}_steps.zip"
