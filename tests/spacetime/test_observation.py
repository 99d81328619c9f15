"""The 48 numbers, by name and in order."""

import numpy as np
import pytest

from estragon.spacetime.observation import (
    FIELDS,
    SIZE,
    ActionSmoother,
    normalize,
    to_fields,
    to_vector,
)
from estragon.support.errors import UserError


def test_the_order_is_that_of_the_contract() -> None:
    assert SIZE == 48
    assert list(FIELDS)[:5] == [
        "camera_position",
        "camera_rotation",
        "camera_velocity",
        "camera_angular_velocity",
        "ray_sensors",
    ]
    assert list(FIELDS)[-3:] == ["goal_position", "goal_distance", "goal_direction"]


def test_names_and_numbers_both_ways() -> None:
    vector = np.arange(48, dtype=np.float32)
    fields = to_fields(vector)
    assert fields["goal_distance"].tolist() == [44.0]
    assert fields["ray_sensors"].tolist() == list(range(13, 29))
    said = {name: part.tolist() for name, part in fields.items()} | {"collision": False}
    said["goal_distance"] = 44.0
    assert (to_vector(said) == vector).all()
    with pytest.raises(UserError, match="ray_sensors: expected 16 numbers, got 2"):
        to_vector(said | {"ray_sensors": [1, 2]})
    del said["camera_position"]
    with pytest.raises(UserError, match="no camera_position"):
        to_vector(said)


def test_normalization() -> None:
    vector = np.zeros(48, np.float32)
    vector[13:29] = 5.0
    vector[44] = 15.0
    found = normalize(vector)
    assert found[13:29].tolist() == [1.0] * 16
    assert found[44] == 0.5
    assert np.abs(normalize(vector * 100)).max() == 1.0


def test_smoothing() -> None:
    smoother = ActionSmoother(0.25)
    assert smoother.smooth(np.array([1.0])) == 1.0
    assert smoother.smooth(np.array([0.0])) == 0.25
    assert smoother.smooth(np.array([0.0])) == 0.0625
    smoother.reset()
    assert smoother.smooth(np.array([0.5])) == 0.5
    with pytest.raises(UserError, match="smoothing: expected 0 to 1, got 1"):
        ActionSmoother(1.0)
