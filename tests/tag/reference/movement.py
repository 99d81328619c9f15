"""The reference's agents and how they move, written from docs/physics.md alone."""

import math
from dataclasses import dataclass

from tests.tag.reference.arithmetic import greater, lesser, single
from tests.tag.reference.constants import Box, Constants

NEVER = -1
X, Y, Z = 0, 1, 2
OTHER_AXES = ((Y, Z), (X, Z), (X, Y))

Place = tuple[float, float, float]


@dataclass(slots=True)
class Agent:
    """One of the two cubes, and what it remembers of the other."""

    x: float
    y: float
    z: float
    forward_x: float
    forward_z: float
    velocity_x: float = 0.0
    velocity_y: float = 0.0
    velocity_z: float = 0.0
    on_floor: bool = True
    immune_ticks: int = 0
    it_ticks: int = 0
    seen_x: float = 0.0
    seen_y: float = 0.0
    seen_z: float = 0.0
    seen_tick: int = NEVER

    def place(self) -> Place:
        """The centre of the cube."""
        return self.x, self.y, self.z


@dataclass(frozen=True, slots=True)
class Command:
    """What an agent wants for the length of a decision."""

    move_x: float
    move_z: float
    turns: bool
    want_x: float
    want_z: float
    jumps: bool


def clamped(move: float) -> float:
    """A move within [-1, 1]; no number at all is no move."""
    if math.isnan(move):
        return 0.0
    return lesser(greater(move, -1.0), 1.0)


def read_command(action: list[float], constants: Constants) -> Command:
    """Step 0: the command that an action gives."""
    move_x, move_z = clamped(single(action[0])), clamped(single(action[1]))
    length = math.sqrt(move_x * move_x + move_z * move_z)
    if length > 1:
        move_x, move_z, length = move_x / length, move_z / length, 1.0
    turns = length > constants.facing_dead_zone
    return Command(
        move_x=move_x,
        move_z=move_z,
        turns=turns,
        want_x=move_x / length if turns else 0.0,
        want_z=move_z / length if turns else 0.0,
        jumps=single(action[2]) > constants.jump_threshold,
    )


def turn(agent: Agent, command: Command, constants: Constants) -> None:
    """Step 1: face the wanted direction, or turn towards it."""
    fx, fz, wx, wz = agent.forward_x, agent.forward_z, command.want_x, command.want_z
    if fx * wx + fz * wz >= constants.turn_cos:
        agent.forward_x, agent.forward_z = wx, wz
        return
    s = constants.turn_sin if fx * wz - fz * wx >= 0 else -constants.turn_sin
    tx = fx * constants.turn_cos - fz * s
    tz = fx * s + fz * constants.turn_cos
    n = math.sqrt(tx * tx + tz * tz)
    agent.forward_x, agent.forward_z = tx / n, tz / n


def accelerate(agent: Agent, command: Command, constants: Constants) -> None:
    """Step 2: bring the horizontal velocity nearer to the wanted one."""
    gx, gz = command.move_x * constants.speed, command.move_z * constants.speed
    dx, dz = gx - agent.velocity_x, gz - agent.velocity_z
    length = math.sqrt(dx * dx + dz * dz)
    change = constants.speed_change_per_tick
    if length <= change:
        agent.velocity_x, agent.velocity_z = gx, gz
    else:
        agent.velocity_x = agent.velocity_x + dx / length * change
        agent.velocity_z = agent.velocity_z + dz / length * change


def stopped(start: float, end: float, low: float, high: float, middle: float) -> float:
    """Where a sweep ends at an obstacle that is in the way."""
    if end > start and start < middle and low < end:
        return greater(low, start)
    if end < start and start >= middle and high > end:
        return lesser(high, start)
    return end


def stopped_by_walls(start: float, end: float, stop: float) -> float:
    """Where a level sweep ends within two walls."""
    if end > start and stop < end:
        return greater(stop, start)
    if end < start and -stop > end:
        return lesser(-stop, start)
    return end


def stopped_by_floor(start: float, end: float, stop: float) -> float:
    """Where an upright sweep ends above the floor."""
    if end < start and stop > end:
        return lesser(stop, start)
    return end


def stopped_by_boxes(place: Place, axis: int, end: float, boxes: list[Box]) -> float:
    """Where a sweep ends among the boxes."""
    one, two = OTHER_AXES[axis]
    for box in boxes:
        a, b = box[one], box[two]
        if not a.grown_low < place[one] < a.grown_high:
            continue
        if not b.grown_low < place[two] < b.grown_high:
            continue
        span = box[axis]
        end = stopped(place[axis], end, span.stop_low, span.stop_high, span.middle)
    return end


def stopped_by_agent(
    place: Place, axis: int, end: float, other: Place, constants: Constants
) -> float:
    """Where a sweep ends beside the other agent."""
    size, skin = constants.size, constants.skin
    for across in OTHER_AXES[axis]:
        if not other[across] - size < place[across] < other[across] + size:
            return end
    o = other[axis]
    return stopped(place[axis], end, o - size - skin, o + size + skin, o)


def move(
    agent: Agent, other: Agent, command: Command, boxes: list[Box], constants: Constants
) -> bool:
    """An agent's steps 1 to 5; whether it jumped and rose."""
    if command.turns:
        turn(agent, command, constants)
    accelerate(agent, command, constants)
    jumped = command.jumps and agent.on_floor
    if jumped:
        agent.velocity_y = constants.jump_speed
    tick_sec = constants.tick_sec
    target_x = agent.x + agent.velocity_x * tick_sec
    target_z = agent.z + agent.velocity_z * tick_sec
    target_y = agent.y + (agent.velocity_y - constants.half_fall_per_tick) * tick_sec
    agent.velocity_y = agent.velocity_y - constants.fall_per_tick
    obstacle = other.place()
    began_at = agent.y
    sweep_x(agent, target_x, obstacle, boxes, constants)
    sweep_z(agent, target_z, obstacle, boxes, constants)
    sweep_y(agent, target_y, obstacle, boxes, constants)
    return jumped and agent.y > began_at


def sweep_x(
    agent: Agent, target: float, other: Place, boxes: list[Box], constants: Constants
) -> None:
    """Step 5 along x."""
    place = agent.place()
    end = stopped_by_walls(agent.x, target, constants.stop_x)
    end = stopped_by_boxes(place, X, end, boxes)
    end = stopped_by_agent(place, X, end, other, constants)
    agent.x = end
    if end != target:
        agent.velocity_x = 0.0


def sweep_z(
    agent: Agent, target: float, other: Place, boxes: list[Box], constants: Constants
) -> None:
    """Step 5 along z."""
    place = agent.place()
    end = stopped_by_walls(agent.z, target, constants.stop_z)
    end = stopped_by_boxes(place, Z, end, boxes)
    end = stopped_by_agent(place, Z, end, other, constants)
    agent.z = end
    if end != target:
        agent.velocity_z = 0.0


def sweep_y(
    agent: Agent, target: float, other: Place, boxes: list[Box], constants: Constants
) -> None:
    """Step 5 along y, and whether the agent then stands on something."""
    place = agent.place()
    on_solid = stopped_by_floor(agent.y, target, constants.stop_floor)
    on_solid = stopped_by_boxes(place, Y, on_solid, boxes)
    end = stopped_by_agent(place, Y, on_solid, other, constants)
    agent.on_floor = target < agent.y and on_solid != target and end == on_solid
    agent.y = end
    if end != target:
        agent.velocity_y = 0.0


def distance_between(a: Agent, b: Agent) -> float:
    """The distance between two centres."""
    x, y, z = a.x - b.x, a.y - b.y, a.z - b.z
    return math.sqrt(x * x + y * y + z * z)


def within_reach(a: Agent, b: Agent, constants: Constants) -> bool:
    """Whether the gap between two cubes is small enough for a tag."""
    size, reach = constants.size, constants.tag_reach
    gx = greater(abs(a.x - b.x) - size, 0.0)
    gy = greater(abs(a.y - b.y) - size, 0.0)
    gz = greater(abs(a.z - b.z) - size, 0.0)
    return gx * gx + gy * gy + gz * gz <= reach * reach
