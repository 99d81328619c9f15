"""How long a decision of an ONNX file takes in onnxruntime and in Godot, and what takes it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estragon.onnx.compare import GodotRuntime, OnnxRuntime, random_inputs
from estragon.onnx.metadata import describe, read_metadata
from estragon.support.errors import UserError

BATCHES = (1, 8, 32)
SHOWN = 5


def bench_file(
    model: Path,
    *,
    batches: Sequence[int] = BATCHES,
    seconds: float = 1.0,
    engines: tuple[OnnxRuntime, GodotRuntime] | None = None,
) -> dict[str, Any]:
    """Microseconds of a run by engine and batch, and each engine's steps, the slowest first.

    `seconds` is how long each figure is measured; the fewest microseconds count.
    """
    if not model.is_file():
        raise UserError(f"no file {model}")
    read_metadata(model)
    if engines is None:
        with GodotRuntime() as godot:
            return _measure(model, batches, seconds, OnnxRuntime(), godot)
    return _measure(model, batches, seconds, *engines)


def _measure(
    model: Path,
    batches: Sequence[int],
    seconds: float,
    runtime: OnnxRuntime,
    godot: GodotRuntime,
) -> dict[str, Any]:
    runtime.load(model)
    godot.load(model)
    is_free = all(not isinstance(port.shape[0], int) for port in runtime.inputs if port.shape)
    random = np.random.default_rng(0)
    rows = []
    for batch in batches if is_free else [1]:
        inputs = random_inputs(runtime.inputs, random, batch)
        rows.append(
            {
                "batch": batch,
                "onnxruntime_usec": runtime.time(inputs, seconds),
                "godot_usec": godot.time(inputs, seconds),
            }
        )
    alone = random_inputs(runtime.inputs, random, 1)
    return {
        "file": str(model),
        "bytes": model.stat().st_size,
        "about": describe(read_metadata(model)),
        "latency": rows,
        "onnxruntime_steps": runtime.profile(alone, seconds),
        "godot_steps": godot.profile(alone, seconds),
    }


def format_bench(found: dict[str, Any]) -> list[str]:
    """The result of `bench_file`, line by line."""
    lines = [f"{found['file']}: {found['bytes'] / 1000:.0f} kB, {found['about']}", ""]
    lines.append("agents   onnxruntime          Godot                (µs a decision, µs an agent)")
    for row in found["latency"]:
        batch = row["batch"]
        cells = [
            f"{row[key]:9,.1f} {row[key] / batch:8,.1f}"
            for key in ("onnxruntime_usec", "godot_usec")
        ]
        lines.append(f"{batch:<6} {cells[0]:>20} {cells[1]:>20}")
    for engine, steps in (
        ("Godot", found["godot_steps"]),
        ("onnxruntime", found["onnxruntime_steps"]),
    ):
        total = sum(usec for _, usec in steps) or 1.0
        lines += ["", f"slowest in {engine} (one agent)"]
        lines += [f"{usec:9,.0f} µs {usec / total:4.0%}  {name}" for name, usec in steps[:SHOWN]]
    return lines
