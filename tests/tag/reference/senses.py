"""What the reference's agents see, written from docs/physics.md alone."""

import math

from tests.tag.reference.arithmetic import away_from_zero, greater, lesser
from tests.tag.reference.constants import Box, Constants
from tests.tag.reference.movement import Agent, Place, X, Y, Z

Slab = tuple[float, float, float, float]


def nearest_hit(slabs: list[Slab], ix: float, iz: float) -> float:
    """How far along a level ray the nearest box is; infinity if it hits none.

    A slab is a box as seen from the eye: low x, high x, low z, high z, each less the eye's.
    """
    nearest = math.inf
    for low_x, high_x, low_z, high_z in slabs:
        near_x, far_x = low_x * ix, high_x * ix
        if near_x > far_x:
            near_x, far_x = far_x, near_x
        near_z, far_z = low_z * iz, high_z * iz
        if near_z > far_z:
            near_z, far_z = far_z, near_z
        if near_x <= far_z and near_z <= far_x:
            near = greater(near_x, near_z)
            if 0 <= near < nearest:
                nearest = near
    return nearest


def level_slabs(boxes: list[Box], eye: Place) -> list[Slab]:
    """The boxes at the height of the eye, as seen from it."""
    ex, ey, ez = eye
    return [
        (x.low - ex, x.high - ex, z.low - ez, z.high - ez)
        for x, y, z in boxes
        if y.low <= ey <= y.high
    ]


def opponent_slabs(opponent: Agent, eye: Place, half: float) -> list[Slab]:
    """The opponent as seen from the eye, if it is at that height."""
    ex, ey, ez = eye
    ox, oy, oz = opponent.place()
    if not oy - half <= ey <= oy + half:
        return []
    return [(ox - half - ex, ox + half - ex, oz - half - ez, oz + half - ez)]


def box_between(box: Box, eye: Place, d: Place) -> bool:
    """Whether a box cuts the line from the eye over d, whose components are not tiny."""
    near, far = -math.inf, math.inf
    for axis in (X, Y, Z):
        t1 = (box[axis].low - eye[axis]) / d[axis]
        t2 = (box[axis].high - eye[axis]) / d[axis]
        near = greater(near, lesser(t1, t2))
        far = lesser(far, greater(t1, t2))
    return near <= far and far >= 0 and near <= 1


def aimed_ray_sees(
    agent: Agent, opponent: Agent, eye: Place, boxes: list[Box], constants: Constants
) -> bool:
    """Whether the ray from the eye to the opponent's centre gets there."""
    dx, dy, dz = opponent.x - eye[X], opponent.y - eye[Y], opponent.z - eye[Z]
    if dx * dx + dz * dz + dy * dy > constants.range * constants.range:
        return False
    ahead = agent.forward_x * dx + agent.forward_z * dz
    if ahead < constants.cone_edge_cos * math.sqrt(dx * dx + dz * dz):
        return False
    d = (away_from_zero(dx), away_from_zero(dy), away_from_zero(dz))
    return not any(box_between(box, eye, d) for box in boxes)


def look_around(
    agent: Agent,
    opponent: Agent,
    eye: Place,
    boxes: list[Box],
    fan: list[tuple[float, float]],
    constants: Constants,
) -> tuple[list[float], bool]:
    """The fan's part of the observation, and whether a ray shows the opponent."""
    fx, fz, reach = agent.forward_x, agent.forward_z, constants.range
    left, right = -constants.wall_x - eye[X], constants.wall_x - eye[X]
    back, front = -constants.wall_z - eye[Z], constants.wall_z - eye[Z]
    slabs = level_slabs(boxes, eye)
    targets = opponent_slabs(opponent, eye, constants.half)
    numbers: list[float] = []
    shown = False
    for cos_a, sin_a in fan:
        ix = 1 / away_from_zero(fx * cos_a - fz * sin_a)
        iz = 1 / away_from_zero(fx * sin_a + fz * cos_a)
        wall = lesser(greater(left * ix, right * ix), greater(back * iz, front * iz))
        solid = lesser(wall, nearest_hit(slabs, ix, iz))
        target = nearest_hit(targets, ix, iz)
        if target < solid and target <= reach:
            numbers += (target / reach, 0.0, 1.0)
            shown = True
        elif solid <= reach:
            numbers += (solid / reach, 1.0, 0.0)
        else:
            numbers += (reach / reach, 0.0, 0.0)
    return numbers, shown
