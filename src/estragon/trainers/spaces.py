"""Observation and action spaces: in words, as plain data, and how ONNX files are checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

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


def random_numbers(
    part: spaces.Space[Any], shape: tuple[int, ...], random: np.random.Generator
) -> np.ndarray:
    """Random observations of one key, as float32: choices, pixels or numbers."""
    if isinstance(part, spaces.Discrete):
        return random.integers(int(part.n), size=shape).astype(np.float32)
    if is_image(part):
        return random.integers(256, size=shape).astype(np.float32)
    return random.normal(size=shape).astype(np.float32)


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
        worst = max(worst, float(apart.max()))
    if worst > TOLERANCE:
        raise UserError(f"the ONNX file does not act like the model, by {worst:.2g}; not written")
