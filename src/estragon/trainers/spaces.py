"""Observation and action spaces: described in words, and as plain data for files."""

from typing import Any

import numpy as np
from gymnasium import spaces


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
