"""Convolutions, pools, memories and what quantization emits."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.onnx.corpus.cases import Case, Random, single


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
        # of the whole range onnxruntime's own sums saturate on processors without VNNI
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
