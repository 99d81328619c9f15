"""What an agent sees as one array, which all networks of RLlib take."""

from typing import Any

import numpy as np
from gymnasium import spaces

from estragon.errors import UserError
from estragon.learn.backends.spaces import has_images, is_image


def plain_space(sees: spaces.Space[Any]) -> spaces.Box:
    """Of numbers: all of them in a row, choices as ones among zeros; of an image: 0 to 1."""
    if is_image(sees):
        return spaces.Box(0.0, 1.0, sees.shape, np.float32)
    if has_images(sees):
        known = ", ".join(getattr(sees, "spaces", {}))
        raise UserError(
            f"RLlib's own networks see either numbers or one image: choose with env_config key "
            f"in the YAML file ({known})"
        )
    parts = [_bounds(part) for part in parts_of(sees).values()]
    low, high = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    return spaces.Box(low, high, dtype=np.float32)


def plain(sees: spaces.Space[Any], seen: Any) -> np.ndarray:
    """An observation in that form."""
    if is_image(sees):
        scaled: np.ndarray = seen.astype(np.float32) / np.float32(255.0)
        return scaled
    if not isinstance(sees, spaces.Dict):
        return _row(sees, seen)
    return np.concatenate([_row(part, seen[key]) for key, part in sees.spaces.items()])


def parts_of(sees: spaces.Space[Any]) -> dict[str, spaces.Space[Any]]:
    """By key, what is seen."""
    return dict(sees.spaces) if isinstance(sees, spaces.Dict) else {"obs": sees}


def _row(part: spaces.Space[Any], value: Any) -> np.ndarray:
    if isinstance(part, spaces.Discrete):
        return np.eye(int(part.n), dtype=np.float32)[int(value)]
    return np.asarray(value, np.float32).reshape(-1)


def _bounds(part: spaces.Space[Any]) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(part, spaces.Discrete):
        return np.zeros(int(part.n), np.float32), np.ones(int(part.n), np.float32)
    if not isinstance(part, spaces.Box):
        raise TypeError(f"no space of a game: {part}")
    return part.low.reshape(-1), part.high.reshape(-1)
