"""What policies of all libraries share on their way into an ONNX file."""

import io
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from estragon.support.errors import UserError

OUTPUT, STATE_IN, STATE_OUT = "output", "state_ins", "state_outs"
OPSET, IR_VERSION = 13, 9
OPSETS = (9, 17)
TOLERANCE = 1e-4
CHECKED_BATCHES = (1, 7, 32)


def onnx_library(opset: int, ir_version: int) -> Any:
    """The package `onnx`, if it is there and knows these versions."""
    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise UserError(f"--opset: expected {OPSETS[0]} to {OPSETS[1]}, got {opset}")
    import onnx

    if not 3 <= ir_version <= onnx.IR_VERSION:
        raise UserError(f"--ir-version: expected 3 to {onnx.IR_VERSION}, got {ir_version}")
    return onnx


def traced(
    policy: torch.nn.Module, inputs: Sequence[torch.Tensor], names: list[str], opset: int
) -> bytes:
    """A file's content; every input and output has a batch of any size."""
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # The newer exporter has no operators before version 18, which games do not know yet.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            policy,
            tuple(inputs),
            stream,  # type: ignore[arg-type]  # both exporters write to streams
            dynamo=False,
            opset_version=opset,
            input_names=names,
            output_names=[OUTPUT, STATE_OUT],
            dynamic_axes={name: {0: "batch"} for name in [*names, OUTPUT, STATE_OUT]},
        )
    return stream.getvalue()


def session_of(data: bytes) -> Any:
    """The file in onnxruntime, to be compared with what it was made of."""
    import onnxruntime

    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    return onnxruntime.InferenceSession(data, quiet, providers=["CPUExecutionProvider"])
