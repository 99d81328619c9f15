"""Random inputs that a model can take."""

import numpy as np

from estragon.onnx.engines import Port

BATCHES = (1, 2, 5)


def random_inputs(ports: list[Port], random: np.random.Generator) -> dict[str, np.ndarray]:
    """Numbers for every input; sizes of the same name are the same, the first is the batch's."""
    batch = int(random.choice(BATCHES))
    sizes: dict[str, int] = {}
    inputs = {}
    for port in ports:
        shape = [
            size
            if isinstance(size, int)
            else batch
            if axis == 0 or size is None
            else sizes.setdefault(size, batch)
            for axis, size in enumerate(port.shape)
        ]
        inputs[port.name] = _numbers(port, shape, random)
    return inputs


def _numbers(port: Port, shape: list[int], random: np.random.Generator) -> np.ndarray:
    if "seq_lens" in port.name:
        return np.ones(shape, dtype=port.dtype)
    if port.dtype.kind == "f":
        return random.normal(size=shape).astype(port.dtype)
    if port.dtype == np.uint8:
        return random.integers(0, 256, shape).astype(port.dtype)
    return random.integers(0, 2, shape).astype(port.dtype)
