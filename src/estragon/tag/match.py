"""The course of a match in one arena: spawn, sense, and everything a decision sets off."""

import math
from typing import Any

import numpy as np

from estragon.tag import streams
from estragon.tag.compile import inlined
from estragon.tag.constants import Constants, Rooms, Weights
from estragon.tag.observation import write_head, write_rays
from estragon.tag.physics import command_of, distance_between, gap_square, move_agent
from estragon.tag.rewards import NOBODY, reward_terms
from estragon.tag.vision import cast_fan, sees

GOING_ON, TAGGED, TIMED_OUT = 0, 1, 2
"""How a decision ended."""
FIRST_TRIES, SECOND_TRIES, FACING_TRIES = 16, 64, 32


@inlined
def spawn(
    arenas: Any, agents: Any, a: int, seed: int, first_seeker: int, rooms: Rooms, c: Constants
) -> None:
    """Begin the current episode of arena `a`: a layout, two places apart, two facings."""
    arena = arenas[a]
    number, episode = arena.number, arena.episode
    layouts = rooms.counts.shape[0]
    arena.layout = 0
    if layouts > 1:
        share, _ = streams.uniform_pair(seed, number, episode, streams.LAYOUT, 0)
        arena.layout = int(share * layouts)
    arena.tick = 0
    arena.seeker = first_seeker
    _place(agents[a, 0], agents[a, 1], seed, number, episode, rooms, arena.layout, c)
    for i in range(2):
        agent = agents[a, i]
        agent.y = c.stop_floor
        agent.velocity_x = 0.0
        agent.velocity_y = 0.0
        agent.velocity_z = 0.0
        agent.forward_x = 0.0
        agent.forward_z = 1.0
        agent.seen_x = 0.0
        agent.seen_y = 0.0
        agent.seen_z = 0.0
        agent.seen_tick = -1
        agent.immune_ticks = 0
        agent.it_ticks = 0
        agent.on_floor = 1
        for attempt in range(FACING_TRIES):
            share_x, share_z = streams.uniform_pair(
                seed, number, episode, streams.FACING, i * FACING_TRIES + attempt
            )
            x, z = 2.0 * share_x - 1.0, 2.0 * share_z - 1.0
            square = x * x + z * z
            if 0.01 < square < 1.0:
                length = math.sqrt(square)
                agent.forward_x = x / length
                agent.forward_z = z / length
                break


@inlined
def _place(
    one: Any,
    two: Any,
    seed: int,
    number: int,
    episode: int,
    rooms: Rooms,
    layout: int,
    c: Constants,
) -> None:
    """Draw two free floor places at least the separation apart."""
    draw = 0
    for _ in range(FIRST_TRIES):
        one.x, one.z = _draw_floor(seed, number, episode, draw, c)
        draw += 1
        if not _is_free(one.x, one.z, rooms, layout):
            continue
        for _ in range(SECOND_TRIES):
            two.x, two.z = _draw_floor(seed, number, episode, draw, c)
            draw += 1
            x, z = two.x - one.x, two.z - one.z
            if x * x + z * z >= c.separation_square and _is_free(two.x, two.z, rooms, layout):
                return
    one.x, one.z = rooms.spawns[layout, 0, 0], rooms.spawns[layout, 0, 1]
    two.x, two.z = rooms.spawns[layout, 1, 0], rooms.spawns[layout, 1, 1]


@inlined
def _draw_floor(
    seed: int, number: int, episode: int, draw: int, c: Constants
) -> tuple[float, float]:
    share_x, share_z = streams.uniform_pair(seed, number, episode, streams.SPAWN, draw)
    return (2.0 * share_x - 1.0) * c.stop_x, (2.0 * share_z - 1.0) * c.stop_z


@inlined
def _is_free(x: float, z: float, rooms: Rooms, layout: int) -> bool:
    for index in range(rooms.counts[layout]):
        box = rooms.boxes[layout, index]
        if box.stop_low_x < x < box.stop_high_x and box.stop_low_z < z < box.stop_high_z:
            return False
    return True


@inlined
def decide(
    arenas: Any,
    agents: Any,
    a: int,
    actions: np.ndarray,
    terms: np.ndarray,
    rooms: Rooms,
    w: Weights,
    c: Constants,
) -> tuple[int, int]:
    """Play one decision in arena `a`; returns how it ended and who won, or NOBODY.

    Args:
        actions: (arenas, 2, 3) what the agents want.
        terms: (2, terms) float64, filled with the decision's rewards.
    """
    arena, one, two = arenas[a], agents[a, 0], agents[a, 1]
    layout, count = arena.layout, rooms.counts[arena.layout]
    acted_as_seeker = arena.seeker
    command_one, command_two = command_of(actions[a, 0], c), command_of(actions[a, 1], c)
    before = distance_between(one, two)
    tags_one, tags_two, near_jumps = 0, 0, 0
    end, winner = GOING_ON, NOBODY
    for _ in range(c.decision_ticks):
        seeker = arena.seeker
        jumped_one = move_agent(one, two, command_one, rooms.boxes, layout, count, c)
        jumped_two = move_agent(two, one, command_two, rooms.boxes, layout, count, c)
        if jumped_one if seeker == 0 else jumped_two:
            near_jumps += seeker == acted_as_seeker and distance_between(one, two) <= w.jump_near_m
        tagged, end = _judge_tick(arena, agents[a, seeker], agents[a, 1 - seeker], c)
        if tagged:
            tags_one += seeker == 0
            tags_two += seeker == 1
        if end != GOING_ON:
            winner = _winner(arena, one, two, end)
            break
    progress = before - distance_between(one, two)
    for i in range(2):
        reward_terms(
            agents[a, i],
            i == acted_as_seeker,
            progress,
            tags_one - tags_two if i == 0 else tags_two - tags_one,
            near_jumps,
            0 if end != TIMED_OUT or winner == NOBODY else (1 if winner == i else -1),
            terms[i],
            w,
            c,
        )
    return end, winner


@inlined
def _judge_tick(arena: Any, seeker: Any, hider: Any, c: Constants) -> tuple[bool, int]:
    """Count the tick, then see whether it brought a tag or the end."""
    arena.tick = arena.tick + 1
    seeker.it_ticks = seeker.it_ticks + 1
    if seeker.immune_ticks > 0:
        seeker.immune_ticks = seeker.immune_ticks - 1
    if hider.immune_ticks > 0:
        hider.immune_ticks = hider.immune_ticks - 1
    tagged = hider.immune_ticks == 0 and gap_square(seeker, hider, c.size) <= c.reach_square
    if tagged:
        if c.tag_ends_episode:
            return True, TAGGED
        arena.seeker = 1 - arena.seeker
        seeker.immune_ticks = c.immunity_ticks
        hider.immune_ticks = c.immunity_ticks
    return tagged, TIMED_OUT if arena.tick >= c.limit_ticks else GOING_ON


@inlined
def _winner(arena: Any, one: Any, two: Any, end: int) -> int:
    """Who won a match that ended: by the tag, or who was "it" for less time."""
    if end == TAGGED:
        return int(arena.seeker)
    if one.it_ticks == two.it_ticks:
        return NOBODY
    return 0 if one.it_ticks < two.it_ticks else 1


@inlined
def observe(
    arenas: Any,
    agents: Any,
    a: int,
    fan: np.ndarray,
    scratch: np.ndarray,
    rooms: Rooms,
    observations: np.ndarray,
    c: Constants,
) -> None:
    """Sense, remember, and write the observations of arena `a`.

    Args:
        fan: (2, rays) cosine and sine of each ray's angle from straight ahead.
        scratch: (4, rays) float64.
        observations: (arenas, 2, observation size) float32.
    """
    arena = arenas[a]
    layout, count = arena.layout, rooms.counts[arena.layout]
    for i in range(2):
        agent, other = agents[a, i], agents[a, 1 - i]
        out = observations[a, i]
        cast_fan(agent, other, fan, rooms.boxes, layout, count, scratch, c)
        visible = write_rays(scratch, out, c)
        if not visible:
            visible = sees(agent, other, rooms.boxes, layout, count, c)
        if visible:
            agent.seen_x, agent.seen_y, agent.seen_z = other.x, other.y, other.z
            agent.seen_tick = arena.tick
        write_head(arena.tick, agent, i == arena.seeker, visible, out, c)
