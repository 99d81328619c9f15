"""A torch policy as the content of an ONNX file, as games with the addon load it."""

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


def export_policy(
    policy: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    names: list[str],
    *,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    unused_inputs: Sequence[str] = (),
) -> bytes:
    """Trace a policy, which returns its output and new state, on an example of each input.

    Every input and output has a batch of any size. `unused_inputs`, [batch] each, are what games
    send but the policy does not need.
    """
    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise UserError(f"--opset: expected {OPSETS[0]} to {OPSETS[1]}, got {opset}")
    import onnx

    if not 3 <= ir_version <= onnx.IR_VERSION:
        raise UserError(f"--ir-version: expected 3 to {onnx.IR_VERSION}, got {ir_version}")
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # The newer exporter starts at opset 18, which games do not support yet.
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
    model = onnx.load_from_string(stream.getvalue())
    for name in unused_inputs:
        port = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch"])
        model.graph.input.append(port)
    model.ir_version = ir_version
    model.producer_name = "estragon"
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


def session_of(data: bytes) -> Any:
    """The file in onnxruntime, to compare it with its policy."""
    import onnxruntime

    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    return onnxruntime.InferenceSession(data, quiet, providers=["CPUExecutionProvider"])
