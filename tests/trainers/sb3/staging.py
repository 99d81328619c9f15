"""`estragon train sb3` on small games, in this very process."""

import json
from pathlib import Path
from typing import Any

from estragon.cli import main

SHORT = ["--timesteps", "64", "--n_steps", "8", "--batch_size", "8", "--policy_layers", "8"]
REPLAY = ["--learning_starts", "16", "--buffer_size", "200"]


def train(game: Path | str, *words: str, short: bool = True) -> int:
    """The exit code."""
    return main(["train", "sb3", "--env_path", str(game), *(SHORT if short else []), *words])


def model_path(folder: Path, run: str = "experiment_1") -> Path:
    """Of a run in that folder."""
    return folder / "logs" / "sb3" / run / "model.zip"


def manifest(folder: Path, run: str = "experiment_1") -> dict[str, Any]:
    """What was written down of a run."""
    found: dict[str, Any] = json.loads((model_path(folder, run).with_name("run.json")).read_text())
    return found
