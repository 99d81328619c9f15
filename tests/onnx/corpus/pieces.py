"""Operators that join, split, choose, fill and bound."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.onnx.corpus.cases import PAIRS, Case, Random, single


def pieces(opset: int) -> Iterator[Case]:
    """Joining, splitting, choosing, filling."""
    random = Random("pieces")
    x = random.floats(2, 3, 4)
    for axis in (0, 1, 2, -1):
        if axis < 0 and opset < 11:
            continue
        yield single("Concat", opset, [x, x + 1, x * 2], tag=f"axis{axis}", axis=axis)
        yield single("Concat", opset, [random.ints(2, 3, 4)] * 2, tag=f"int{axis}", axis=axis)
    yield single("Concat", opset, [x, random.floats(2, 5, 4)], tag="unlike", axis=1)
    if opset < 13:
        yield single("Split", opset, [x], outputs=2, axis=2)
        yield single("Split", opset, [x], outputs=2, tag="sizes", axis=2, split=[1, 3])
    else:
        sizes = np.array([1, 3])
        yield single("Split", opset, [x, sizes], constants=(1,), outputs=2, tag="sizes", axis=2)
        parts: dict[str, Any] = {"num_outputs": 2} if opset >= 18 else {}
        yield single("Split", opset, [x], outputs=2, axis=2, **parts)
        if opset >= 18:
            uneven = random.floats(7, 2)
            yield single("Split", opset, [uneven], outputs=3, tag="uneven", num_outputs=3)
    for left, right in PAIRS:
        chosen = random.floats(*np.broadcast_shapes(left, right)) > 0
        yield single("Where", opset, [chosen, random.floats(*left), random.floats(*right)])
    yield single("Where", opset, [chosen, random.ints(*left), random.ints(*right)], tag="int")
    for kind in (np.float32, np.int64):
        value = helper.make_tensor("v", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [1], [3])
        shape = np.array([2, 3])
        for constants in ((), (0,)):
            yield single(
                "ConstantOfShape",
                opset,
                [shape],
                constants=constants,
                tag=f"{kind.__name__}{constants}",
                value=value,
            )
    yield single("ConstantOfShape", opset, [np.array([4])], tag="plain")
    for array in (np.asarray(np.float32(2.5)), np.arange(6).reshape(2, 3)):
        tensor = numpy_helper.from_array(array)
        yield single("Constant", opset, [], tag=str(tensor.data_type), value=tensor)
    if opset >= 12:
        yield single("Constant", opset, [], tag="float", value_float=1.5)
        yield single("Constant", opset, [], tag="ints", value_ints=[1, 2, 3])
    for source in (
        random.floats(3, 4),
        random.ints(3, 4),
        random.floats(3, 4) > 0,
        random.ints(3, 4, low=0, high=255, dtype=np.uint8),
    ):
        for target in (
            TensorProto.FLOAT,
            TensorProto.INT64,
            TensorProto.INT32,
            TensorProto.BOOL,
            TensorProto.DOUBLE,
            TensorProto.UINT8,
        ):
            if source.dtype == np.float32 and target == TensorProto.UINT8:
                data = np.abs(source)
            elif source.dtype == np.int64 and target == TensorProto.UINT8:
                data = source + 300
            else:
                data = source
            yield single("Cast", opset, [data], tag=f"{source.dtype}{target}", to=target)


def bounds(opset: int) -> Iterator[Case]:
    """Clip and Pad, whose bounds moved from attributes to inputs."""
    x = Random("bounds").floats(2, 3, 4)
    low, high = np.array(-1.0, np.float32), np.array(0.5, np.float32)
    if opset < 11:
        yield single("Clip", opset, [x], min=-1.0, max=0.5)
        yield single("Clip", opset, [x], tag="low", min=-1.0)
        yield single("Pad", opset, [x], pads=[0, 1, 2, 1, 0, 3], value=0.5)
        return
    yield single("Clip", opset, [x, low, high], constants=(1, 2))
    yield single("Clip", opset, [x, None, high], tag="high")
    yield single("Clip", opset, [x, low], tag="low")
    if opset >= 12:
        limits = [np.array(-2), np.array(3)]
        yield single("Clip", opset, [Random("clip").ints(3, 4), *limits], tag="int")
    pads = np.array([0, 1, 2, 1, 0, 3])
    yield single("Pad", opset, [x, pads, low], constants=(1,))
    yield single("Pad", opset, [x, np.array([0, -1, 0, 0, 0, -2])], constants=(1,), tag="cut")
    yield single("Pad", opset, [x, pads], constants=(1,), tag="edge", mode="edge")
    inner = np.array([0, 1, 2, 0, 1, 3])
    yield single("Pad", opset, [x, inner], constants=(1,), tag="reflect", mode="reflect")
    if opset >= 18:
        axes = np.array([-1])
        yield single("Pad", opset, [x, np.array([1, 2]), None, axes], constants=(1, 3), tag="axes")
