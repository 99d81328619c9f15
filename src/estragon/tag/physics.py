"""One tick of movement, contact and facing, exactly as docs/physics.md specifies it.

float64, only + − × ÷ sqrt and comparisons, in a fixed order: Godot's solver computes the same bits.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from estragon.tag.compile import inlined
from estragon.tag.state import Constants


class Command(NamedTuple):
    """An action made safe."""

    move_x: float
    move_z: float
    want_x: float
    want_z: float
    turns: bool
    """Whether the move is long enough to turn to; then (want_x, want_z) is its direction."""
    jumps: bool


@inlined
def command_of(action: np.ndarray, c: Constants) -> Command:
    """No NaN, each part in [-1, 1], the move at most 1 long, jump yes or no."""
    move_x = _part(float(action[0]))
    move_z = _part(float(action[1]))
    length = math.sqrt(move_x * move_x + move_z * move_z)
    if length > 1.0:
        move_x = move_x / length
        move_z = move_z / length
        length = 1.0
    turns = length > c.facing_dead_zone
    want_x = move_x / length if turns else 0.0
    want_z = move_z / length if turns else 0.0
    jumps = float(action[2]) > c.jump_threshold
    return Command(move_x, move_z, want_x, want_z, turns, jumps)


@inlined
def no_command() -> Command:
    """Stand still."""
    return Command(0.0, 0.0, 0.0, 0.0, False, False)


@inlined
def _part(value: float) -> float:
    if value > 1.0:
        return 1.0
    if value < -1.0:
        return -1.0
    return value if value == value else 0.0  # NaN is no command  # noqa: PLR0124


@inlined
def turn(agent: Any, command: Command, c: Constants) -> None:
    """Turn the facing towards the commanded direction, by at most one tick's turn."""
    if not command.turns:
        return
    x, z = agent.forward_x, agent.forward_z
    want_x, want_z = command.want_x, command.want_z
    if x * want_x + z * want_z >= c.turn_cos:
        agent.forward_x = want_x
        agent.forward_z = want_z
        return
    sine = c.turn_sin if x * want_z - z * want_x >= 0.0 else -c.turn_sin
    turned_x = x * c.turn_cos - z * sine
    turned_z = x * sine + z * c.turn_cos
    norm = math.sqrt(turned_x * turned_x + turned_z * turned_z)
    agent.forward_x = turned_x / norm
    agent.forward_z = turned_z / norm


@inlined
def accelerate(agent: Any, command: Command, c: Constants) -> None:
    """Change the horizontal velocity towards the commanded one, by at most one tick's change."""
    goal_x = command.move_x * c.speed
    goal_z = command.move_z * c.speed
    change_x = goal_x - agent.velocity_x
    change_z = goal_z - agent.velocity_z
    length = math.sqrt(change_x * change_x + change_z * change_z)
    if length <= c.speed_change_per_tick:
        agent.velocity_x = goal_x
        agent.velocity_z = goal_z
    else:
        agent.velocity_x = agent.velocity_x + change_x / length * c.speed_change_per_tick
        agent.velocity_z = agent.velocity_z + change_z / length * c.speed_change_per_tick


@inlined
def stop_before(start: float, end: float, low: float, high: float, middle: float) -> float:
    """Where a sweep from `start` towards `end` stops at an obstacle in its way.

    `low` and `high` are where it stops coming from below and from above; an agent that is nearer
    than that already stays where it is.
    """
    if end > start and start < middle and low < end:
        return low if low > start else start
    if end < start and start >= middle and high > end:
        return high if high < start else start
    return end


@inlined
def stop_inside(start: float, end: float, stop: float) -> float:
    """The same for the two walls of an axis, which let nothing beyond -stop and stop."""
    if end > start and stop < end:
        return stop if stop > start else start
    if end < start and -stop > end:
        return -stop if -stop < start else start
    return end


@inlined
def move_agent(
    agent: Any,
    other: Any,
    command: Command,
    boxes: np.ndarray,
    layout: int,
    count: int,
    c: Constants,
) -> bool:
    """One tick of one agent; returns whether it jumped and rose.

    Args:
        agent: an AGENT record, changed in place.
        other: the other agent's record.
        boxes: (layouts, boxes) of BOX, the first `count` of `layout` in play.
    """
    turn(agent, command, c)
    accelerate(agent, command, c)
    jumped = command.jumps and agent.on_floor == 1
    if jumped:
        agent.velocity_y = c.jump_speed
    x, y, z = agent.x, agent.y, agent.z
    target_x = x + agent.velocity_x * c.tick_sec
    target_z = z + agent.velocity_z * c.tick_sec
    target_y = y + (agent.velocity_y - c.half_fall_per_tick) * c.tick_sec
    agent.velocity_y = agent.velocity_y - c.fall_per_tick
    near = _boxes_near(x, y, z, target_x, target_y, target_z, boxes, layout, count)

    end = stop_inside(x, target_x, c.stop_x)
    for index in range(count):
        if near >> index & 1:
            box = boxes[layout, index]
            if box.grown_low_y < y < box.grown_high_y and box.grown_low_z < z < box.grown_high_z:
                end = stop_before(x, end, box.stop_low_x, box.stop_high_x, box.middle_x)
    if other.y - c.size < y < other.y + c.size and other.z - c.size < z < other.z + c.size:
        low, high = other.x - c.size - c.skin, other.x + c.size + c.skin
        end = stop_before(x, end, low, high, other.x)
    if end != target_x:
        agent.velocity_x = 0.0
    x = end

    end = stop_inside(z, target_z, c.stop_z)
    for index in range(count):
        if near >> index & 1:
            box = boxes[layout, index]
            if box.grown_low_x < x < box.grown_high_x and box.grown_low_y < y < box.grown_high_y:
                end = stop_before(z, end, box.stop_low_z, box.stop_high_z, box.middle_z)
    if other.x - c.size < x < other.x + c.size and other.y - c.size < y < other.y + c.size:
        low, high = other.z - c.size - c.skin, other.z + c.size + c.skin
        end = stop_before(z, end, low, high, other.z)
    if end != target_z:
        agent.velocity_z = 0.0
    z = end

    end = target_y
    if end < y and c.stop_floor > end:
        end = c.stop_floor if c.stop_floor < y else y
    for index in range(count):
        if near >> index & 1:
            box = boxes[layout, index]
            if box.grown_low_x < x < box.grown_high_x and box.grown_low_z < z < box.grown_high_z:
                end = stop_before(y, end, box.stop_low_y, box.stop_high_y, box.middle_y)
    agent.on_floor = 1 if target_y < y and end != target_y else 0
    if other.x - c.size < x < other.x + c.size and other.z - c.size < z < other.z + c.size:
        low, high = other.y - c.size - c.skin, other.y + c.size + c.skin
        beyond = stop_before(y, end, low, high, other.y)
        if beyond != end:  # a head is not floor
            agent.on_floor = 0
            end = beyond
    if end != target_y:
        agent.velocity_y = 0.0

    agent.x, agent.y, agent.z = x, end, z
    return jumped and end > y


@inlined
def _boxes_near(
    x: float,
    y: float,
    z: float,
    target_x: float,
    target_y: float,
    target_z: float,
    boxes: np.ndarray,
    layout: int,
    count: int,
) -> int:
    """Bit set of the boxes that the hull of start and target touches; no other can stop a sweep."""
    low_x, high_x = (x, target_x) if x < target_x else (target_x, x)
    low_y, high_y = (y, target_y) if y < target_y else (target_y, y)
    low_z, high_z = (z, target_z) if z < target_z else (target_z, z)
    near = 0
    for index in range(count):
        box = boxes[layout, index]
        if (
            box.stop_low_x <= high_x
            and low_x <= box.stop_high_x
            and box.stop_low_z <= high_z
            and low_z <= box.stop_high_z
            and box.stop_low_y <= high_y
            and low_y <= box.stop_high_y
        ):
            near |= 1 << index
    return near


@inlined
def gap_square(one: Any, other: Any, size: float) -> float:
    """Square of the shortest distance between two cubes of the same size."""
    x, y, z = abs(one.x - other.x) - size, abs(one.y - other.y) - size, abs(one.z - other.z) - size
    x = x if x > 0.0 else 0.0
    y = y if y > 0.0 else 0.0
    z = z if z > 0.0 else 0.0
    return x * x + y * y + z * z


@inlined
def distance_between(one: Any, other: Any) -> float:
    """Distance between two centres."""
    x, y, z = one.x - other.x, one.y - other.y, one.z - other.z
    return math.sqrt(x * x + y * y + z * z)
