"""Operators on shapes and places."""

from collections.abc import Iterator

import numpy as np

from tests.onnx.corpus.cases import Case, Random, exists, single


def places(opset: int) -> Iterator[Case]:
    """Operators on shapes and places."""
    random = Random("shapes")
    x = random.floats(2, 3, 4)

    def ints(*values: int) -> np.ndarray:
        return np.array(values, np.int64)

    for form in ((6, 4), (2, -1), (0, 12), (-1,), (1, 2, 3, 4)):
        yield single("Reshape", opset, [x, ints(*form)], constants=(1,), tag=str(form))
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
