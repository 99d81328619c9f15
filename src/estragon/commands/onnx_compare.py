"""`estragon onnx compare`: do Godot and onnxruntime compute the same from a model?"""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import tyro

from estragon.onnx.compare import compare_file
from estragon.support.errors import CHECK_FAILED, OK
from estragon.support.options import check_span


@dataclasses.dataclass(frozen=True)
class OnnxCompareCommand:
    """Run a model in Godot and in onnxruntime on the same random inputs, and compare the outputs.

    Exits with 1 if they differ by more than the tolerance.
    """

    model: Annotated[Path, tyro.conf.Positional]
    """The `.onnx` file."""
    samples: int = 32
    """Number of random inputs, in batches of 1, 2 and 5."""
    seed: int = 0
    """Seed of the random inputs."""
    absolute: float = 1e-5
    """Absolute tolerance."""
    relative: float = 1e-4
    """Relative tolerance, added to the absolute one."""

    def run(self) -> int:
        """Compare, print one JSON object."""
        check_span("--samples", self.samples, 1, 1_000_000)
        found = compare_file(self.model, self.samples, self.seed, self.absolute, self.relative)
        agrees = found.pop("agrees")
        print(json.dumps(found))
        return OK if agrees else CHECK_FAILED
