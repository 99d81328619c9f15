"""Operators that make one number of many, and those that need sums."""

from collections.abc import Iterator

import numpy as np

from tests.onnx.corpus.cases import Case, Random, exists, single

REDUCING = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)


def sums(opset: int) -> Iterator[Case]:
    """Operators that make one number of many, and those that need sums."""
    random = Random("reductions")
    x = random.floats(2, 3, 4)
    for op in REDUCING:
        data = np.abs(x) + 0.1 if op == "ReduceLogSum" else x
        by_input = opset >= (13 if op == "ReduceSum" else 18)
        for axes in (None, [1], [0, 2], [-1]):
            if axes and min(axes) < 0 and opset < 11:
                continue
            for keepdims in (0, 1):
                tag = f"{axes}{keepdims}"
                if by_input:
                    given = [data, np.array(axes)] if axes else [data]
                    yield single(op, opset, given, constants=(1,), tag=tag, keepdims=keepdims)
                else:
                    yield single(op, opset, [data], tag=tag, axes=axes, keepdims=keepdims)
    if opset >= 13:
        yield single("ReduceSum", opset, [x], tag="nothing", noop_with_empty_axes=1)
        yield single("ReduceSum", opset, [random.ints(3, 4)], tag="int")
        yield single("ReduceMax", opset, [random.ints(3, 4)], tag="int")
    for op in ("ArgMax", "ArgMin"):
        ties = random.ints(3, 4, 5, low=0, high=3).astype(np.float32)
        for axis in (0, 1, 2):
            for keepdims in (0, 1):
                tag = f"{axis}{keepdims}"
                yield single(op, opset, [ties], tag=tag, axis=axis, keepdims=keepdims)
        if opset >= 12:
            yield single(op, opset, [ties], tag="last", axis=1, select_last_index=1)
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for along in (None, 0, 1, 2, -1):
            if along != -1 or opset >= 11:
                yield single(op, opset, [x], tag=str(along), axis=along)
        yield single(op, opset, [x * 100], tag="large", axis=1)
    if exists("LayerNormalization", opset):
        scale, shift = random.floats(4), random.floats(4)
        yield single("LayerNormalization", opset, [x, scale, shift])
        yield single("LayerNormalization", opset, [x, scale], tag="bare", epsilon=1e-3)
        both = [x, random.floats(3, 4), random.floats(3, 4)]
        yield single("LayerNormalization", opset, both, tag="axis1", axis=1)
    image = random.floats(2, 3, 4, 5)
    moments = [random.floats(3) for _ in range(3)] + [random.floats(3, low=0.1, high=2.0)]
    yield single("BatchNormalization", opset, [image, *moments], constants=(1, 2, 3, 4))
    yield single("BatchNormalization", opset, [random.floats(4, 3), *moments], tag="flat")
    yield single("InstanceNormalization", opset, [image, *moments[:2]], constants=(1, 2))
