"""A whole match of the reference, written from docs/physics.md alone."""

import math
from dataclasses import dataclass, field
from typing import Any

from tests.tag.reference.arithmetic import lesser, single, singles, threefry
from tests.tag.reference.constants import derive_constants, derive_fan, make_boxes
from tests.tag.reference.movement import (
    NEVER,
    Agent,
    Command,
    distance_between,
    move,
    read_command,
    within_reach,
)
from tests.tag.reference.senses import aimed_ray_sees, look_around

GOING_ON, TAGGED, TIMED_OUT = 0, 1, 2
NOBODY = -1
SPAWN, FACING, LAYOUT = 1, 2, 3
SPAWN_TRIES = 16
SPAWN_PLACES_PER_TRY = 64
FACING_DRAWS = 32


@dataclass(slots=True)
class Tally:
    """What happened in a decision that the rewards ask for."""

    tags: list[int] = field(default_factory=lambda: [0, 0])
    near_jumps: list[int] = field(default_factory=lambda: [0, 0])
    sight: int = 0


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
        self.profile: dict[str, float] = {
            weight: usual
            for weights in rules_json["reward_terms"].values()
            for weight, (usual, _, _) in weights.items()
        } | rules_json["reward_profiles"][rules_json["rewards"]]
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
        self.sees = [False, False]
        for i, (x, z) in enumerate(self._draw_places()):
            forward_x, forward_z = self._draw_facing(i)
            agent = Agent(x, self.constants.stop_floor, z, forward_x, forward_z)
            agent.immune_ticks = self.constants.head_start_ticks
            self.agents.append(agent)
        self.terms: list[list[float]] = [[], []]
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
        seeker = self.seeker
        closed = self._eyes_closed()
        if closed:
            actions = [[0.0, 0.0, 0.0] if i == seeker else actions[i] for i in (0, 1)]
        commands = [read_command(action, self.constants) for action in actions]
        tally = Tally(sight=0 if closed else 1 if self.sees[seeker] else -1)
        before = distance_between(*self.agents)
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
            profile["sight_bonus"] * (tally.sight if seeks else -tally.sight),
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
        if i == self.seeker and self._eyes_closed():
            rays, visible = [1.0, 0.0, 0.0] * len(self.fan), False
        else:
            rays, shown = look_around(agent, opponent, eye, self.boxes, self.fan, self.constants)
            visible = shown or aimed_ray_sees(agent, opponent, eye, self.boxes, self.constants)
        self.sees[i] = visible
        d = [theirs - own for theirs, own in zip(opponent.place(), agent.place(), strict=True)]
        apart = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
        heard = i != self.seeker and apart < self.constants.hearing * self.constants.hearing
        if visible or heard:
            agent.seen_x, agent.seen_y, agent.seen_z = opponent.place()
            agent.seen_tick = self.tick
        return singles([*self._own_numbers(i), float(visible), *self._memory(agent), *rays])

    def _eyes_closed(self) -> bool:
        return self.tick < self.constants.head_start_ticks

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
