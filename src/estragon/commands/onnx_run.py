"""`estragon onnx run`: what a model is, and what it computes in either engine."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from estragon.onnx.compare import about_file, run_once
from estragon.onnx.metadata import describe
from estragon.support.options import optional


@dataclasses.dataclass(frozen=True)
class OnnxRunCommand:
    """Run a model once and print its outputs as JSON; without inputs, print what the model is."""

    model: Annotated[Path, tyro.conf.Positional]
    """The `.onnx` file."""
    inputs: Annotated[Path | None, optional("FILE")] = None
    """A JSON file: an object that maps the name of each input to a nested list."""
    engine: Literal["godot", "onnxruntime"] = "godot"
    """The engine that runs it."""

    def run(self) -> None:
        """Run, print."""
        about = about_file(self.model)
        if self.inputs is None:
            print(json.dumps(about, indent=2))
            return
        print(f"{self.model}: {describe(about['metadata'])}", file=sys.stderr)
        print(json.dumps(run_once(self.model, self.inputs, self.engine)))
