"""Operators of one number and of two."""

from collections.abc import Iterator

import numpy as np

from tests.onnx.corpus.cases import PAIRS, SHAPES, Case, Random, exists, single

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
