"""What can never happen in a match that keeps to its rules, looked for in a logged one."""

import numpy as np

from estragon.show.trajectories.trajectory import Anomaly, Trajectory

DEEPEST_M = 1e-6
"""An overlap above rounding; agents keep a millimetre from everything solid."""


def find_anomalies(trajectory: Trajectory) -> list[Anomaly]:
    """Every logged tick at which an agent is inside something solid, or nowhere at all."""
    depths = _depths(trajectory)
    finite = np.ones(depths.shape[:2], dtype=bool)
    for values in (trajectory.positions, trajectory.velocities, trajectory.forwards):
        finite &= np.isfinite(values).all(axis=2)
    suspect = ~finite | (depths > DEEPEST_M).any(axis=2)
    return [
        Anomaly(
            int(trajectory.ticks[moment]),
            int(agent),
            _tell(depths[moment, agent]) if finite[moment, agent] else "a number is not finite",
        )
        for moment, agent in np.argwhere(suspect)
    ]


def _depths(trajectory: Trajectory) -> np.ndarray:
    """How deep each agent is in each solid thing: (moments, agents, floor, walls, boxes), m."""
    half = trajectory.start.agent_size_m * 0.5
    width_m, depth_m = trajectory.start.arena_size_m
    x, y, z = (trajectory.positions[..., axis] for axis in range(3))
    into_walls = np.maximum(np.abs(x) - width_m * 0.5, np.abs(z) - depth_m * 0.5) + half
    depths = [half - y, into_walls]
    for box in trajectory.layout.boxes:
        (middle_x, middle_z), (size_x, height, size_z) = box.at_m, box.size_m
        sides = [
            _overlap(x, half, middle_x - size_x * 0.5, middle_x + size_x * 0.5),
            _overlap(y, half, 0.0, height),
            _overlap(z, half, middle_z - size_z * 0.5, middle_z + size_z * 0.5),
        ]
        depths.append(np.minimum.reduce(sides))
    return np.stack(depths, axis=-1)


def _overlap(middle: np.ndarray, half: float, low: float, high: float) -> np.ndarray:
    return np.minimum(middle + half - low, high - middle + half)


def _tell(depths: np.ndarray) -> str:
    deepest = int(np.argmax(depths))
    where = ("the floor", "a wall")[deepest] if deepest < 2 else f"box {deepest - 2}"
    return f"{depths[deepest]:.6f} m inside {where}"
