"""The 48 numbers that a navigating rig observes, by name, and how they are preprocessed.

Lengths are in metres, speeds in m/s and rad/s. Goal and rays are in the head's yaw frame.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from estragon.support.errors import UserError

RAYS = 16
RAY_RANGE = 5.0
FIELDS: dict[str, int] = {
    "camera_position": 3,
    "camera_rotation": 4,
    "camera_velocity": 3,
    "camera_angular_velocity": 3,
    "ray_sensors": RAYS,
    "left_controller_position": 3,
    "left_controller_velocity": 3,
    "right_controller_position": 3,
    "right_controller_velocity": 3,
    "goal_position": 3,
    "goal_distance": 1,
    "goal_direction": 3,
}
"""Name → how many numbers, in the order of the vector."""
SIZE = sum(FIELDS.values())
_ENDS = np.cumsum(list(FIELDS.values())).tolist()
SLICES: dict[str, slice] = {
    name: slice(end - size, end) for (name, size), end in zip(FIELDS.items(), _ENDS, strict=True)
}
SCALES: dict[str, float] = {
    "camera_position": 30.0,
    "camera_rotation": 1.0,
    "camera_velocity": 2.0,
    "camera_angular_velocity": np.pi / 2,
    "ray_sensors": RAY_RANGE,
    "left_controller_position": 2.0,
    "left_controller_velocity": 2.0,
    "right_controller_position": 2.0,
    "right_controller_velocity": 2.0,
    "goal_position": 30.0,
    "goal_distance": 30.0,
    "goal_direction": 1.0,
}
"""What `normalize` divides by."""
_SCALE = np.concatenate([np.full(size, SCALES[name]) for name, size in FIELDS.items()])


def to_vector(observation: Mapping[str, Any]) -> np.ndarray:
    """(48,) float32 from the object that `GET /rl/observation` returns."""
    parts = []
    for name, size in FIELDS.items():
        if name not in observation:
            raise UserError(f"the observation has no {name}")
        part = np.asarray(observation[name], np.float32).reshape(-1)
        if len(part) != size:
            raise UserError(f"{name}: expected {size} numbers, got {len(part)}")
        parts.append(part)
    return np.concatenate(parts)


def to_fields(vector: np.ndarray) -> dict[str, np.ndarray]:
    """Views of a vector by name; also of the last axis of a batch."""
    return {name: vector[..., part] for name, part in SLICES.items()}


def normalize(vector: np.ndarray, limit: float = 1.0) -> np.ndarray:
    """Scaled to about −1 to 1 and cut off at `limit`; a fixed scale, unlike a running mean."""
    scaled: np.ndarray = np.clip(vector / _SCALE, -limit, limit)
    return scaled.astype(np.float32)


class ActionSmoother:
    """An exponential filter: `smoothing` is the share of the previous action in the next one."""

    def __init__(self, smoothing: float) -> None:
        if not 0.0 <= smoothing < 1.0:
            raise UserError(f"smoothing: expected 0 to 1, got {smoothing}")
        self.smoothing = smoothing
        self._last: np.ndarray | None = None

    def reset(self) -> None:
        """Forget the previous action; the next one passes unchanged."""
        self._last = None

    def smooth(self, action: np.ndarray) -> np.ndarray:
        """The filtered action."""
        action = np.asarray(action, np.float32)
        if self._last is not None:
            action = self.smoothing * self._last + (1.0 - self.smoothing) * action
        self._last = action
        return action
