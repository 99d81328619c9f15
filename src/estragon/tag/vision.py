"""What an agent sees: a level fan of rays, one aimed ray at the opponent, and its observation.

float64 as docs/physics.md specifies; skipping a box that no ray can reach never changes a result.
"""

import math
from typing import Any

import numpy as np

from estragon.tag.compile import inlined
from estragon.tag.rules import OBS, RAY_CHANNELS
from estragon.tag.state import Constants

TINY = 1e-9
"""Smallest component of a ray's direction: a ray along an axis still has a finite slope."""
CULL_MARGIN = 1e-6
"""Far above rounding: a box is skipped only when it is out of sight beyond doubt."""

SLOPE_X, SLOPE_Z, WALL, BODY = 0, 1, 2, 3
"""Rows of the scratch array, (4, rays)."""


@inlined
def cast_fan(
    agent: Any,
    other: Any,
    fan: np.ndarray,
    boxes: np.ndarray,
    layout: int,
    count: int,
    scratch: np.ndarray,
    c: Constants,
) -> None:
    """Distance of the nearest solid and of the opponent along every ray of the fan.

    Args:
        agent, other: AGENT records, one's own and the opponent's.
        fan: (2, rays) cosine and sine of each ray's angle from straight ahead.
        boxes: (layouts, boxes) of BOX, the first `count` of `layout` in play.
        scratch: (4, rays); rows WALL and BODY hold the result, infinity where nothing is hit.
    """
    rays = fan.shape[1]
    fan_cos, fan_sin = fan[0], fan[1]
    slope_x, slope_z = scratch[SLOPE_X], scratch[SLOPE_Z]
    wall, body = scratch[WALL], scratch[BODY]
    x, y, z = agent.x, agent.y + c.eye_height, agent.z
    forward_x, forward_z = agent.forward_x, agent.forward_z
    west, east = -c.wall_x - x, c.wall_x - x
    north, south = -c.wall_z - z, c.wall_z - z

    for ray in range(rays):
        along_x = forward_x * fan_cos[ray] - forward_z * fan_sin[ray]
        along_z = forward_x * fan_sin[ray] + forward_z * fan_cos[ray]
        along_x = TINY if abs(along_x) < TINY else along_x
        along_z = TINY if abs(along_z) < TINY else along_z
        per_x = 1.0 / along_x
        per_z = 1.0 / along_z
        slope_x[ray] = per_x
        slope_z[ray] = per_z
        one, two = west * per_x, east * per_x
        far_x = one if one > two else two
        one, two = north * per_z, south * per_z
        far_z = one if one > two else two
        wall[ray] = far_x if far_x < far_z else far_z
        body[ray] = math.inf

    left_x = forward_x * fan_cos[0] - forward_z * fan_sin[0]
    left_z = forward_x * fan_sin[0] + forward_z * fan_cos[0]
    right_x = forward_x * fan_cos[rays - 1] - forward_z * fan_sin[rays - 1]
    right_z = forward_x * fan_sin[rays - 1] + forward_z * fan_cos[rays - 1]
    reach = c.eye_range + CULL_MARGIN

    for index in range(count + 1):
        if index < count:
            box = boxes[layout, index]
            low_x, high_x = box.low_x - x, box.high_x - x
            low_z, high_z = box.low_z - z, box.high_z - z
            low_y, high_y = box.low_y, box.high_y
            hit = wall
        else:
            low_x, high_x = other.x - c.half - x, other.x + c.half - x
            low_z, high_z = other.z - c.half - z, other.z + c.half - z
            low_y, high_y = other.y - c.half, other.y + c.half
            hit = body
        if y < low_y or y > high_y:
            continue
        middle_x, middle_z = (low_x + high_x) * 0.5, (low_z + high_z) * 0.5
        extent_x, extent_z = (high_x - low_x) * 0.5, (high_z - low_z) * 0.5
        out_x, out_z = abs(middle_x) - extent_x, abs(middle_z) - extent_z
        out_x = out_x if out_x > 0.0 else 0.0
        out_z = out_z if out_z > 0.0 else 0.0
        if (
            out_x * out_x + out_z * out_z > reach * reach
            or left_x * middle_z
            - left_z * middle_x
            + abs(left_x) * extent_z
            + abs(left_z) * extent_x
            < -CULL_MARGIN
            or middle_x * right_z
            - middle_z * right_x
            + abs(right_x) * extent_z
            + abs(right_z) * extent_x
            < -CULL_MARGIN
        ):
            continue
        for ray in range(rays):
            per_x, per_z = slope_x[ray], slope_z[ray]
            one, two = low_x * per_x, high_x * per_x
            near = one if one < two else two
            far = two if one < two else one
            one, two = low_z * per_z, high_z * per_z
            near_z = one if one < two else two
            far_z = two if one < two else one
            near = near if near > near_z else near_z
            far = far if far < far_z else far_z
            best = hit[ray]
            found = (near <= far) & (near >= 0.0) & (near < best)
            hit[ray] = near if found else best


@inlined
def close_eyes(scratch: np.ndarray) -> None:
    """Let every ray of the fan meet nothing."""
    for ray in range(scratch.shape[1]):
        scratch[WALL, ray] = scratch[BODY, ray] = math.inf


@inlined
def sees(agent: Any, other: Any, boxes: np.ndarray, layout: int, count: int, c: Constants) -> bool:
    """Whether the opponent's centre is in the cone, in range, and not behind a box."""
    x, y, z = agent.x, agent.y + c.eye_height, agent.z
    along_x, along_y, along_z = other.x - x, other.y - y, other.z - z
    flat_square = along_x * along_x + along_z * along_z
    if flat_square + along_y * along_y > c.eye_range * c.eye_range:
        return False
    if agent.forward_x * along_x + agent.forward_z * along_z < c.cone_cos * math.sqrt(flat_square):
        return False
    along_x = TINY if abs(along_x) < TINY else along_x
    along_y = TINY if abs(along_y) < TINY else along_y
    along_z = TINY if abs(along_z) < TINY else along_z
    for index in range(count):
        box = boxes[layout, index]
        near, far = _ordered((box.low_x - x) / along_x, (box.high_x - x) / along_x)
        near_y, far_y = _ordered((box.low_y - y) / along_y, (box.high_y - y) / along_y)
        near_z, far_z = _ordered((box.low_z - z) / along_z, (box.high_z - z) / along_z)
        near = near if near > near_y else near_y
        near = near if near > near_z else near_z
        far = far if far < far_y else far_y
        far = far if far < far_z else far_z
        if near <= far and far >= 0.0 and near <= 1.0:
            return False
    return True


@inlined
def hears(agent: Any, other: Any, c: Constants) -> bool:
    """Whether the opponent's centre is within hearing, behind a box or not."""
    x, y, z = other.x - agent.x, other.y - agent.y, other.z - agent.z
    return bool(x * x + y * y + z * z < c.hearing_square)


@inlined
def _ordered(one: float, two: float) -> tuple[float, float]:
    """The smaller one first."""
    return (one, two) if one < two else (two, one)


@inlined
def write_rays(scratch: np.ndarray, out: np.ndarray, c: Constants) -> bool:
    """Distance and type of what each ray meets; returns whether one meets the opponent."""
    visible = False
    for ray in range(scratch.shape[1]):
        solid, opponent = scratch[WALL, ray], scratch[BODY, ray]
        is_agent = opponent < solid and opponent <= c.eye_range
        is_wall = not is_agent and solid <= c.eye_range
        distance = opponent if is_agent else (solid if is_wall else c.eye_range)
        place = OBS.rays + RAY_CHANNELS * ray
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
    out[OBS.position] = np.float32(agent.x / c.position_scale)
    out[OBS.position + 1] = np.float32(agent.y / c.position_scale)
    out[OBS.position + 2] = np.float32(agent.z / c.position_scale)
    out[OBS.velocity] = np.float32(agent.velocity_x / c.velocity_scale)
    out[OBS.velocity + 1] = np.float32(agent.velocity_y / c.velocity_scale)
    out[OBS.velocity + 2] = np.float32(agent.velocity_z / c.velocity_scale)
    out[OBS.forward] = np.float32(agent.forward_x)
    out[OBS.forward + 1] = np.float32(agent.forward_z)
    out[OBS.is_seeker] = np.float32(1.0 if is_seeker else 0.0)
    out[OBS.is_hider] = np.float32(0.0 if is_seeker else 1.0)
    out[OBS.on_floor] = np.float32(agent.on_floor)
    out[OBS.immune] = np.float32(1.0 if agent.immune_ticks > 0 else 0.0)
    out[OBS.time_left] = np.float32((c.limit_ticks - tick) / c.limit_ticks)
    out[OBS.opponent_visible] = np.float32(1.0 if visible else 0.0)
    seen, age = OBS.last_seen_relative, OBS.last_seen_age
    if agent.seen_tick >= 0:
        out[seen] = np.float32((agent.seen_x - agent.x) / c.position_scale)
        out[seen + 1] = np.float32((agent.seen_y - agent.y) / c.position_scale)
        out[seen + 2] = np.float32((agent.seen_z - agent.z) / c.position_scale)
        out[age] = np.float32((tick - agent.seen_tick) / c.limit_ticks)
    else:
        out[seen] = out[seen + 1] = out[seen + 2] = np.float32(0.0)
        out[age] = np.float32(1.0)
