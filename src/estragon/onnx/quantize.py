"""Smaller policies: int8 by onnxruntime's own quantiser, calibrated on real observations.

Weights become int8, one scale for each output, of which they use 7 bits: where the processor adds
up products in 16 bits, as those without VNNI do, sums of 8 bits do not fit. Activations are rounded
to 256 steps between the least and the largest that calibration saw. Everything else stays as it is.
"""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estragon.onnx.bench import bench_file
from estragon.onnx.compare import GodotRuntime, OnnxRuntime
from estragon.onnx.metadata import with_metadata
from estragon.support.errors import UserError

INT8 = "int8"
QUANTIZED = ("Conv", "Gemm", "MatMul")
CALIBRATED, COMPARED = 512, 4096
"""Batches that calibrate, and observations on which actions are compared, at most."""
LEAST = 16
OPSET = 13
"""The oldest with a scale for each output."""
BENCH_SEC = 0.5

Feed = Mapping[str, np.ndarray]
"""The inputs of one run."""


def quantized(model: bytes, feeds: Sequence[Feed]) -> bytes:
    """The content of an ONNX file in int8, for real inputs that come before many a decision."""
    from onnxruntime import quantization

    if len(feeds) < LEAST:
        raise UserError(f"int8 needs at least {LEAST} observations to calibrate, got {len(feeds)}")

    class Reader(quantization.CalibrationDataReader):
        """Hands the inputs out, one after another."""

        def __init__(self) -> None:
            chosen = np.linspace(0, len(feeds) - 1, min(len(feeds), CALIBRATED)).astype(int)
            self._left = iter([dict(feeds[index]) for index in chosen])

        def get_next(self) -> dict[str, Any] | None:
            return next(self._left, None)

    logging.getLogger().addFilter(_is_no_advice)
    try:
        with tempfile.TemporaryDirectory(prefix="estragon-") as folder:
            source, target = Path(folder) / "model.onnx", Path(folder) / "int8.onnx"
            source.write_bytes(_checked(model))
            quantization.quantize_static(
                str(source),
                str(target),
                Reader(),
                quant_format=quantization.QuantFormat.QDQ,
                op_types_to_quantize=[*QUANTIZED, "Relu"],
                per_channel=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                reduce_range=True,
            )
            return with_metadata(target.read_bytes(), {"quantization": INT8})
    finally:
        logging.getLogger().removeFilter(_is_no_advice)


def _is_no_advice(record: logging.LogRecord) -> bool:
    """The quantiser advises to run a preprocessing of its own, which these graphs do not need."""
    return (
        "quant_pre_process" not in record.getMessage() and "pre-process" not in record.getMessage()
    )


def _checked(model: bytes) -> bytes:
    import onnx

    loaded = onnx.load_from_string(model)
    opset = max(each.version for each in loaded.opset_import if each.domain in ("", "ai.onnx"))
    if opset < OPSET:
        raise UserError(f"int8 needs opset {OPSET} or newer, got {opset} (--opset)")
    if not any(node.op_type in QUANTIZED for node in loaded.graph.node):
        raise UserError(f"the model has nothing to quantize ({', '.join(QUANTIZED)})")
    return model


def cost(
    original: Path, smaller: Path, engines: tuple[OnnxRuntime, GodotRuntime] | None = None
) -> dict[str, Any]:
    """Bytes of both files, and microseconds of a decision in both engines."""
    found: dict[str, Any] = {}
    for name, path in (("original", original), ("smaller", smaller)):
        figures = bench_file(path, batches=(1,), seconds=BENCH_SEC, engines=engines)
        found[name] = {"bytes": figures["bytes"], **figures["latency"][0]}
    return found


def describe_cost(found: Mapping[str, Any]) -> str:
    """For example 60 → 18 kB, onnxruntime 18 → 21 µs, Godot 435 → 610 µs."""
    before, after = found["original"], found["smaller"]
    return (
        f"{before['bytes'] / 1000:.0f} → {after['bytes'] / 1000:.0f} kB, onnxruntime "
        f"{before['onnxruntime_usec']:.0f} → {after['onnxruntime_usec']:.0f} µs, Godot "
        f"{before['godot_usec']:,.0f} → {after['godot_usec']:,.0f} µs"
    )


def outputs_of(model: Path, feeds: Sequence[Feed], output: str = "output") -> np.ndarray:
    """(rows, numbers) of all inputs, the last ones if there are very many."""
    runtime = OnnxRuntime()
    runtime.load(model)
    return np.concatenate([runtime.run(feed)[output] for feed in feeds[-COMPARED:]])
