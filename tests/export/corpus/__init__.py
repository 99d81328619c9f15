"""ONNX models over operators, opsets and shapes."""

from collections.abc import Iterator, Sequence

from tests.export.corpus.cases import OPSETS, Case
from tests.export.corpus.networks import images, quantized, recurrent
from tests.export.corpus.numbers import binary, unary
from tests.export.corpus.pieces import bounds, pieces
from tests.export.corpus.places import places
from tests.export.corpus.products import layers, products
from tests.export.corpus.sums import sums

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
