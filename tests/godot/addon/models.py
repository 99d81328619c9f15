"""Small policies as `.onnx` files, of which every number is known."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shapes = dict[str, list[Any]]
"""By input or output; a name for a size that is free."""


def linear(
    path: Path,
    weights: Sequence[Sequence[float]],
    bias: Sequence[float] = (),
    *,
    names: Sequence[str] = ("obs",),
    value: float | None = None,
) -> Path:
    """`output` = all observations side by side × weights + bias; `value` is always the same."""
    matrix = np.asarray(weights, np.float32)
    width = matrix.shape[0] // len(names)
    nodes = [
        helper.make_node("Concat", list(names), ["all"], axis=1),
        helper.make_node("Gemm", ["all", "weights", "bias"], ["output"]),
    ]
    constants = {"weights": matrix, "bias": np.asarray(bias or [0.0] * matrix.shape[1], np.float32)}
    outputs: Shapes = {"output": ["batch", matrix.shape[1]]}
    if value is not None:
        constants |= {"none": np.zeros((matrix.shape[0], 1), np.float32)}
        constants |= {"worth": np.asarray([value], np.float32)}
        nodes.append(helper.make_node("Gemm", ["all", "none", "worth"], ["value"]))
        outputs["value"] = ["batch", 1]
    return _write(path, nodes, {name: ["batch", width] for name in names}, outputs, constants)


def constant(path: Path, *numbers: float, sees: int = 2) -> Path:
    """Says the same whatever it sees."""
    return linear(path, [[0.0] * len(numbers)] * sees, numbers)


def echo(path: Path) -> Path:
    """Says what it saw two decisions ago: impossible without a memory."""
    nodes = [
        helper.make_node("Split", ["state_ins"], ["output", "later"], axis=1),
        helper.make_node("Concat", ["later", "obs"], ["state_outs"], axis=1),
    ]
    inputs = {"obs": ["batch", 1], "state_ins": ["batch", 2]}
    outputs = {"output": ["batch", 1], "state_outs": ["batch", 2]}
    return _write(path, nodes, inputs, outputs, {})


def unsupported(path: Path) -> Path:
    nodes = [helper.make_node("Det", ["obs"], ["output"], name="odd")]
    return _write(path, nodes, {"obs": ["batch", 2]}, {"output": ["batch", 2]}, {})


def heavy(path: Path, layers: int = 6, width: int = 512) -> Path:
    """Takes a while: says how much it saw."""
    constants = {"in": np.ones((1, width), np.float32) / width}
    constants |= {"same": np.eye(width, dtype=np.float32), "out": np.ones((width, 1), np.float32)}
    nodes = [helper.make_node("MatMul", ["obs", "in"], ["x0"])]
    nodes += [
        helper.make_node("MatMul", [f"x{layer}", "same"], [f"x{layer + 1}"])
        for layer in range(layers)
    ]
    nodes.append(helper.make_node("MatMul", [f"x{layers}", "out"], ["output"]))
    return _write(path, nodes, {"obs": ["batch", 1]}, {"output": ["batch", 1]}, constants)


def _write(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: Shapes,
    outputs: Shapes,
    constants: dict[str, np.ndarray],
) -> Path:
    def ports(shapes: Shapes) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in shapes.items()
        ]

    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "policy", ports(inputs), ports(outputs), weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path
