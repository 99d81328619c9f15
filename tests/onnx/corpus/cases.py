"""A case of the corpus: a model of one node, or few, and the inputs it is tried on."""

import dataclasses
import functools
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSETS = (9, 11, 13, 17, 18, 21)
SHAPES: tuple[tuple[int, ...], ...] = ((), (5,), (1, 7), (3, 4), (2, 3, 4), (2, 1, 3, 5))
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((3, 1), (1, 4)),
    ((2, 3, 4), (3, 1)),
    ((), (2, 3)),
    ((2, 1, 4), (5, 1)),
)


@dataclasses.dataclass
class Case:
    """A model, and inputs to try it on."""

    name: str
    model: onnx.ModelProto
    inputs: list[dict[str, np.ndarray]]


def single(
    op: str,
    opset: int,
    given: Sequence[np.ndarray | None],
    *,
    constants: Sequence[int] = (),
    outputs: int = 1,
    tag: str = "",
    **attributes: Any,
) -> Case:
    """A model of one node; inputs numbered in `constants` are stored in the file."""
    names = [f"in{index}" if array is not None else "" for index, array in enumerate(given)]
    while names and not names[-1]:
        names.pop()
    kept = {key: value for key, value in attributes.items() if value is not None}
    node = helper.make_node(op, names, [f"out{index}" for index in range(outputs)], op, **kept)
    arrays = {name: array for name, array in zip(names, given, strict=False) if array is not None}
    stored = {names[index] for index in constants if index < len(names) and names[index]}
    shapes = "_".join("x".join(map(str, a.shape)) or "s" for a in arrays.values())
    name = f"{op}-{opset}-{shapes}{'-' + tag if tag else ''}"
    model = wrap([node], arrays, stored, opset, [f"out{index}" for index in range(outputs)])
    inputs = {key: array for key, array in arrays.items() if key not in stored}
    return Case(name, model, [inputs])


def wrap(
    nodes: Sequence[onnx.NodeProto],
    arrays: dict[str, np.ndarray],
    stored: set[str],
    opset: int,
    outputs: Sequence[str],
) -> onnx.ModelProto:
    """A model; the shapes and types of its outputs are left to the engines."""
    graph = helper.make_graph(
        list(nodes),
        "corpus",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in arrays.items()
            if name not in stored
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(arrays[name], name) for name in sorted(stored)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8 if opset < 21 else 10
    return onnx.shape_inference.infer_shapes(model)


def exists(op: str, opset: int) -> bool:
    """Whether an opset has this operator."""
    return _since(op) <= opset


@functools.cache
def _since(op: str) -> int:
    versions = [
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.name == op and not schema.domain
    ]
    return min(versions, default=10_000)


class Random:
    """Numbers that are the same for the same name."""

    def __init__(self, name: str) -> None:
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    def floats(self, *shape: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
        return np.asarray(self._random.uniform(low, high, shape), dtype=np.float32)

    def ints(self, *shape: int, low: int = -5, high: int = 6, dtype: Any = np.int64) -> np.ndarray:
        return self._random.integers(low, high, shape).astype(dtype)
