"""Matrix products, and the layers they are part of."""

from collections.abc import Iterator

import numpy as np
from onnx import helper

from tests.onnx.corpus.cases import Case, Random, single, wrap


def products(opset: int) -> Iterator[Case]:
    """Matrix products, with weights in the file and without."""
    for rows, depth, width in ((1, 5, 3), (2, 8, 8), (3, 84, 64), (5, 70, 130), (1, 1, 1)):
        random = Random(f"gemm{depth}")
        a, b, c = random.floats(rows, depth), random.floats(depth, width), random.floats(width)
        for constants in ((), (1, 2)):
            tag = "stored" if constants else ""
            yield single("MatMul", opset, [a, b], constants=constants, tag=tag)
            given = [a, b, c]
            yield single("Gemm", opset, given, constants=constants, tag=tag)
            turned = [a, np.ascontiguousarray(b.T), c]
            yield single("Gemm", opset, turned, constants=constants, tag=f"{tag}B", transB=1)
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
            )
        if opset >= 11:
            yield single("Gemm", opset, [a, b], constants=(1,), tag="bare")
    random = Random("matmul")
    for left, right in (
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((4,), (4, 3)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 1, 3, 4), (5, 4, 2)),
    ):
        for stored in ((), (1,)):
            yield single(
                "MatMul",
                opset,
                [random.floats(*left), random.floats(*right)],
                constants=stored,
                tag="stored" if stored else "",
            )


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
