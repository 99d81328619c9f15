"""Scripted players, the fixed yardstick: functions of the observation and nothing more.

The same arithmetic as the rest of the game (float64, no library functions but sqrt), and no state
from one decision to the next, so that Godot's bots take the same actions to the bit.
"""

import math
from typing import NamedTuple

import numpy as np

from estragon.support.errors import UserError
from estragon.support.parallel import available_cores, parallel_for
from estragon.tag.compile import inlined, kernel
from estragon.tag.rules import OBS, RAY_CHANNELS, Rules
from estragon.tag.state import Constants, constants_of, cosine, fan_of, radians, sine
from estragon.tag.threefry import ACTION, threefry

BOTS = ("random", "chaser", "evader")
RANDOM, CHASER, EVADER = range(3)
DIRECTIONS = 16
HORIZON, IMAGINED_SEC = 6, 0.125
COVER = 0.5
LOOK_BACK_SEC = 1.0
CHASE_EFFORT = 0.93
"""How fast the chaser comes on, as a share of full speed."""
FRESH_SEC = 3.0
"""How long the evader runs from a place where it saw the seeker."""


class BotSense(NamedTuple):
    """What a bot knows of the rules."""

    fan: np.ndarray
    """(2, rays) cosine and sine of each ray's angle."""
    compass: np.ndarray
    """(2, DIRECTIONS) x and z of directions all around."""
    c: Constants
    acceleration: float
    limit_sec: float


class Bot:
    """A scripted player that takes whole batches of observations."""

    def __init__(self, name: str, rules: Rules, threads: int | None = None) -> None:
        """Make the bot called `name`, one of BOTS."""
        if name not in BOTS:
            raise UserError(
                f"no bot '{name}'; available: {', '.join(f'bot:{bot}' for bot in BOTS)}"
            )
        self.name = f"bot:{name}"
        self._kind = BOTS.index(name)
        self._threads = threads or available_cores()
        turns = [radians(360.0 * k / DIRECTIONS - 180.0) for k in range(DIRECTIONS)]
        self._sense = BotSense(
            fan=fan_of(rules),
            compass=np.array([[cosine(a) for a in turns], [sine(a) for a in turns]]),
            c=constants_of(rules),
            acceleration=rules.agent.acceleration_mps2,
            limit_sec=rules.limit_sec,
        )

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        actions = np.empty((len(observations), 3), dtype=np.float32)
        work = observations, actions, self._kind, self._sense
        parallel_for(_act_span, len(observations), self._threads, *work)
        return actions


@kernel
def _act_span(
    first: int, last: int, observations: np.ndarray, actions: np.ndarray, kind: int, s: BotSense
) -> None:
    for row in range(first, last):
        if kind == RANDOM:
            x, z, jump = _random(observations[row])
        elif kind == CHASER:
            x, z, jump = _chase(observations[row], s)
        else:
            x, z, jump = _evade(observations[row], s)
        actions[row, 0] = np.float32(x)
        actions[row, 1] = np.float32(z)
        actions[row, 2] = np.float32(jump)


@inlined
def _random(obs: np.ndarray) -> tuple[float, float, float]:
    """Uniform actions, drawn from the bits of the observation itself."""
    bits = obs.view(np.uint32)
    role = 1 if obs[OBS.is_seeker] > 0.5 else 0
    first, second = threefry(
        int(bits[OBS.time_left]), role, int(bits[OBS.position]), int(bits[OBS.position + 2])
    )
    third, _ = threefry(first, second, ACTION, role)
    x = first / 4294967296.0 * 2.0 - 1.0
    z = second / 4294967296.0 * 2.0 - 1.0
    return x, z, third / 4294967296.0 * 2.0 - 1.0


@inlined
def _flat(obs: np.ndarray, field: int, scale: float) -> tuple[float, float]:
    """A vector of the observation, without its y."""
    return float(obs[field]) * scale, float(obs[field + 2]) * scale


@inlined
def _direction(obs: np.ndarray, ray: int, s: BotSense) -> tuple[float, float]:
    """Where a ray points, in x and z."""
    forward_x, forward_z = float(obs[OBS.forward]), float(obs[OBS.forward + 1])
    along_x = forward_x * s.fan[0, ray] - forward_z * s.fan[1, ray]
    return along_x, forward_x * s.fan[1, ray] + forward_z * s.fan[0, ray]


@inlined
def _solid_at(obs: np.ndarray, ray: int, s: BotSense) -> float:
    """How far along a ray something solid is; -1 if there is nothing."""
    place = OBS.rays + RAY_CHANNELS * ray
    return float(obs[place]) * s.c.eye_range if obs[place + 1] > 0.5 else -1.0


@inlined
def _clearance(obs: np.ndarray, along_x: float, along_z: float, s: BotSense) -> float:
    """How far the cube could go in a direction before it meets something its rays show solid."""
    clear = s.c.eye_range
    for ray in range(s.fan.shape[1]):
        distance = _solid_at(obs, ray, s)
        if distance >= 0.0:
            ray_x, ray_z = _direction(obs, ray, s)
            ahead = distance * (ray_x * along_x + ray_z * along_z)
            aside = distance * (ray_x * along_z - ray_z * along_x)
            if ahead > 0.0 and abs(aside) < 0.7 * s.c.size and ahead < clear:
                clear = ahead
    return clear


@inlined
def _steer(
    obs: np.ndarray, goal_x: float, goal_z: float, distance: float, s: BotSense
) -> tuple[float, float]:
    """The direction in the fan that best leads to a goal around what stands in the way."""
    forward_x, forward_z = float(obs[OBS.forward]), float(obs[OBS.forward + 1])
    want = distance if distance < 4.0 else 4.0
    best_x, best_z = goal_x, goal_z
    if forward_x * goal_x + forward_z * goal_z < s.fan[0, 0]:
        return best_x, best_z  # out of sight: turn to it first
    clear = _clearance(obs, goal_x, goal_z, s)
    best = 1.0 + (clear if clear < want else want) / want
    for ray in range(0, s.fan.shape[1], 3):
        along_x, along_z = _direction(obs, ray, s)
        clear = _clearance(obs, along_x, along_z, s)
        score = along_x * goal_x + along_z * goal_z + (clear if clear < want else want) / want
        if score > best:
            best, best_x, best_z = score, along_x, along_z
    return best_x, best_z


@inlined
def _roam(obs: np.ndarray, s: BotSense) -> tuple[float, float]:
    """Walk where there is most room, in a gentle curve."""
    forward_x, forward_z = float(obs[OBS.forward]), float(obs[OBS.forward + 1])
    best, best_x, best_z = -1.0, -forward_x, -forward_z
    for ray in range(0, s.fan.shape[1], 3):
        along_x, along_z = _direction(obs, ray, s)
        score = _clearance(obs, along_x, along_z, s) + s.fan[0, ray] + s.fan[1, ray]
        if score > best and score > 3.0:
            best, best_x, best_z = score, along_x, along_z
    return best_x, best_z


@inlined
def _chase(obs: np.ndarray, s: BotSense) -> tuple[float, float, float]:
    """Go for what is seen; else for where it was last seen; else look for it."""
    forward_x, forward_z = float(obs[OBS.forward]), float(obs[OBS.forward + 1])
    on_floor, visible = obs[OBS.on_floor] > 0.5, obs[OBS.opponent_visible] > 0.5
    seek_x, seek_z = _flat(obs, OBS.last_seen_relative, s.c.position_scale)
    seek_y = float(obs[OBS.last_seen_relative + 1]) * s.c.position_scale
    distance = math.sqrt(seek_x * seek_x + seek_z * seek_z)
    velocity_x, velocity_z = _flat(obs, OBS.velocity, s.c.velocity_scale)
    slow = velocity_x * velocity_x + velocity_z * velocity_z < 1.0
    elapsed = (1.0 - float(obs[OBS.time_left])) * s.limit_sec
    age = float(obs[OBS.last_seen_age]) * s.limit_sec
    never = obs[OBS.last_seen_age] > 0.999
    if (never and elapsed < 0.6) or (not visible and distance < 1.5 and age < 1.0):
        return -forward_z * 0.3, forward_x * 0.3, 0.0  # look around
    if never or (not visible and (distance < 1.5 or age > 3.0)):
        x, z = _roam(obs, s)
        return x, z, 1.0 if slow and elapsed > 1.0 else 0.0
    if distance < 0.001:
        return forward_x, forward_z, 0.0
    goal_x, goal_z = seek_x / distance, seek_z / distance
    if seek_y > 0.5 and distance < 4.0:  # it stands on something: up there
        return goal_x, goal_z, 1.0 if distance < 3.0 and on_floor else 0.0
    x, z = _steer(obs, goal_x, goal_z, distance, s)
    jump = 1.0 if slow and distance > 2.0 and elapsed > 0.5 else 0.0
    return x * CHASE_EFFORT, z * CHASE_EFFORT, jump


@inlined
def _evade(obs: np.ndarray, s: BotSense) -> tuple[float, float, float]:
    """Run the way that keeps the seeker farthest, were it to come straight on."""
    forward_x, forward_z = float(obs[OBS.forward]), float(obs[OBS.forward + 1])
    threat_x, threat_z = _flat(obs, OBS.last_seen_relative, s.c.position_scale)
    distance = math.sqrt(threat_x * threat_x + threat_z * threat_z)
    age = float(obs[OBS.last_seen_age]) * s.limit_sec
    if age > FRESH_SEC or distance < 0.001:
        return -forward_z * 0.3, forward_x * 0.3, 0.0  # look around
    if obs[OBS.opponent_visible] < 0.5 and age > LOOK_BACK_SEC and distance > 4.0:
        return threat_x / distance * 0.15, threat_z / distance * 0.15, 0.0  # look back
    # unseen, it will have come after: as far as it could run, but not nearer than a step
    come = s.c.speed * age if s.c.speed * age < distance - 2.0 else distance - 2.0
    if come > 0.0:
        threat_x = threat_x - threat_x / distance * come
        threat_z = threat_z - threat_z / distance * come
    best, best_x, best_z, best_room = -1e9, 0.0, 0.0, 0.0
    for k in range(s.compass.shape[1]):
        along_x, along_z = s.compass[0, k], s.compass[1, k]
        room = _room(obs, along_x, along_z, s)
        score = _imagine(obs, along_x, along_z, room, threat_x, threat_z, s)
        if score > best:
            best, best_x, best_z, best_room = score, along_x, along_z, room
    jumps = obs[OBS.on_floor] > 0.5 and (best_room < 0.8 or distance < 1.3)
    return best_x, best_z, 1.0 if jumps else 0.0


@inlined
def _imagine(
    obs: np.ndarray,
    along_x: float,
    along_z: float,
    room: float,
    threat_x: float,
    threat_z: float,
    s: BotSense,
) -> float:
    """How well it would end to run one way while the seeker comes straight on."""
    x, z, ran = 0.0, 0.0, 0.0
    velocity_x, velocity_z = _flat(obs, OBS.velocity, s.c.velocity_scale)
    closest = 100.0
    for _ in range(HORIZON):
        change_x, change_z = along_x * s.c.speed - velocity_x, along_z * s.c.speed - velocity_z
        change = math.sqrt(change_x * change_x + change_z * change_z)
        most = s.acceleration * IMAGINED_SEC
        share = most / change if change > most else 1.0
        velocity_x = velocity_x + change_x * share
        velocity_z = velocity_z + change_z * share
        if ran < room:
            x = x + velocity_x * IMAGINED_SEC
            z = z + velocity_z * IMAGINED_SEC
            ran = x * along_x + z * along_z
        away_x, away_z = x - threat_x, z - threat_z
        apart = math.sqrt(away_x * away_x + away_z * away_z)
        closest = apart if apart < closest else closest
        if apart > 0.1:
            threat_x = threat_x + away_x / apart * s.c.speed * IMAGINED_SEC
            threat_z = threat_z + away_z / apart * s.c.speed * IMAGINED_SEC
    own_x, own_z = _flat(obs, OBS.position, s.c.position_scale)
    hidden = COVER if _hidden(obs, x, z, threat_x, threat_z, s) else 0.0
    return closest + 1.5 * apart + hidden - _cornered(own_x + x, own_z + z, s)


@inlined
def _hidden(
    obs: np.ndarray, end_x: float, end_z: float, threat_x: float, threat_z: float, s: BotSense
) -> bool:
    """Whether something its rays show stands between the seeker and where it would be."""
    line_x, line_z = end_x - threat_x, end_z - threat_z
    square = line_x * line_x + line_z * line_z
    for ray in range(s.fan.shape[1]):
        distance = _solid_at(obs, ray, s)
        if distance >= 0.0:
            ray_x, ray_z = _direction(obs, ray, s)
            x, z = distance * ray_x - threat_x, distance * ray_z - threat_z
            along = x * line_x + z * line_z
            across = x * line_z - z * line_x
            between = 0.1 * square < along < 0.9 * square
            if between and across * across < 0.25 * square:
                return True
    return False


@inlined
def _room(obs: np.ndarray, along_x: float, along_z: float, s: BotSense) -> float:
    """How far it could run in a direction: to the walls, or to what its rays show."""
    x, z = _flat(obs, OBS.position, s.c.position_scale)
    room = 100.0
    if along_x > 0.001 or along_x < -0.001:
        wall = ((s.c.stop_x if along_x > 0.0 else -s.c.stop_x) - x) / along_x
        room = wall if wall < room else room
    if along_z > 0.001 or along_z < -0.001:
        wall = ((s.c.stop_z if along_z > 0.0 else -s.c.stop_z) - z) / along_z
        room = wall if wall < room else room
    clear = _clearance(obs, along_x, along_z, s) - 0.5 * s.c.size
    room = clear if clear < room else room
    return room if room > 0.0 else 0.0


@inlined
def _cornered(x: float, z: float, s: BotSense) -> float:
    """How bad a place is to be caught in: near a wall, and worse near two."""
    room_x, room_z = s.c.stop_x - abs(x), s.c.stop_z - abs(z)
    near_x = 3.0 - room_x if room_x < 3.0 else 0.0
    near_z = 3.0 - room_z if room_z < 3.0 else 0.0
    return 0.6 * near_x + 0.6 * near_z + 0.3 * near_x * near_z
