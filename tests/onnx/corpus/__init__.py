"""ONNX models over operators, opsets and shapes."""

from collections.abc import Iterator, Sequence

from tests.onnx.corpus.cases import OPSETS, Case
from tests.onnx.corpus.networks import images, quantized, recurrent
from tests.onnx.corpus.numbers import binary, unary
from tests.onnx.corpus.pieces import bounds, pieces
from tests.onnx.corpus.places import places
from tests.onnx.corpus.products import layers, products
from tests.onnx.corpus.sums import sums

FAMILIES = (
    unary,
    binary,
    products,
    layers,
    places,
    pieces,
    bounds,
    sums,
    images,
    recurrent,
    quantized,
)


def corpus(opsets: Sequence[int] = OPSETS) -> Iterator[Case]:
    """Every case of these opsets."""
    for opset in opsets:
        for family in FAMILIES:
            yield from family(opset)
