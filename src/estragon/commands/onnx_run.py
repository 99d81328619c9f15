"""`estragon onnx run`: run a model once in either engine."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Literal

import tyro

from estragon.onnx.compare import run_once


@dataclasses.dataclass(frozen=True)
class OnnxRunCommand:
    """Run a model once and print its outputs as JSON."""

    model: Annotated[Path, tyro.conf.Positional]
    """The `.onnx` file."""
    inputs: Path
    """A JSON file: an object that maps the name of each input to a nested list."""
    engine: Literal["godot", "onnxruntime"] = "godot"
    """The engine that runs it."""

    def run(self) -> None:
        """Run, print."""
        print(json.dumps(run_once(self.model, self.inputs, self.engine)))
