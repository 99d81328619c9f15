"""The reward of VR navigation: progress towards the goal, paid better the more comfortable it is.

Bonuses for smooth and comfortable movement are paid per metre that the agent is nearer to its goal
than ever before: paid per step, creeping or going to and fro would earn more than arriving. The
game has the same formula, and adds it up every tick; in a maze it measures along the corridors.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from estragon.spacetime.config import ActionConfig, RewardConfig
from estragon.spacetime.observation import SLICES

STEP_SEC = 6 / 90
"""Duration of a step: 6 ticks at 90 Hz."""
FAST_TURN, FAST_MOVE, TILTED_RAD = 0.7, 0.8, 0.3
"""Above these a movement is uncomfortable: shares of the fastest turn and move, and a roll."""
LOW_ACCELERATION = 2.0
"""m/s²; below it a movement is smooth."""
_AT = {name: part.start for name, part in SLICES.items()}
_ROTATION, _VELOCITY = _AT["camera_rotation"], _AT["camera_velocity"]
_TURN, _DISTANCE = _AT["camera_angular_velocity"], _AT["goal_distance"]


class RewardCalculator:
    """Subclass it and pass it to training; `calculate_reward` or `terms` may be overridden.

    One of these calculates the rewards of one agent; `begin_episode` is called when it starts over.
    Observations are the 48 numbers of `observation.FIELDS`, not normalized. `info` is the game's:
    collision, goal_reached, timeout, fell, teleports.
    """

    def __init__(
        self, rewards: RewardConfig | None = None, actions: ActionConfig | None = None
    ) -> None:
        self.rewards = rewards or RewardConfig()
        self.actions = actions or ActionConfig()
        self.last_terms: dict[str, float] = {}
        """The parts of the last reward, for the record."""
        self.nearest = math.inf
        """The shortest distance to the goal in this episode."""
        self._fast_move = FAST_MOVE * self.actions.max_movement_speed
        self._fast_turn = FAST_TURN * math.radians(self.actions.max_rotation_speed)

    def begin_episode(self, observation: np.ndarray) -> None:
        """An episode starts with this observation."""
        self.nearest = float(observation[_DISTANCE])

    def calculate_reward(
        self,
        observation: np.ndarray,
        action: np.ndarray,
        next_observation: np.ndarray,
        done: bool,
        info: Mapping[str, Any],
    ) -> float:
        """The reward of one step."""
        self.last_terms = self.terms(observation, action, next_observation, done, info)
        return sum(self.last_terms.values())

    def terms(
        self,
        observation: np.ndarray,
        action: np.ndarray,
        next_observation: np.ndarray,
        done: bool,
        info: Mapping[str, Any],
    ) -> dict[str, float]:
        """The parts of the reward, by name."""
        weights = self.rewards
        before, after = float(observation[_DISTANCE]), float(next_observation[_DISTANCE])
        gained = max(min(self.nearest, before) - after, 0.0)
        self.nearest = min(self.nearest, before, after)
        found = {"progress": weights.progress * (before - after)}
        if gained:
            comfort = self.comfort_score(next_observation)
            found["comfort_bonus"] = weights.comfort_bonus * comfort * gained
            if self.acceleration(observation, next_observation) < LOW_ACCELERATION:
                found["smooth_movement"] = weights.smooth_movement * gained
        if info.get("goal_reached"):
            found["goal_reached"] = weights.goal_reached
        if info.get("collision"):
            found["collision_penalty"] = weights.collision_penalty
        if info.get("fell"):
            found["fall_penalty"] = weights.fall_penalty
        if info.get("timeout"):
            found["timeout_penalty"] = weights.timeout_penalty
        if info.get("teleported") and info.get("teleports", 0) > self.actions.free_teleports:
            found["teleport_penalty"] = weights.teleport_penalty
        return found

    def comfort_score(self, observation: np.ndarray) -> float:
        """1 for a movement that nobody gets sick of, down to 0.3."""
        x, y, z, w = observation[_ROTATION : _ROTATION + 4].tolist()
        comfort = 1.0
        if abs(float(observation[_TURN + 1])) > self._fast_turn:
            comfort -= 0.3
        if self._speed(observation) > self._fast_move:
            comfort -= 0.2
        if abs(roll(x, y, z, w)) > TILTED_RAD:
            comfort -= 0.2
        return comfort

    def acceleration(self, observation: np.ndarray, next_observation: np.ndarray) -> float:
        """m/s² between two observations."""
        x1, y1, z1 = observation[_VELOCITY : _VELOCITY + 3].tolist()
        x2, y2, z2 = next_observation[_VELOCITY : _VELOCITY + 3].tolist()
        return math.hypot(x2 - x1, y2 - y1, z2 - z1) / STEP_SEC

    def _speed(self, observation: np.ndarray) -> float:
        return math.hypot(*observation[_VELOCITY : _VELOCITY + 3].tolist())


def roll(x: float, y: float, z: float, w: float) -> float:
    """How far a head leans to a side, in radians: the height of its own right-hand axis."""
    return math.asin(min(max(2.0 * (x * y + z * w), -1.0), 1.0))
