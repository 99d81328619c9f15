"""What an agent is told: where each number lies in an observation, and how it is written."""

from typing import Any

import numpy as np

from estragon.tag.compile import inlined
from estragon.tag.constants import Constants
from estragon.tag.vision import BODY, WALL

POSITION, VELOCITY, FORWARD = 0, 3, 6
IS_SEEKER, IS_HIDER, ON_FLOOR, IMMUNE, TIME_LEFT, VISIBLE = 8, 9, 10, 11, 12, 13
SEEN, SEEN_AGE, RAYS = 14, 17, 18
"""Offsets of the fields; a ray has three numbers: distance, is_wall, is_agent."""


@inlined
def write_rays(scratch: np.ndarray, out: np.ndarray, c: Constants) -> bool:
    """Distance and type of what each ray meets; returns whether one meets the opponent."""
    visible = False
    for ray in range(scratch.shape[1]):
        solid, opponent = scratch[WALL, ray], scratch[BODY, ray]
        is_agent = opponent < solid and opponent <= c.eye_range
        is_wall = not is_agent and solid <= c.eye_range
        distance = opponent if is_agent else (solid if is_wall else c.eye_range)
        place = RAYS + 3 * ray
        out[place] = np.float32(distance / c.eye_range)
        out[place + 1] = np.float32(1.0 if is_wall else 0.0)
        out[place + 2] = np.float32(1.0 if is_agent else 0.0)
        visible = visible or is_agent
    return visible


@inlined
def write_head(
    tick: int, agent: Any, is_seeker: bool, visible: bool, out: np.ndarray, c: Constants
) -> None:
    """The part of an observation before the rays."""
    out[POSITION] = np.float32(agent.x / c.position_scale)
    out[POSITION + 1] = np.float32(agent.y / c.position_scale)
    out[POSITION + 2] = np.float32(agent.z / c.position_scale)
    out[VELOCITY] = np.float32(agent.velocity_x / c.velocity_scale)
    out[VELOCITY + 1] = np.float32(agent.velocity_y / c.velocity_scale)
    out[VELOCITY + 2] = np.float32(agent.velocity_z / c.velocity_scale)
    out[FORWARD] = np.float32(agent.forward_x)
    out[FORWARD + 1] = np.float32(agent.forward_z)
    out[IS_SEEKER] = np.float32(1.0 if is_seeker else 0.0)
    out[IS_HIDER] = np.float32(0.0 if is_seeker else 1.0)
    out[ON_FLOOR] = np.float32(agent.on_floor)
    out[IMMUNE] = np.float32(1.0 if agent.immune_ticks > 0 else 0.0)
    out[TIME_LEFT] = np.float32((c.limit_ticks - tick) / c.limit_ticks)
    out[VISIBLE] = np.float32(1.0 if visible else 0.0)
    known = agent.seen_tick >= 0
    out[SEEN] = np.float32((agent.seen_x - agent.x) / c.position_scale if known else 0.0)
    out[SEEN + 1] = np.float32((agent.seen_y - agent.y) / c.position_scale if known else 0.0)
    out[SEEN + 2] = np.float32((agent.seen_z - agent.z) / c.position_scale if known else 0.0)
    out[SEEN_AGE] = np.float32((tick - agent.seen_tick) / c.limit_ticks if known else 1.0)
