"""ONNX models over operators, opsets and shapes, each with the inputs it is tried on."""

import dataclasses
import functools
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

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
    absolute: float = 1e-5
    relative: float = 1e-4


def single(
    op: str,
    opset: int,
    given: Sequence[np.ndarray | None],
    *,
    constants: Sequence[int] = (),
    outputs: int = 1,
    tag: str = "",
    absolute: float = 1e-5,
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
    return Case(name, model, [inputs], absolute)


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


UNARY = {
    "Abs": (-3, 3),
    "Acos": (-1, 1),
    "Acosh": (1.1, 9),
    "Asin": (-1, 1),
    "Asinh": (-3, 3),
    "Atan": (-3, 3),
    "Atanh": (-0.9, 0.9),
    "Ceil": (-3, 3),
    "Celu": (-3, 3),
    "Cos": (-9, 9),
    "Cosh": (-3, 3),
    "Elu": (-3, 3),
    "Erf": (-3, 3),
    "Exp": (-5, 5),
    "Floor": (-3, 3),
    "Gelu": (-3, 3),
    "HardSigmoid": (-4, 4),
    "HardSwish": (-5, 5),
    "Identity": (-3, 3),
    "IsInf": (-3, 3),
    "IsNaN": (-3, 3),
    "LeakyRelu": (-3, 3),
    "Log": (0.01, 9),
    "Mish": (-5, 5),
    "Neg": (-3, 3),
    "Reciprocal": (0.1, 3),
    "Relu": (-3, 3),
    "Round": (-3, 3),
    "Selu": (-3, 3),
    "Sigmoid": (-8, 8),
    "Sign": (-3, 3),
    "Sin": (-9, 9),
    "Sinh": (-3, 3),
    "Softplus": (-8, 8),
    "Softsign": (-3, 3),
    "Sqrt": (0, 9),
    "Tan": (-1.2, 1.2),
    "Tanh": (-4, 4),
    "ThresholdedRelu": (-3, 3),
    "Flatten": (-3, 3),
}
BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Min", "Max", "Sum", "Mean", "Mod")
COMPARING = ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
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


def unary(opset: int) -> Iterator[Case]:
    """Operators of one number."""
    for op, (low, high) in UNARY.items():
        if not exists(op, opset):
            continue
        for shape in SHAPES:
            if op == "Flatten" and not shape:
                continue
            data = Random(f"{op}{shape}").floats(*shape, low=low, high=high)
            if op in ("IsNaN", "IsInf") and data.size > 2:
                data.ravel()[:3] = np.nan, np.inf, -np.inf
            yield single(op, opset, [data])
    data = Random("unary").floats(3, 5)
    for op in ("LeakyRelu", "Elu", "ThresholdedRelu", "Celu"):
        if exists(op, opset):
            yield single(op, opset, [data], tag="alpha", alpha=0.3)
    yield single("Selu", opset, [data], tag="both", alpha=1.2, gamma=0.7)
    yield single("HardSigmoid", opset, [data], tag="both", alpha=0.4, beta=0.1)
    if exists("Gelu", opset):
        yield single("Gelu", opset, [data], tag="tanh", approximate="tanh")
    if exists("IsInf", opset):
        infinite = np.array([np.inf, -np.inf, 1.0], np.float32)
        yield single("IsInf", opset, [infinite], tag="negative", detect_positive=0)
    yield single("Not", opset, [data > 0])
    for op in ("Abs", "Neg", "Sign"):
        yield single(op, opset, [Random(op).ints(2, 3)], tag="int")
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], np.float32)
    if exists("Round", opset):
        yield single("Round", opset, [halves], tag="halves")


def binary(opset: int) -> Iterator[Case]:
    """Operators of two numbers."""
    for op in BINARY:
        for left, right in PAIRS:
            if op == "PRelu" and left != np.broadcast_shapes(left, right):
                continue
            if op == "Mod" and opset < 10:
                continue
            random = Random(f"{op}{left}{right}")
            a, b = random.floats(*left), random.floats(*right)
            if op in ("Div", "Mod"):
                b = np.where(np.abs(b) < 0.2, 1.0, b).astype(np.float32)
            if op == "Pow":
                a = np.asarray(np.abs(a) + 0.1, dtype=np.float32)
            yield single(op, opset, [a, b], fmod=1 if op == "Mod" else None)
    for op in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Mod", "Pow"):
        if (op == "Mod" and opset < 10) or (op in ("Min", "Max", "Pow") and opset < 12):
            continue
        random = Random(op)
        a, b = random.ints(3, 4), random.ints(4, low=1, high=4)
        yield single(op, opset, [a, b], tag="int64")
        if op != "Pow":
            yield single(op, opset, [a.astype(np.int32), b.astype(np.int32)], tag="int32")
    for op in ("Min", "Max", "Sum", "Mean"):
        random = Random(op)
        three = [random.floats(2, 3), random.floats(3), random.floats(2, 1)]
        yield single(op, opset, three, tag="three")
        yield single(op, opset, three[:1], tag="one")
    for op in COMPARING:
        if not exists(op, opset) or (op == "Equal" and opset < 11):
            continue
        for left, right in PAIRS:
            random = Random(f"{op}{left}")
            a, b = random.ints(*left, low=0, high=3), random.ints(*right, low=0, high=3)
            yield single(op, opset, [a.astype(np.float32), b.astype(np.float32)])
            yield single(op, opset, [a, b], tag="int")
    for op in ("And", "Or", "Xor"):
        random = Random(op)
        yield single(op, opset, [random.floats(3, 4) > 0, random.floats(4) > 0])


def products(opset: int) -> Iterator[Case]:
    """Matrix products, with weights in the file and without."""
    for rows, depth, width in ((1, 5, 3), (2, 8, 8), (3, 84, 64), (5, 70, 130), (1, 1, 1)):
        random = Random(f"gemm{depth}")
        a, b, c = random.floats(rows, depth), random.floats(depth, width), random.floats(width)
        for constants in ((), (1, 2)):
            tag = "stored" if constants else ""
            yield single("MatMul", opset, [a, b], constants=constants, tag=tag, absolute=1e-4)
            given = [a, b, c]
            yield single("Gemm", opset, given, constants=constants, tag=tag, absolute=1e-4)
            turned = [a, np.ascontiguousarray(b.T), c]
            yield single(
                "Gemm", opset, turned, constants=constants, tag=f"{tag}B", transB=1, absolute=1e-4
            )
            other = [np.ascontiguousarray(a.T), b, random.floats(rows, width)]
            yield single(
                "Gemm",
                opset,
                other,
                constants=constants,
                tag=f"{tag}A",
                transA=1,
                alpha=0.5,
                beta=2.0,
                absolute=1e-4,
            )
        if opset >= 11:
            yield single("Gemm", opset, [a, b], constants=(1,), tag="bare", absolute=1e-4)
    random = Random("matmul")
    for left, right in (
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((4,), (4, 3)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 1, 3, 4), (5, 4, 2)),
    ):
        for constants in ((), (1,)):
            yield single(
                "MatMul",
                opset,
                [random.floats(*left), random.floats(*right)],
                constants=constants,
                tag="stored" if constants else "",
            )
    yield from layers(opset)


def layers(opset: int) -> Iterator[Case]:
    """Layers whose bias and activation are nodes of their own."""
    for activation in ("Relu", "Tanh", "Sigmoid"):
        random = Random(activation)
        arrays = {"x": random.floats(3, 6), "w": random.floats(6, 9), "b": random.floats(9)}
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
            helper.make_node("Add", ["b", "y"], ["z"], "bias"),
            helper.make_node(activation, ["z"], ["out"], "activation"),
        ]
        for outputs in (["out"], ["out", "y"], ["z", "out"]):
            model = wrap(nodes, arrays, {"w", "b"}, opset, outputs)
            name = f"layer-{activation}-{opset}-{'_'.join(outputs)}"
            yield Case(name, model, [{"x": arrays["x"]}])


def shapes(opset: int) -> Iterator[Case]:
    """Operators on shapes and places."""
    random = Random("shapes")
    x = random.floats(2, 3, 4)

    def ints(*values: int) -> np.ndarray:
        return np.array(values, np.int64)

    for target in ((6, 4), (2, -1), (0, 12), (-1,), (1, 2, 3, 4)):
        yield single("Reshape", opset, [x, ints(*target)], constants=(1,), tag=str(target))
    yield single("Reshape", opset, [x, ints(4, 6)], tag="given")
    for axis in (0, 1, 2, 3, -1):
        if axis >= 0 or opset >= 11:
            yield single("Flatten", opset, [x], tag=f"axis{axis}", axis=axis)
    yield single("Shape", opset, [x])
    yield single("Size", opset, [x])
    if opset >= 15:
        yield single("Shape", opset, [x], tag="part", start=1, end=-1)
    thin = random.floats(1, 3, 1, 2)
    for axes in ([0], [2], [0, 2], [-2]):
        if min(axes) < 0 and opset < 11:
            continue
        if opset < 13:
            yield single("Squeeze", opset, [thin], tag=str(axes), axes=axes)
            yield single("Unsqueeze", opset, [x], tag=str(axes), axes=axes)
        else:
            given = [thin, ints(*axes)]
            yield single("Squeeze", opset, given, constants=(1,), tag=str(axes))
            yield single("Unsqueeze", opset, [x, ints(*axes)], constants=(1,), tag=str(axes))
    yield single("Squeeze", opset, [thin], tag="all")
    for perm in (None, [1, 0, 2], [2, 0, 1]):
        yield single("Transpose", opset, [x], tag=str(perm), perm=perm)
        yield single("Transpose", opset, [random.ints(2, 3, 4)], tag=f"int{perm}", perm=perm)
    for target in ((2, 3, 4), (5, 2, 3, 4), (1, 1, 1)):
        yield single("Expand", opset, [x, ints(*target)], constants=(1,), tag=str(target))
    yield single("Expand", opset, [random.floats(3, 1), ints(2, 3, 4)], tag="both")
    yield single("Tile", opset, [x, ints(2, 1, 3)], constants=(1,))
    for axis in (0, 1, -1):
        picks = random.ints(2, 2, low=0, high=2)
        yield single("Gather", opset, [x, picks], constants=(1,), tag=f"axis{axis}", axis=axis)
        if axis == 0 or opset >= 11:
            yield single("Gather", opset, [x, ints(1)], tag=f"one{axis}", axis=axis)
    yield single("Gather", opset, [x, np.array(1)], constants=(1,), tag="scalar", axis=1)
    if opset >= 11:
        yield single("Gather", opset, [x, ints(-1)], constants=(1,), tag="back", axis=1)
        picks = random.ints(2, 2, 4, low=0, high=3)
        yield single("GatherElements", opset, [x, picks], axis=1)
        updates = random.floats(1, 2, 4)
        where = np.array([[[0] * 4, [2] * 4]])
        yield single("ScatterElements", opset, [x, where, updates], axis=1)
        yield single("GatherND", opset, [x, np.array([[0, 1], [1, 2]])])
        yield single("ScatterND", opset, [x, np.array([[0, 1], [1, 2]]), random.floats(2, 4)])
        yield single("CumSum", opset, [x, np.array(1)], constants=(1,))
        yield single("CumSum", opset, [x, np.array(-1)], tag="back", reverse=1, exclusive=1)
        yield single(
            "Range",
            opset,
            [np.array(1.0, np.float32), np.array(4.0, np.float32), np.array(0.5, np.float32)],
        )
        yield single("Range", opset, [np.array(7), np.array(-3), np.array(-3)], tag="int")
        yield single("OneHot", opset, [ints(0, 2, -1), np.array(3), random.floats(2)], axis=-1)
        yield single(
            "OneHot", opset, [ints(0, 2, 1), np.array(4), random.floats(2)], tag="front", axis=0
        )
    if opset >= 10:
        for values in (
            ([1], [3], [1], None),
            ([0, -3], [2, -1], [0, 2], None),
            ([-1, 0], [-9, 4], [1, 2], [-1, 2]),
            ([0], [2**40], [2], [3]),
        ):
            lists = [ints(*v) if v is not None else None for v in values]
            yield single("Slice", opset, [x, *lists], constants=(1, 2, 3, 4), tag=str(values[0]))
            yield single("Slice", opset, [x, *lists], tag=f"given{values[0]}")
        yield single("TopK", opset, [x, ints(2)], outputs=2, axis=-1)
        yield single("TopK", opset, [x, ints(2)], outputs=2, tag="axis1", axis=1)
    else:
        yield single("Slice", opset, [x], tag="a", starts=[1, -2], ends=[9, 3], axes=[1, 2])
    if exists("Trilu", opset):
        yield single("Trilu", opset, [x], upper=1)
        yield single("Trilu", opset, [x, np.array(1)], tag="low", upper=0)
    yield from pieces(opset, x)


def pieces(opset: int, x: np.ndarray) -> Iterator[Case]:
    """Joining, splitting, choosing, filling."""
    random = Random("pieces")
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
        parts = {"num_outputs": 2} if opset >= 18 else {}
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
    for value in (np.float32(2.5), np.arange(6).reshape(2, 3)):
        tensor = numpy_helper.from_array(np.asarray(value))
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
    yield from bounds(opset, x)


def bounds(opset: int, x: np.ndarray) -> Iterator[Case]:
    """Clip and Pad, whose bounds moved from attributes to inputs."""
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


def reductions(opset: int) -> Iterator[Case]:
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
        for axis in (None, 0, 1, 2, -1):
            if axis != -1 or opset >= 11:
                yield single(op, opset, [x], tag=str(axis), axis=axis)
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


def images(opset: int) -> Iterator[Case]:
    """Convolutions and pools."""
    random = Random("images")
    image = random.floats(2, 3, 9, 8)
    kinds: list[dict[str, Any]] = [
        {},
        {"strides": [2, 2]},
        {"pads": [1, 1, 1, 1]},
        {"pads": [0, 1, 2, 1], "strides": [2, 1]},
        {"dilations": [2, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "VALID"},
    ]
    for index, kind in enumerate(kinds):
        weights = [random.floats(5, 3, 3, 2), random.floats(5)]
        yield single("Conv", opset, [image, *weights], constants=(1, 2), tag=str(index), **kind)
        if not (opset < 10 and "dilations" in kind):
            pool = {**kind, "kernel_shape": [3, 2]}
            yield single("MaxPool", opset, [image], tag=str(index), **pool)
        if "dilations" not in kind:
            pool = {**kind, "kernel_shape": [3, 2]}
            yield single("AveragePool", opset, [image], tag=str(index), **pool)
            padded = {**pool, "count_include_pad": 1}
            yield single("AveragePool", opset, [image], tag=f"pad{index}", **padded)
    yield single("Conv", opset, [image, random.floats(5, 3, 3, 2)], tag="given")
    grouped = [random.floats(6, 1, 3, 3), random.floats(6)]
    yield single("Conv", opset, [image, *grouped], constants=(1, 2), tag="groups", group=3)
    line = [random.floats(2, 4, 11), random.floats(3, 4, 5), random.floats(3)]
    yield single("Conv", opset, line, constants=(1, 2), tag="line", kernel_shape=[5], strides=[2])
    solid = [random.floats(1, 2, 4, 4, 4), random.floats(3, 2, 2, 2, 2)]
    yield single("Conv", opset, solid, constants=(1,), tag="solid")
    yield single("GlobalAveragePool", opset, [image])
    yield single("GlobalMaxPool", opset, [image])
    if opset >= 10:
        yield single(
            "MaxPool", opset, [image], tag="ceil", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1
        )
        if opset >= 19:
            yield single(
                "AveragePool",
                opset,
                [image],
                tag="ceil",
                kernel_shape=[3, 3],
                strides=[2, 2],
                ceil_mode=1,
            )


def recurrent(opset: int) -> Iterator[Case]:
    """Networks with a memory."""
    steps, batch, width, hidden = 4, 3, 5, 6
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction in ("forward", "reverse", "bidirectional"):
            ways = 2 if direction == "bidirectional" else 1
            random = Random(f"{op}{direction}")
            x = random.floats(steps, batch, width)
            weights = [
                random.floats(ways, gates * hidden, width, low=-1, high=1),
                random.floats(ways, gates * hidden, hidden, low=-1, high=1),
                random.floats(ways, 2 * gates * hidden, low=-1, high=1),
            ]
            state = random.floats(ways, batch, hidden)
            lengths = np.array([4, 2, 3], np.int32)
            tail = [state] if op != "LSTM" else [state, random.floats(ways, batch, hidden)]
            common: dict[str, Any] = {
                "direction": direction,
                "hidden_size": hidden,
                "outputs": 3 if op == "LSTM" else 2,
            }
            yield single(op, opset, [x, *weights], constants=(1, 2, 3), tag=direction, **common)
            given = [x, *weights, None, *tail]
            yield single(op, opset, given, constants=(1, 2, 3), tag=f"{direction}state", **common)
            given = [x, *weights, lengths, *tail]
            yield single(op, opset, given, tag=f"{direction}lengths", **common)
            bare = [x, *weights[:2]]
            yield single(op, opset, bare, constants=(1, 2), tag=f"{direction}bare", **common)
            if op == "GRU":
                given = [x, *weights, lengths, *tail]
                yield single(
                    op,
                    opset,
                    given,
                    constants=(1, 2, 3),
                    tag=f"{direction}after",
                    linear_before_reset=1,
                    **common,
                )
            if op == "LSTM":
                given = [x, *weights, None, *tail, random.floats(ways, 3 * hidden)]
                yield single(
                    op, opset, given, constants=(1, 2, 3), tag=f"{direction}peep", **common
                )


def quantized(opset: int) -> Iterator[Case]:
    """What int8 quantization emits."""
    if opset < 11:
        return
    random = Random("quantized")
    x = random.floats(3, 6)
    scale, zero = np.array(0.02, np.float32), np.array(120, np.uint8)
    yield single("DynamicQuantizeLinear", opset, [x], outputs=3)
    yield single("DynamicQuantizeLinear", opset, [np.abs(x)], outputs=3, tag="positive")
    yield single("QuantizeLinear", opset, [x, scale, zero], constants=(1, 2))
    yield single("QuantizeLinear", opset, [x, scale, np.array(3, np.int8)], tag="int8")
    codes = random.ints(3, 6, low=0, high=256, dtype=np.uint8)
    yield single("DequantizeLinear", opset, [codes, scale, zero], constants=(1, 2))
    if opset >= 13:
        scales, zeros = random.floats(6, low=0.1, high=1), random.ints(6, dtype=np.int8)
        signed = random.ints(3, 6, low=-128, high=128, dtype=np.int8)
        yield single("DequantizeLinear", opset, [signed, scales, zeros], tag="axis", axis=1)
        yield single("QuantizeLinear", opset, [x, scales, zeros], tag="axis", axis=1)
    for depth in (6, 300):
        left = random.ints(3, depth, low=0, high=256, dtype=np.uint8)
        # onnxruntime's products of full range saturate on processors without VNNI
        right = random.ints(depth, 4, low=-60, high=60, dtype=np.int8)
        given = [left, right, zero, np.array(2, np.int8)]
        yield single("MatMulInteger", opset, given, constants=(1, 2, 3))
        yield single("MatMulInteger", opset, [left, right], tag="bare")
        zeros = random.ints(4, dtype=np.int8)
        given = [left, right, zero, zeros]
        yield single("MatMulInteger", opset, given, constants=(1, 3), tag="columns")
    image = random.ints(2, 3, 6, 5, low=0, high=256, dtype=np.uint8)
    kernel = random.ints(4, 3, 3, 3, low=0, high=256, dtype=np.uint8)
    given = [image, kernel, zero, np.array(128, np.uint8)]
    yield single("ConvInteger", opset, given, constants=(1, 2, 3), pads=[1, 1, 1, 1])


FAMILIES = (
    unary,
    binary,
    products,
    shapes,
    reductions,
    images,
    recurrent,
    quantized,
)


def corpus(opsets: Sequence[int] = OPSETS) -> Iterator[Case]:
    """Every case of these opsets."""
    for opset in opsets:
        for family in FAMILIES:
            yield from family(opset)
