"""Damaged models: what a broken disk, a broken program or a spiteful person may hand over."""

import random as randoms
from collections.abc import Callable

import onnx
from onnx import helper

HUGE = (2**31, 2**40, 2**62, 2**63 - 1, -1, -(2**63), 0, 1, 3, 10**7)


def flip_bits(data: bytes, random: randoms.Random) -> bytes:
    """One to eight bits are wrong."""
    damaged = bytearray(data)
    for _ in range(random.randint(1, 8)):
        damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    return bytes(damaged)


def cut(data: bytes, random: randoms.Random) -> bytes:
    """The end is missing, or some bytes within."""
    start = random.randrange(len(data))
    return data[:start] + (data[start + random.randint(1, 40) :] if random.random() < 0.5 else b"")


def insert(data: bytes, random: randoms.Random) -> bytes:
    """Bytes that do not belong there."""
    start = random.randrange(len(data))
    return data[:start] + random.randbytes(random.randint(1, 20)) + data[start:]


def enlarge(data: bytes, random: randoms.Random) -> bytes:
    """A byte that may be a length, a size or a tag becomes a huge number."""
    start = random.randrange(len(data))
    return data[:start] + _varint(random.choice(HUGE)) + data[start + 1 :]


def repeat(data: bytes, random: randoms.Random) -> bytes:
    """A stretch comes twice, or in another place."""
    start, end = sorted(random.randrange(len(data)) for _ in range(2))
    place = random.randrange(len(data))
    return data[:place] + data[start:end] + data[place:]


def rewire(data: bytes, random: randoms.Random) -> bytes:
    """Nodes read from each other: cycles, wrong types, missing inputs."""
    model = onnx.load_from_string(data)
    graph = model.graph
    names = [name for node in graph.node for name in (*node.input, *node.output)]
    for _ in range(random.randint(1, 3)):
        node = random.choice(graph.node)
        if node.input:
            place = random.randrange(len(node.input))
            node.input[place] = random.choice([*names, "", "nowhere"])
    if random.random() < 0.3:
        random.choice(graph.node).op_type = random.choice(
            [other.op_type for other in graph.node] + ["Loop", "Reshape", "Expand", "Tile", "Conv"]
        )
    return model.SerializeToString()


def resize(data: bytes, random: randoms.Random) -> bytes:
    """Attributes and shapes say something else."""
    model = onnx.load_from_string(data)
    graph = model.graph
    if random.random() < 0.5:
        node = random.choice(graph.node)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.INT:
                attribute.i = random.choice(HUGE)
            elif attribute.type == onnx.AttributeProto.INTS:
                attribute.ints[:] = [random.choice(HUGE) for _ in range(random.randint(0, 5))]
            elif attribute.type == onnx.AttributeProto.FLOAT:
                attribute.f = random.choice([0.0, float("nan"), float("inf"), -1e30])
    for tensor in graph.initializer:
        if random.random() < 0.3:
            tensor.dims[:] = [random.choice(HUGE) for _ in range(random.randint(0, 9))]
        if tensor.data_type == onnx.TensorProto.INT64 and random.random() < 0.7:
            count = len(tensor.raw_data) // 8
            wild = [random.choice(HUGE) for _ in range(count)]
            tensor.raw_data = b"".join(n.to_bytes(8, "little", signed=True) for n in wild)
    for port in graph.input:
        for size in port.type.tensor_type.shape.dim:
            if random.random() < 0.3:
                size.dim_value = random.choice(HUGE)
    return model.SerializeToString()


def chain(data: bytes, random: randoms.Random) -> bytes:
    """Nodes that double what they get, again and again."""
    model = onnx.load_from_string(data)
    graph = model.graph
    last = graph.node[-1].output[0] if graph.node else graph.input[0].name
    for index in range(random.randint(5, 60)):
        graph.node.append(helper.make_node("Concat", [last, last], [f"grown{index}"], axis=0))
        last = f"grown{index}"
    graph.output[0].name = last
    return model.SerializeToString()


MUTATIONS: tuple[Callable[[bytes, randoms.Random], bytes], ...] = (
    flip_bits,
    cut,
    insert,
    enlarge,
    repeat,
    rewire,
    resize,
    chain,
)


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)
