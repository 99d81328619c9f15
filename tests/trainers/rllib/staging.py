"""`estragon train rllib` on small games, in this very process and on one Ray for all tests."""

import json
from pathlib import Path
from typing import Any

from estragon.cli import main

SHORT = ["--timesteps", "64", "--num_workers", "0", "--fcnet_hiddens", "8"]
ROUNDS = ["--train_batch_size", "32", "--sgd_minibatch_size", "16", "--num_sgd_iter", "1"]


def train(game: Path | str, *words: str) -> int:
    """The exit code."""
    return main(["train", "rllib", "--env_path", str(game), *SHORT, *words])


def run_folder(folder: Path, run: str = "experiment_1") -> Path:
    """Of a run in that folder."""
    return folder / "logs" / "rllib" / run


def manifest(folder: Path, run: str = "experiment_1") -> dict[str, Any]:
    """What was written down of a run."""
    found: dict[str, Any] = json.loads((run_folder(folder, run) / "run.json").read_text())
    return found
