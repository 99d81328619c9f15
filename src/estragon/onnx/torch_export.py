"""A torch policy as the content of an ONNX file, as games with the addon load it."""

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from estragon.onnx.metadata import with_metadata
from estragon.support.errors import UserError

OUTPUT, STATE_IN, STATE_OUT = "output", "state_ins", "state_outs"
OPSET, IR_VERSION = 13, 9
OPSETS = (9, 17)
TOLERANCE = 1e-4


def export_policy(
    policy: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    names: list[str],
    *,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    unused_inputs: Sequence[str] = (),
    about: Mapping[str, str] | None = None,
) -> bytes:
    """Trace a policy, which returns its output and new state, on an example of each input.

    Every input and output has a batch of any size. `unused_inputs`, [batch] each, are what games
    send but the policy does not need; `about` is the file's metadata.
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
    model = _without_idle_casts(onnx.load_from_string(stream.getvalue()))
    for name in unused_inputs:
        port = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch"])
        model.graph.input.append(port)
    model.ir_version = ir_version
    model.producer_name = "estragon"
    onnx.checker.check_model(model)
    return with_metadata(model.SerializeToString(), about or {})


def _without_idle_casts(model: Any) -> Any:
    """Without the casts of float32 to float32 that `tensor.float()` leaves behind."""
    import onnx

    known = onnx.shape_inference.infer_shapes(model).graph
    floats = {
        each.name
        for each in (*known.input, *known.value_info, *known.initializer)
        if getattr(each, "data_type", None) == onnx.TensorProto.FLOAT
        or (hasattr(each, "type") and each.type.tensor_type.elem_type == onnx.TensorProto.FLOAT)
    }
    outputs = {port.name for port in model.graph.output}
    renamed: dict[str, str] = {}
    for node in list(model.graph.node):
        for index, name in enumerate(node.input):
            node.input[index] = renamed.get(name, name)
        is_cast = node.op_type == "Cast" and node.attribute[0].i == onnx.TensorProto.FLOAT
        if is_cast and node.output[0] not in outputs and node.input[0] in floats:
            renamed[node.output[0]] = node.input[0]
            model.graph.node.remove(node)
    return model


def session_of(data: bytes) -> Any:
    """The file in onnxruntime, to compare it with its policy."""
    import onnxruntime

    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    return onnxruntime.InferenceSession(data, quiet, providers=["CPUExecutionProvider"])


def state_size(cell: nn.RNNBase) -> int:
    """Numbers of a recurrent layer's state for one agent."""
    parts = 2 if isinstance(cell, nn.LSTM) else 1
    return parts * cell.num_layers * cell.hidden_size


def recurrent_step(
    cell: nn.RNNBase, features: torch.Tensor, state: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step of an LSTM or a GRU in plain products: its output and the next state.

    A state is (batch, numbers): hidden layer by layer, then of an LSTM the cells likewise.
    """
    size, layers = cell.hidden_size, cell.num_layers
    hidden, cells = [], []
    for layer in range(layers):
        before = state[:, layer * size : (layer + 1) * size]
        given = _gates(cell, "ih", layer, features)
        kept = _gates(cell, "hh", layer, before)
        # torch's order: input, forget, cell and output gates; of a GRU reset, update and new
        if isinstance(cell, nn.LSTM):
            memory = state[:, (layers + layer) * size : (layers + layer + 1) * size]
            i, f, g, o = (_part(given + kept, part, size) for part in range(4))
            memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
            features = torch.sigmoid(o) * torch.tanh(memory)
            cells.append(memory)
        else:
            r, z = (torch.sigmoid(_part(given + kept, part, size)) for part in range(2))
            new = torch.tanh(_part(given, 2, size) + r * _part(kept, 2, size))
            features = (1.0 - z) * new + z * before
        hidden.append(features)
    return features, torch.cat([*hidden, *cells], dim=1)


def _gates(cell: nn.RNNBase, kind: str, layer: int, values: torch.Tensor) -> torch.Tensor:
    bias = getattr(cell, f"bias_{kind}_l{layer}") if cell.bias else None
    return nn.functional.linear(values, getattr(cell, f"weight_{kind}_l{layer}"), bias)


def _part(gates: torch.Tensor, part: int, size: int) -> torch.Tensor:
    return gates[:, part * size : (part + 1) * size]
