"""`estragon bench`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from estragon.judge.bench import run_benchmarks
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class BenchCommand:
    """Measure speed on this machine: one row per figure, ratios measured side by side."""

    only: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Run only these programs, by name (for example: engine); by default all."""
    seconds: float = 2.0
    """How long to measure each figure."""
    output: Annotated[Path | None, optional("FILE")] = None
    """Output file; by default benchmarks/results/latest.json, or a file named after the programs if
    only some of them run."""

    def run(self) -> None:
        """Measure, print, write."""
        check_span("--seconds", self.seconds, 0.01, 600.0)
        run_benchmarks(self.only, self.seconds, self.output)
