"""Every reward term and the comfort score, with the documented numbers."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from estragon.spacetime.config import RewardConfig
from estragon.spacetime.observation import SIZE, SLICES
from estragon.spacetime.rewards import RewardCalculator, roll

STILL = np.zeros(3)


def seen(distance: float = 10.0, **fields: Any) -> np.ndarray:
    vector = np.zeros(SIZE, np.float32)
    vector[SLICES["camera_rotation"]] = (0.0, 0.0, 0.0, 1.0)
    vector[SLICES["goal_distance"]] = distance
    for name, value in fields.items():
        vector[SLICES[name]] = value
    return vector


def terms(before: np.ndarray, after: np.ndarray, **info: Any) -> dict[str, float]:
    return RewardCalculator().terms(before, STILL, after, bool(info), info)


@pytest.mark.parametrize(
    ("info", "term", "value"),
    [
        ({"goal_reached": True}, "goal_reached", 100.0),
        ({"collision": True}, "collision_penalty", -10.0),
        ({"fell": True}, "fall_penalty", -50.0),
        ({"timeout": True}, "timeout_penalty", -20.0),
        ({"teleported": True, "teleports": 4}, "teleport_penalty", -1.0),
    ],
)
def test_what_happens_once(info: dict[str, Any], term: str, value: float) -> None:
    found = terms(seen(), seen(), **info)
    assert found[term] == value
    assert sum(found.values()) == value
    assert term not in terms(seen(), seen())


def test_the_first_teleports_are_free() -> None:
    assert "teleport_penalty" not in terms(seen(), seen(), teleported=True, teleports=3)
    assert "teleport_penalty" not in terms(seen(), seen(), teleported=False, teleports=9)


def test_a_metre_closer() -> None:
    found = terms(seen(10.0), seen(9.0))
    expected = {"progress": 1.0, "comfort_bonus": 2.0, "smooth_movement": 0.1}
    assert found == pytest.approx(expected)


def test_standing_still_and_going_to_and_fro_earn_nothing() -> None:
    assert sum(terms(seen(), seen()).values()) == 0.0
    calculator = RewardCalculator()
    calculator.begin_episode(seen(10.0))
    way = [10.0, 9.0, 10.0, 9.0, 10.0]
    earned = [
        calculator.calculate_reward(seen(before), STILL, seen(after), False, {})
        for before, after in itertools.pairwise(way)
    ]
    assert earned == pytest.approx([3.1, -1.0, 1.0, -1.0])  # the bonuses are paid once
    calculator.begin_episode(seen(10.0))
    assert calculator.calculate_reward(seen(10.0), STILL, seen(9.0), False, {}) > 3.0


def test_a_jolt_is_not_smooth() -> None:
    moving = seen(9.0, camera_velocity=(0.0, 0.0, -1.0))
    assert "smooth_movement" not in terms(seen(10.0), moving)  # 15 m/s²
    assert terms(moving, seen(8.0, camera_velocity=(0.0, 0.0, -1.1)))["smooth_movement"] > 0.0


@pytest.mark.parametrize(
    ("fields", "score"),
    [
        ({}, 1.0),
        ({"camera_angular_velocity": (0.0, 0.69 * math.pi / 2, 0.0)}, 1.0),
        ({"camera_angular_velocity": (0.0, -0.71 * math.pi / 2, 0.0)}, 0.7),
        ({"camera_velocity": (1.59, 0.0, 0.0)}, 1.0),
        ({"camera_velocity": (0.0, 0.0, 1.61)}, 0.8),
        ({"camera_rotation": (0.0, 0.0, math.sin(0.14), math.cos(0.14))}, 1.0),
        ({"camera_rotation": (0.0, 0.0, math.sin(0.16), math.cos(0.16))}, 0.8),
        (
            {
                "camera_angular_velocity": (0.0, 1.5, 0.0),
                "camera_velocity": (2.0, 0.0, 0.0),
                "camera_rotation": (0.0, 0.0, math.sin(0.5), math.cos(0.5)),
            },
            0.3,
        ),
    ],
)
def test_the_comfort_score(fields: dict[str, Any], score: float) -> None:
    assert RewardCalculator().comfort_score(seen(**fields)) == pytest.approx(score)


def test_turning_and_nodding_are_no_roll() -> None:
    half = math.sin(0.4), math.cos(0.4)
    assert roll(0.0, half[0], 0.0, half[1]) == 0.0
    assert roll(half[0], 0.0, 0.0, half[1]) == 0.0
    assert roll(0.0, 0.0, half[0], half[1]) == pytest.approx(0.8)


def test_weights_and_subclasses() -> None:
    class Lazy(RewardCalculator):
        def terms(
            self,
            observation: np.ndarray,
            action: np.ndarray,
            next_observation: np.ndarray,
            done: bool,
            info: Mapping[str, Any],
        ) -> dict[str, float]:
            found = super().terms(observation, action, next_observation, done, info)
            return found | {"effort": -float(np.abs(action).sum())}

    calculator = Lazy(RewardConfig(progress=3.0, comfort_bonus=0.0, smooth_movement=0.0))
    effort = np.array([0.5, -0.5, 0.0])
    reward = calculator.calculate_reward(seen(10.0), effort, seen(9.0), False, {})
    assert reward == pytest.approx(2.0)
    assert calculator.last_terms["effort"] == -1.0
