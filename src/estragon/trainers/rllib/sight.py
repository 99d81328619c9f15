"""What an agent sees as one array, which all networks of RLlib take."""

from typing import Any

import numpy as np
from gymnasium import spaces

from estragon.support.errors import UserError
from estragon.trainers.spaces import has_images, is_image


def plain_space(sees: spaces.Dict) -> spaces.Box:
    """Of numbers: all of them in a row, choices as ones among zeros; of an image: 0 to 1."""
    if image := only_image(sees):
        return spaces.Box(0.0, 1.0, image.shape, np.float32)
    if has_images(sees):
        raise UserError(
            "RLlib's own networks see either numbers or one image: choose with key under "
            f"env_config in the YAML file ({', '.join(sees.spaces)})"
        )
    parts = [_bounds(part) for part in sees.spaces.values()]
    low, high = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    return spaces.Box(low, high, dtype=np.float32)


def plain(sees: spaces.Dict, seen: dict[str, Any]) -> np.ndarray:
    """An observation in that form."""
    if only_image(sees):
        (key,) = sees.spaces
        scaled: np.ndarray = np.asarray(seen[key], np.float32) / np.float32(255.0)
        return scaled
    return np.concatenate([_row(part, seen[key]) for key, part in sees.spaces.items()])


def only_image(sees: spaces.Dict) -> spaces.Space[Any] | None:
    """The image that is all there is to see, if that is so."""
    parts = list(sees.spaces.values())
    return parts[0] if len(parts) == 1 and is_image(parts[0]) else None


def _row(part: spaces.Space[Any], value: Any) -> np.ndarray:
    if isinstance(part, spaces.Discrete):
        chosen: np.ndarray = np.eye(int(part.n), dtype=np.float32)[int(value)]
        return chosen
    return np.asarray(value, np.float32).reshape(-1)


def _bounds(part: spaces.Space[Any]) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(part, spaces.Discrete):
        return np.zeros(int(part.n), np.float32), np.ones(int(part.n), np.float32)
    if not isinstance(part, spaces.Box):
        raise TypeError(f"no space of a game: {part}")
    return part.low.reshape(-1), part.high.reshape(-1)
