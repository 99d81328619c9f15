"""What the kernels read and write, as flat numbers: the rules in force, boxes, agents, arenas.

Derived once, as docs/physics.md says. Plain records, so that saving a match is copying an array.
"""

from typing import NamedTuple

import numpy as np

from estragon.tag.layout import Layout, far_points
from estragon.tag.rules import VARIABLE, Rules

PLACES = ("x", "y", "z", "velocity_x", "velocity_y", "velocity_z", "forward_x", "forward_z")
SEEN, COUNTERS = ("seen_x", "seen_y", "seen_z"), ("seen_tick", "immune_ticks", "it_ticks")
AGENT = np.dtype(
    [(name, np.float64) for name in PLACES + SEEN]
    + [(name, np.int64) for name in (*COUNTERS, "on_floor")]
)
"""One agent: centre of the cube, facing, where the opponent was last seen and when (-1 never)."""
ARENA = np.dtype([(name, np.int64) for name in ("number", "episode", "tick", "layout", "seeker")])
"""One arena: its number in the random streams, and which of its agents is "it" now."""
BOX = np.dtype(
    [
        (f"{what}_{axis}", np.float64)
        for what in ("low", "high", "grown_low", "grown_high", "stop_low", "stop_high", "middle")
        for axis in "xyz"
    ]
)
"""A box; the same grown by half an agent; where an agent's centre stops; the box's middle."""

TAYLOR_TERMS = 13
PI = 3.14159265358979
"""To 15 digits: every decimal reader turns these into the same double."""


class Constants(NamedTuple):
    """The rules in force, as numbers. Lengths in m, times in s or ticks.

    The first ones, up to `limit_ticks`, may differ from episode to episode.
    """

    fall_per_tick: float
    half_fall_per_tick: float
    speed: float
    speed_change_per_tick: float
    jump_speed: float
    reach_square: float
    separation_square: float
    limit_ticks: int
    tick_sec: float
    skin: float
    size: float
    half: float
    jump_threshold: float
    turn_cos: float
    turn_sin: float
    facing_dead_zone: float
    wall_x: float
    wall_z: float
    stop_x: float
    stop_z: float
    stop_floor: float
    eye_height: float
    eye_range: float
    cone_cos: float
    position_scale: float
    velocity_scale: float
    decision_ticks: int
    immunity_ticks: int
    head_start_ticks: int
    hearing_square: float
    tag_ends_episode: bool


VARIED_CONSTANTS = Constants._fields.index("limit_ticks") + 1
VARIED = np.dtype(
    [
        (name, np.int64 if name == "limit_ticks" else np.float64)
        for name in Constants._fields[:VARIED_CONSTANTS]
    ]
    + [("layout", np.int64), ("lesson", np.int64)]
    + [(name, np.float64) for name in VARIABLE]
)
"""What an episode with rule numbers of its own is played with; the numbers themselves come last."""


class PackedLayouts(NamedTuple):
    """Layouts packed side by side."""

    boxes: np.ndarray
    """(layouts, most boxes) of BOX."""
    counts: np.ndarray
    """(layouts,) int64: how many of those are real."""
    spawns: np.ndarray
    """(layouts, 2, 2) float64: x and z of two far points, for when drawing finds none."""


def constants_of(rules: Rules) -> Constants:
    """The numbers a kernel needs."""
    tick_sec = 1.0 / rules.physics.ticks_per_second
    half = rules.agent.size_m * 0.5
    turn = radians(rules.agent.turn_rate_deg_per_sec) * tick_sec
    cone = radians(rules.eyes.cone_deg) * 0.5
    wall_x, wall_z = rules.arena.width_m * 0.5, rules.arena.depth_m * 0.5
    skin = rules.physics.skin_m
    return Constants(
        *varied_constants(rules),
        tick_sec=tick_sec,
        skin=skin,
        size=rules.agent.size_m,
        half=half,
        jump_threshold=rules.agent.jump_threshold,
        turn_cos=cosine(turn),
        turn_sin=sine(turn),
        facing_dead_zone=rules.agent.facing_dead_zone,
        wall_x=wall_x,
        wall_z=wall_z,
        stop_x=wall_x - half - skin,
        stop_z=wall_z - half - skin,
        stop_floor=half + skin,
        eye_height=rules.eyes.height_m,
        eye_range=rules.eyes.range_m,
        cone_cos=cosine(cone),
        position_scale=rules.observation.position_scale_m,
        velocity_scale=rules.observation.velocity_scale_mps,
        decision_ticks=rules.episode.step_tick_interval,
        immunity_ticks=rules.immunity_ticks,
        head_start_ticks=rules.head_start_ticks,
        hearing_square=rules.rule_set.hearing_m * rules.rule_set.hearing_m,
        tag_ends_episode=rules.rule_set.tag_ends_episode,
    )


def varied_constants(
    rules: Rules,
) -> tuple[float, float, float, float, float, float, float, int]:
    """The first ones of Constants."""
    tick_sec = 1.0 / rules.physics.ticks_per_second
    fall = rules.physics.gravity_mps2 * tick_sec
    return (
        fall,
        fall * 0.5,
        rules.agent.speed_mps,
        rules.agent.acceleration_mps2 * tick_sec,
        rules.agent.jump_speed_mps,
        rules.episode.tag_reach_m * rules.episode.tag_reach_m,
        rules.episode.spawn_separation_m * rules.episode.spawn_separation_m,
        rules.limit_ticks,
    )


def fan_of(rules: Rules) -> np.ndarray:
    """Cosine and sine of every ray's angle from straight ahead, left to right: (2, rays)."""
    rays = rules.eyes.rays
    cone = radians(rules.eyes.cone_deg)
    angles = [cone * (ray / (rays - 1.0) - 0.5) if rays > 1 else 0.0 for ray in range(rays)]
    return np.array([[cosine(a) for a in angles], [sine(a) for a in angles]])


def pack_layouts(layouts: list[Layout], rules: Rules) -> PackedLayouts:
    """Layouts packed for the kernels."""
    half, skin = rules.agent.size_m * 0.5, rules.physics.skin_m
    most = max(1, *(len(layout.boxes) for layout in layouts))
    boxes = np.zeros((len(layouts), most), dtype=BOX)
    for row, layout in zip(boxes, layouts, strict=True):
        for record, box in zip(row, layout.boxes, strict=False):
            (x, z), (width, height, depth) = box.at_m, box.size_m
            low = (x - width * 0.5, 0.0, z - depth * 0.5)
            high = (x + width * 0.5, height, z + depth * 0.5)
            for axis, near, far in zip("xyz", low, high, strict=True):
                record[f"low_{axis}"], record[f"high_{axis}"] = near, far
                record[f"grown_low_{axis}"], record[f"grown_high_{axis}"] = near - half, far + half
                record[f"stop_low_{axis}"] = near - half - skin
                record[f"stop_high_{axis}"] = far + half + skin
                record[f"middle_{axis}"] = (near + far) * 0.5
    return PackedLayouts(
        boxes=boxes,
        counts=np.array([len(layout.boxes) for layout in layouts], dtype=np.int64),
        spawns=np.stack([far_points(layout, rules) for layout in layouts]),
    )


def vectors(records: np.ndarray, *fields: str) -> np.ndarray:
    """Some float fields of records side by side, as one array that shares their memory."""
    names = records.dtype.names or ()
    first = names.index(fields[0])
    if names[first : first + len(fields)] != fields:
        raise ValueError(f"{fields} do not lie side by side")
    plain = records.view(np.float64).reshape(*records.shape, len(names))
    return plain[..., first : first + len(fields)]


def radians(degrees: float) -> float:
    """Degrees to radians."""
    return degrees * PI / 180.0


def sine(x: float) -> float:
    """Taylor series of sin x in Horner's form, for |x| up to 180°."""
    square = x * x
    value = 1.0
    for term in range(TAYLOR_TERMS, 0, -1):
        value = 1.0 - square / ((2.0 * term) * (2.0 * term + 1.0)) * value
    return x * value


def cosine(x: float) -> float:
    """Taylor series of cos x in Horner's form, for |x| up to 180°."""
    square = x * x
    value = 1.0
    for term in range(TAYLOR_TERMS, 0, -1):
        value = 1.0 - square / ((2.0 * term - 1.0) * (2.0 * term)) * value
    return value
