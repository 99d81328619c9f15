"""The tag game again, slow and plain, written from docs/physics.md alone.

It exists to be compared with the real engines: where all of them agree to the last bit, the page
says enough to write the game from. It shares no code with them and must not import any. Names and
formulas follow the page; the order of every sum and product matters.
"""

import math
import struct
from dataclasses import dataclass, field
from typing import Any

GOING_ON, TAGGED, TIMED_OUT = 0, 1, 2
NOBODY = -1
NEVER = -1

X, Y, Z = 0, 1, 2
OTHER_AXES = ((Y, Z), (X, Z), (X, Y))

SPAWN, FACING, LAYOUT = 1, 2, 3
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
WORD = 0xFFFFFFFF

SPAWN_TRIES = 16
SPAWN_PLACES_PER_TRY = 64
FACING_DRAWS = 32

TINY = 1 / 1000000000
SINGLE = struct.Struct("<f")

Place = tuple[float, float, float]
Slab = tuple[float, float, float, float]


# Arithmetic


def sine(x: float) -> float:
    """The sine of an angle in radians, by the page's loop."""
    q = x * x
    v = 1.0
    for n in range(13, 0, -1):
        v = 1 - q / ((2 * n) * (2 * n + 1)) * v
    return x * v


def cosine(x: float) -> float:
    """The cosine of an angle in radians, by the page's loop."""
    q = x * x
    v = 1.0
    for n in range(13, 0, -1):
        v = 1 - q / ((2 * n - 1) * (2 * n)) * v
    return v


def radians(degrees: float) -> float:
    """Degrees to radians, with the page's fifteen digits of pi."""
    return degrees * 3.14159265358979 / 180


def rounded(x: float) -> int:
    """The nearest whole number."""
    return int(x + 0.5)


def lesser(a: float, b: float) -> float:
    """The page's min: a if a < b, else b."""
    return min(b, a)


def greater(a: float, b: float) -> float:
    """The page's max: a if a > b, else b."""
    return max(b, a)


def single(x: float) -> float:
    """The nearest 32-bit float."""
    value: float = SINGLE.unpack(SINGLE.pack(x))[0]
    return value


def singles(numbers: list[float]) -> list[float]:
    """Every number's nearest 32-bit float."""
    form = f"<{len(numbers)}f"
    return list(struct.unpack(form, struct.pack(form, *numbers)))


def away_from_zero(component: float) -> float:
    """A direction's component that can be divided by."""
    return TINY if abs(component) < TINY else component


# Chance


def threefry(key0: int, key1: int, counter0: int, counter1: int) -> tuple[int, int]:
    """Threefry-2x32 with 20 rounds."""
    k = (key0, key1, 0x1BD11BDA ^ key0 ^ key1)
    a = (counter0 + k[0]) & WORD
    b = (counter1 + k[1]) & WORD
    for block in range(5):
        for r in ROTATIONS[block % 2]:
            a = (a + b) & WORD
            b = ((b << r | b >> (32 - r)) & WORD) ^ a
        a = (a + k[(block + 1) % 3]) & WORD
        b = (b + k[(block + 2) % 3] + block + 1) & WORD
    return a, b


# What is derived once


@dataclass(frozen=True, slots=True)
class Constants:
    """The rules' numbers, and those the page derives from them."""

    size: float
    half: float
    skin: float
    speed: float
    jump_speed: float
    jump_threshold: float
    facing_dead_zone: float
    tick_sec: float
    fall_per_tick: float
    half_fall_per_tick: float
    speed_change_per_tick: float
    turn_cos: float
    turn_sin: float
    wall_x: float
    wall_z: float
    stop_x: float
    stop_z: float
    stop_floor: float
    step_tick_interval: int
    limit_ticks: int
    immunity_ticks: int
    tag_ends_episode: bool
    tag_reach: float
    spawn_separation: float
    eye_height: float
    range: float
    cone_edge_cos: float
    position_scale: float
    velocity_scale: float


def derive_constants(rules_json: dict[str, Any]) -> Constants:
    """The constants under the rule set in force."""
    physics, body, eyes = rules_json["physics"], rules_json["agent"], rules_json["eyes"]
    episode, scales = rules_json["episode"], rules_json["observation"]
    rule_set = rules_json["rule_sets"][rules_json["rules"]]
    ticks_per_second = physics["ticks_per_second"]
    tick_sec = 1 / ticks_per_second
    fall_per_tick = physics["gravity_mps2"] * tick_sec
    half = body["size_m"] * 0.5
    skin = float(physics["skin_m"])
    turn = radians(body["turn_rate_deg_per_sec"]) * tick_sec
    wall_x = rules_json["arena"]["width_m"] * 0.5
    wall_z = rules_json["arena"]["depth_m"] * 0.5
    return Constants(
        size=float(body["size_m"]),
        half=half,
        skin=skin,
        speed=float(body["speed_mps"]),
        jump_speed=float(body["jump_speed_mps"]),
        jump_threshold=float(body["jump_threshold"]),
        facing_dead_zone=float(body["facing_dead_zone"]),
        tick_sec=tick_sec,
        fall_per_tick=fall_per_tick,
        half_fall_per_tick=fall_per_tick * 0.5,
        speed_change_per_tick=body["acceleration_mps2"] * tick_sec,
        turn_cos=cosine(turn),
        turn_sin=sine(turn),
        wall_x=wall_x,
        wall_z=wall_z,
        stop_x=wall_x - half - skin,
        stop_z=wall_z - half - skin,
        stop_floor=half + skin,
        step_tick_interval=int(episode["step_tick_interval"]),
        limit_ticks=rounded(episode["time_limit_sec"] * ticks_per_second),
        immunity_ticks=rounded(rule_set["immunity_sec"] * ticks_per_second),
        tag_ends_episode=bool(rule_set["tag_ends_episode"]),
        tag_reach=float(episode["tag_reach_m"]),
        spawn_separation=float(episode["spawn_separation_m"]),
        eye_height=float(eyes["height_m"]),
        range=float(eyes["range_m"]),
        cone_edge_cos=cosine(radians(eyes["cone_deg"]) * 0.5),
        position_scale=float(scales["position_scale_m"]),
        velocity_scale=float(scales["velocity_scale_mps"]),
    )


def derive_fan(eyes: dict[str, Any]) -> list[tuple[float, float]]:
    """The cosine and sine of every ray's angle from straight ahead."""
    n = int(eyes["rays"])
    if n == 1:
        return [(cosine(0.0), sine(0.0))]
    angles = [radians(eyes["cone_deg"]) * (k / (n - 1) - 0.5) for k in range(n)]
    return [(cosine(angle), sine(angle)) for angle in angles]


@dataclass(frozen=True, slots=True)
class Span:
    """What a box takes up on one axis."""

    low: float
    high: float
    grown_low: float
    grown_high: float
    stop_low: float
    stop_high: float
    middle: float


Box = tuple[Span, Span, Span]


def make_span(low: float, high: float, half: float, skin: float) -> Span:
    """A box's span between two faces."""
    return Span(
        low=low,
        high=high,
        grown_low=low - half,
        grown_high=high + half,
        stop_low=low - half - skin,
        stop_high=high + half + skin,
        middle=(low + high) * 0.5,
    )


def make_boxes(layout: dict[str, Any], half: float, skin: float) -> list[Box]:
    """A layout's boxes in file order."""
    boxes = []
    for box in layout["boxes"]:
        x, z = box["at_m"]
        w, h, d = box["size_m"]
        spans = (
            make_span(x - w * 0.5, x + w * 0.5, half, skin),
            make_span(0.0, float(h), half, skin),
            make_span(z - d * 0.5, z + d * 0.5, half, skin),
        )
        boxes.append(spans)
    return boxes


# The agents


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


# Movement


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


# Senses


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


# The match


@dataclass(slots=True)
class Tally:
    """What happened in a decision that the rewards ask for."""

    tags: list[int] = field(default_factory=lambda: [0, 0])
    near_jumps: list[int] = field(default_factory=lambda: [0, 0])


class ReferenceMatch:
    """One arena's matches, episode by episode."""

    def __init__(
        self,
        rules_json: dict[str, Any],
        layouts: list[dict[str, Any]],
        *,
        seed: int,
        arena: int,
        first_seeker: int = 0,
    ) -> None:
        self.constants = derive_constants(rules_json)
        self.fan = derive_fan(rules_json["eyes"])
        self.profile: dict[str, float] = rules_json["reward_profiles"][rules_json["rewards"]]
        half, skin = self.constants.half, self.constants.skin
        self.layouts = [make_boxes(layout, half, skin) for layout in layouts]
        self.seed, self.arena, self.first_seeker = seed, arena, first_seeker
        self.begin(0)

    # Chance

    def uniform_pair(self, purpose: int, index: int) -> tuple[float, float]:
        """Two numbers in [0, 1) that belong to this arena and episode."""
        a, b = threefry(self.seed, self.arena, self.episode, purpose * 2**24 + index)
        return a / 4294967296, b / 4294967296

    def begin(self, episode: int) -> None:
        """Spawn an episode."""
        self.episode = episode
        self.layout = self._draw_layout()
        self.boxes = self.layouts[self.layout]
        self.tick = 0
        self.seeker = self.first_seeker
        self.agents: list[Agent] = []
        for i, (x, z) in enumerate(self._draw_places()):
            forward_x, forward_z = self._draw_facing(i)
            self.agents.append(Agent(x, self.constants.stop_floor, z, forward_x, forward_z))
        self.terms: list[list[float]] = [[0.0] * 9, [0.0] * 9]
        self.rewards: list[float] = [0.0, 0.0]

    def _draw_layout(self) -> int:
        if len(self.layouts) == 1:
            return 0
        return int(self.uniform_pair(LAYOUT, 0)[0] * len(self.layouts))

    def _draw_place(self, index: int) -> tuple[float, float]:
        u, v = self.uniform_pair(SPAWN, index)
        return (2 * u - 1) * self.constants.stop_x, (2 * v - 1) * self.constants.stop_z

    def _is_free(self, x: float, z: float) -> bool:
        return not any(
            along_x.stop_low < x < along_x.stop_high and along_z.stop_low < z < along_z.stop_high
            for along_x, _, along_z in self.boxes
        )

    def _draw_places(self) -> list[tuple[float, float]]:
        separation = self.constants.spawn_separation
        drawn = 0
        for _ in range(SPAWN_TRIES):
            first_x, first_z = self._draw_place(drawn)
            drawn += 1
            if not self._is_free(first_x, first_z):
                continue
            for _ in range(SPAWN_PLACES_PER_TRY):
                x, z = self._draw_place(drawn)
                drawn += 1
                dx, dz = x - first_x, z - first_z
                if self._is_free(x, z) and dx * dx + dz * dz >= separation * separation:
                    return [(first_x, first_z), (x, z)]
        return self._far_points()

    def _far_points(self) -> list[tuple[float, float]]:
        shares = [k * 2 / 80 - 1 for k in range(81)]
        grid = [
            (i * self.constants.stop_x, j * self.constants.stop_z) for i in shares for j in shares
        ]
        free = [point for point in grid if self._is_free(*point)]
        first = free[0]
        apart = [(x - first[0]) * (x - first[0]) + (z - first[1]) * (z - first[1]) for x, z in free]
        return [first, free[apart.index(max(apart))]]

    def _draw_facing(self, agent: int) -> tuple[float, float]:
        for index in range(FACING_DRAWS):
            u, v = self.uniform_pair(FACING, agent * FACING_DRAWS + index)
            x, z = 2 * u - 1, 2 * v - 1
            square = x * x + z * z
            if 0.01 < square < 1:
                return x / math.sqrt(square), z / math.sqrt(square)
        return 0.0, 1.0

    # Play

    def decide(self, actions: list[list[float]]) -> tuple[int, int]:
        """Play one decision of both agents: how the episode ended, if it did, and who won."""
        commands = [read_command(action, self.constants) for action in actions]
        seeker = self.seeker
        before = distance_between(*self.agents)
        tally = Tally()
        end, winner = GOING_ON, NOBODY
        for _ in range(self.constants.step_tick_interval):
            end, winner = self._play_tick(commands, tally)
            if end != GOING_ON:
                break
        progress = before - distance_between(*self.agents)
        for i in (0, 1):
            timeout = self._timeout_term(i, winner) if end == TIMED_OUT else 0.0
            self.terms[i] = self._terms(i, i == seeker, progress, timeout, tally)
            self.rewards[i] = self._total(self.terms[i])
        return end, winner

    def _play_tick(self, commands: list[Command], tally: Tally) -> tuple[int, int]:
        first, second = self.agents
        jumped = (
            move(first, second, commands[0], self.boxes, self.constants),
            move(second, first, commands[1], self.boxes, self.constants),
        )
        near = distance_between(first, second) <= self.profile["jump_near_m"]
        if near and jumped[self.seeker]:
            tally.near_jumps[self.seeker] += 1
        return self._judge(tally)

    def _judge(self, tally: Tally) -> tuple[int, int]:
        self.tick += 1
        self.agents[self.seeker].it_ticks += 1
        for agent in self.agents:
            if agent.immune_ticks > 0:
                agent.immune_ticks -= 1
        seeker, hider = self.agents[self.seeker], self.agents[1 - self.seeker]
        if hider.immune_ticks == 0 and within_reach(seeker, hider, self.constants):
            tally.tags[self.seeker] += 1
            if self.constants.tag_ends_episode:
                return TAGGED, self.seeker
            self._exchange_roles()
        if self.tick >= self.constants.limit_ticks:
            return TIMED_OUT, self._winner_by_time()
        return GOING_ON, NOBODY

    def _exchange_roles(self) -> None:
        self.seeker = 1 - self.seeker
        for agent in self.agents:
            agent.immune_ticks = self.constants.immunity_ticks

    def _winner_by_time(self) -> int:
        first, second = self.agents[0].it_ticks, self.agents[1].it_ticks
        if first == second:
            return NOBODY
        return 0 if first < second else 1

    # Rewards

    def _timeout_term(self, i: int, winner: int) -> float:
        if winner == NOBODY:
            return 0.0
        if winner == i:
            return self.profile["timeout_hider_bonus"]
        return -self.profile["timeout_seeker_penalty"]

    def _terms(
        self, i: int, seeks: bool, progress: float, timeout: float, tally: Tally
    ) -> list[float]:
        profile, agent, stops = self.profile, self.agents[i], self.constants
        n = tally.tags[i] - tally.tags[1 - i]
        high = agent.on_floor and agent.y > profile["high_ground_y_m"]
        room = lesser(stops.stop_x - abs(agent.x), stops.stop_z - abs(agent.z))
        vx, vz = agent.velocity_x, agent.velocity_z
        return [
            profile["distance_reward_scale"] * (progress if seeks else -progress),
            profile["seeker_time_penalty"] if seeks else 0.0,
            0.0 if seeks else profile["runner_survival_bonus"],
            (profile["win_bonus"] if n > 0 else profile["tagged_penalty"]) * n,
            timeout,
            profile["high_ground_bonus"] if high and not seeks else 0.0,
            profile["jump_near_bonus"] * tally.near_jumps[i] if seeks else 0.0,
            -profile["wall_penalty"] if room < profile["wall_near_m"] else 0.0,
            profile["speed_bonus"] * (math.sqrt(vx * vx + vz * vz) / stops.speed),
        ]

    def _total(self, terms: list[float]) -> float:
        # Not sum(): newer Pythons compensate its rounding, and the page does not.
        total = 0.0
        for term in terms:
            total = total + term
        return single(total)

    # Senses

    def sense(self) -> list[list[float]]:
        """What both agents observe; they remember what they see."""
        return [self._sense(0), self._sense(1)]

    def _sense(self, i: int) -> list[float]:
        agent, opponent = self.agents[i], self.agents[1 - i]
        eye = (agent.x, agent.y + self.constants.eye_height, agent.z)
        rays, shown = look_around(agent, opponent, eye, self.boxes, self.fan, self.constants)
        visible = shown or aimed_ray_sees(agent, opponent, eye, self.boxes, self.constants)
        if visible:
            agent.seen_x, agent.seen_y, agent.seen_z = opponent.place()
            agent.seen_tick = self.tick
        return singles([*self._own_numbers(i), float(visible), *self._memory(agent), *rays])

    def _own_numbers(self, i: int) -> list[float]:
        agent, seeks = self.agents[i], i == self.seeker
        metres, speed = self.constants.position_scale, self.constants.velocity_scale
        limit_ticks = self.constants.limit_ticks
        return [
            agent.x / metres,
            agent.y / metres,
            agent.z / metres,
            agent.velocity_x / speed,
            agent.velocity_y / speed,
            agent.velocity_z / speed,
            agent.forward_x,
            agent.forward_z,
            float(seeks),
            float(not seeks),
            float(agent.on_floor),
            float(agent.immune_ticks > 0),
            (limit_ticks - self.tick) / limit_ticks,
        ]

    def _memory(self, agent: Agent) -> list[float]:
        if agent.seen_tick == NEVER:
            return [0.0, 0.0, 0.0, 1.0]
        metres = self.constants.position_scale
        return [
            (agent.seen_x - agent.x) / metres,
            (agent.seen_y - agent.y) / metres,
            (agent.seen_z - agent.z) / metres,
            (self.tick - agent.seen_tick) / self.constants.limit_ticks,
        ]
