"""Observation and action spaces: in words, as plain data, and how ONNX files are checked."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from estragon.onnx.metadata import Ports
from estragon.onnx.torch_export import TOLERANCE
from estragon.support.errors import UserError


def describe(space: spaces.Space[Any]) -> str:
    """For example obs: 18 numbers."""
    match space:
        case spaces.Dict():
            return ", ".join(f"{key}: {describe(part)}" for key, part in space.spaces.items())
        case spaces.Box() if is_image(space):
            return f"an image of {'×'.join(map(str, sorted(space.shape, reverse=True)))}"
        case spaces.Box():
            return f"{'×'.join(map(str, space.shape)) or '1'} numbers"
        case spaces.Discrete():
            return f"one of {space.n} choices"
        case spaces.MultiDiscrete():
            return " and ".join(f"one of {count} choices" for count in space.nvec.tolist())
    return str(space)


def to_plain(space: spaces.Space[Any]) -> dict[str, Any]:
    """As JSON; infinite bounds are left out."""
    match space:
        case spaces.Dict():
            return {"dict": {key: to_plain(part) for key, part in space.spaces.items()}}
        case spaces.Box():
            plain: dict[str, Any] = {"box": list(space.shape), "dtype": str(space.dtype)}
            for name, bound in (("low", space.low), ("high", space.high)):
                if np.isfinite(bound).all():
                    plain[name] = bound.min().item() if np.ptp(bound) == 0 else bound.tolist()
            return plain
        case spaces.Discrete():
            return {"discrete": int(space.n)}
        case spaces.MultiDiscrete():
            return {"multi_discrete": space.nvec.tolist()}
    raise TypeError(f"not a space of a game: {space}")


def from_plain(plain: dict[str, Any]) -> spaces.Space[Any]:
    """The space of `to_plain`."""
    match plain:
        case {"dict": parts}:
            # Not a plain dict: Gymnasium would sort its keys.
            return spaces.Dict([(key, from_plain(part)) for key, part in parts.items()])
        case {"box": shape, "dtype": kind}:
            dtype: Any = {"float32": np.float32, "uint8": np.uint8}[kind]
            low, high = (
                np.broadcast_to(np.array(plain.get(name, usual), dtype), shape).copy()
                for name, usual in (("low", -np.inf), ("high", np.inf))
            )
            return spaces.Box(low, high, dtype=dtype)
        case {"discrete": count}:
            return spaces.Discrete(count)
        case {"multi_discrete": counts}:
            return spaces.MultiDiscrete(counts)
    raise ValueError(f"not a space: {plain}")


def is_image(space: spaces.Space[Any]) -> bool:
    """Whether it is an image."""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3


def has_images(space: spaces.Space[Any]) -> bool:
    """Whether it is or holds an image."""
    if isinstance(space, spaces.Dict):
        return any(is_image(part) for part in space.spaces.values())
    return is_image(space)


def game_shape(part: spaces.Space[Any]) -> tuple[int, ...]:
    """Shape of an observation as a game sends it: images have their channels last."""
    if isinstance(part, spaces.Discrete):
        return (1,)
    shape = tuple(part.shape or ())
    return (*shape[1:], shape[0]) if is_image(part) else shape


def as_ports(parts: Mapping[str, spaces.Space[Any]], shapes: Sequence[Sequence[int]]) -> Ports:
    """Observations for the metadata of an ONNX file."""
    return {
        key: {"space": "discrete", "size": [int(part.n)]}
        if isinstance(part, spaces.Discrete)
        else {"space": "box", "size": list(shape)}
        for (key, part), shape in zip(parts.items(), shapes, strict=True)
    }


def action_layout(does: spaces.Space[Any]) -> list[dict[str, Any]]:
    """Of a trainer that does not know the game's keys: type and size of each action."""
    match does:
        case spaces.Box():
            return [{"action_type": "continuous", "size": int(np.prod(does.shape))}]
        case spaces.Discrete():
            return [{"action_type": "discrete", "size": int(does.n)}]
        case spaces.MultiDiscrete():
            return [{"action_type": "discrete", "size": size} for size in does.nvec.tolist()]
    raise UserError(f"games have no actions like {does}")


CHECKED = ((1, 5), (7, 5), (32, 5), (128, 8))
"""Batches and steps in which an ONNX file is compared with its policy: 1,224 observations."""
HUGE = 1e6
LARGE = 100.0
"""Outputs above this are compared by their share, not by their difference."""
SPREADS = (0.1, 1.0, 10.0, 100.0)


def checked_observations(
    parts: Mapping[str, spaces.Space[Any]],
    shapes: Sequence[tuple[int, ...]],
    random: np.random.Generator,
) -> Iterator[tuple[bool, list[np.ndarray]]]:
    """Batches of observations to compare policies on, (batch, *shape) float32 of each part.

    The first steps of a batch are random, the last ones of the largest batch are edges: zeros,
    ones, bounds, single numbers and huge ones. Yields whether a new batch begins.
    """
    for batch, steps in CHECKED:
        for step in range(steps):
            is_edge = batch == CHECKED[-1][0] and step >= steps // 2
            draw = _edges if is_edge else _random_numbers
            yield (
                step == 0,
                [
                    draw(part, (batch, *shape), random)
                    for part, shape in zip(parts.values(), shapes, strict=True)
                ],
            )


def _random_numbers(
    part: spaces.Space[Any], shape: tuple[int, ...], random: np.random.Generator
) -> np.ndarray:
    """Random observations of one key, as float32: choices, pixels or numbers."""
    if isinstance(part, spaces.Discrete):
        return random.integers(int(part.n), size=shape).astype(np.float32)
    if is_image(part):
        return random.integers(256, size=shape).astype(np.float32)
    return random.normal(size=shape).astype(np.float32)


def _edges(
    part: spaces.Space[Any], shape: tuple[int, ...], random: np.random.Generator
) -> np.ndarray:
    """Observations that are unusual, in random order."""
    batch, *size = shape
    if isinstance(part, spaces.Discrete):
        return np.resize(np.arange(int(part.n)), shape).astype(np.float32)
    count = int(np.prod(size))
    rows = np.zeros((batch, count), np.float32)
    if is_image(part):
        rows[1], rows[2], rows[3, ::2], rows[4, 1::2] = 255.0, 1.0, 255.0, 255.0
        rows[5:] = 255.0 * (random.random((batch - 5, count)) < random.random((batch - 5, 1)))
        return rows[random.permutation(batch)].reshape(shape)
    low, high = (_finite(bound, count) for bound in (part.low, part.high))  # type: ignore[attr-defined]
    rows[1:9] = np.array([1.0, -1.0, 1e-30, HUGE, -HUGE, 1e3, -1e3, 0.5])[:, None]
    rows[9], rows[10], rows[11, ::2], rows[12, 1::2] = low, high, high[::2], low[1::2]
    ones = min(count, 32)
    rows[np.arange(13, 13 + ones), random.permutation(count)[:ones]] = 1.0
    rest = batch - 13 - ones
    rows[13 + ones :] = random.normal(size=(rest, count)) * random.choice(SPREADS, (rest, 1))
    return rows[random.permutation(batch)].reshape(shape)


def _finite(bound: np.ndarray, count: int) -> np.ndarray:
    flat = np.resize(np.asarray(bound, np.float64), count)
    return np.clip(flat, -HUGE, HUGE).astype(np.float32)


def check_outputs(
    output: np.ndarray, actions: np.ndarray, layout: Sequence[tuple[str, int]]
) -> None:
    """Raise a UserError unless the outputs of a policy's ONNX file mean the policy's actions.

    Args:
        output: (batch, numbers) as games decode it: scores of choices; means, then perhaps log
            standard deviations of continuous actions.
        actions: (batch, numbers), choices or continuous actions.
        layout: continuous or discrete, and size, of each action.
    """
    if not np.isfinite(output).all():
        raise UserError("the ONNX file returns NaN or infinity; not written")
    # A number of a million is rounded by more than a number of one.
    largest = np.maximum(1.0, np.abs(output).max(axis=1, keepdims=True) / LARGE)
    continuous = sum(size for kind, size in layout if kind == "continuous")
    has_stds = 0 < continuous == output.shape[1] - sum(size for _, size in layout)
    worst = 0.0
    for kind, size in layout:
        part, output = output[:, :size], output[:, size:]
        if kind == "continuous":
            taken, actions = actions[:, :size], actions[:, size:]
            output = output[:, size:] if has_stds else output
            apart = np.abs(np.clip(part, -1.0, 1.0) - taken)
        else:
            chosen, actions = actions[:, :1].astype(int), actions[:, 1:]
            apart = part.max(axis=1, keepdims=True) - np.take_along_axis(part, chosen, axis=1)
        worst = max(worst, float((apart / largest).max()))
    if worst > TOLERANCE:
        raise UserError(f"the ONNX file does not act like the model, by {worst:.2g}; not written")
