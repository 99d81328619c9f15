"""`estragon onnx bench`: how long a decision takes, in onnxruntime and in Godot."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from estragon.onnx.bench import BATCHES, bench_file, format_bench
from estragon.support.files import ensure_writable, write_json
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class OnnxBenchCommand:
    """Measure a model in onnxruntime and in Godot: alone, in batches, and its slowest nodes."""

    model: Annotated[Path, tyro.conf.Positional]
    """The `.onnx` file."""
    batch: tuple[int, ...] = BATCHES
    """Numbers of agents that are decided at once."""
    seconds: float = 1.0
    """How long each figure is measured."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Also write the result to this file."""

    def run(self) -> None:
        """Measure, print, and write."""
        check_span("--seconds", self.seconds, 0.01, 600)
        for batch in self.batch:
            check_span("--batch", batch, 1, 65_536)
        if self.json_file is not None:
            ensure_writable(self.json_file)
        found = bench_file(self.model, batches=self.batch or BATCHES, seconds=self.seconds)
        print("\n".join(format_bench(found)))
        if self.json_file is not None:
            write_json(self.json_file, found)
