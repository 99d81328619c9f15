"""What the Gymnasium and PettingZoo faces of the engine share: spaces, infos, how to begin."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box

from estragon.tag.arenas import SEEDS, Arenas, Results
from estragon.tag.layout import Layout
from estragon.tag.match import TAGGED, TIMED_OUT
from estragon.tag.rewards import TERMS
from estragon.tag.roles import ROLES
from estragon.tag.rules import ACTION_SIZE, Rules

REASONS = {TAGGED: "tag", TIMED_OUT: "timeout"}


def observation_space(rules: Rules, layouts: list[Layout]) -> Box:
    """Bounds that no observation leaves: the arena's extent, and the fastest fall in it."""
    tallest = max((box.size_m[1] for layout in layouts for box in layout.boxes), default=0.0)
    top = tallest + rules.jump_height_m + 2.0 * rules.agent.size_m
    fall = (2.0 * rules.physics.gravity_mps2 * top) ** 0.5 + rules.physics.gravity_mps2
    length = max(rules.arena.width_m, rules.arena.depth_m, top)
    speed = max(rules.agent.speed_mps, rules.agent.jump_speed_mps, fall)
    scales = rules.observation
    bound = max(1.0, length / scales.position_scale_m, speed / scales.velocity_scale_mps)
    return Box(-bound, bound, (rules.observation.size,), np.float32)


def action_space() -> Box:
    """move_x, move_z and jump, each from -1 to 1."""
    return Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)


def begin(arenas: Arenas, seed: int | None, random: np.random.Generator) -> None:
    """Begin an episode everywhere: the seed's first, or without a seed the next.

    `random` makes up a seed for arenas that have neither begun nor been given one.
    """
    if seed is not None:
        arenas.reset(seed % SEEDS)
    elif arenas.begun:
        arenas.next_episode()
    else:
        arenas.reset(int(random.integers(SEEDS)))


def agent_info(results: Results, arena: int, agent: int, is_seeker: bool) -> dict[str, Any]:
    """One agent's info after a decision; the last one of an episode also says how it ended."""
    info: dict[str, Any] = {
        "role": ROLES[not is_seeker],
        "distance_to_other": float(results.distances[arena]),
        "ticks": int(results.ticks[arena]),
        "reward_terms": dict(zip(TERMS, results.terms[arena, agent].tolist(), strict=True)),
    }
    end = int(results.ends[arena])
    if end in REASONS:
        info["terminal_reason"] = REASONS[end]
        winner = int(results.winners[arena])
        info["won"] = winner == agent
        info["draw"] = winner < 0
    return info


def batch_info(results: Results, agent: int) -> dict[str, np.ndarray]:
    """The same for one agent of every arena, as arrays."""
    info = {
        "distance_to_other": results.distances.copy(),
        "ticks": results.ticks.copy(),
        "terminal_reason": results.ends.copy(),
        "won": (results.winners == agent),
    }
    for index, term in enumerate(TERMS):
        info[f"reward_{term}"] = results.terms[:, agent, index].copy()
    return info
