"""The reward of a decision, term by term."""

import math
from typing import Any

import numpy as np

from estragon.tag.compile import inlined
from estragon.tag.rules import TERM
from estragon.tag.state import Constants


@inlined
def reward_terms(
    agent: Any,
    is_seeker: bool,
    progress: float,
    tags: int,
    near_jumps: int,
    sight: int,
    verdict: int,
    terms: np.ndarray,
    w: Any,
    c: Constants,
) -> None:
    """Fill one agent's terms of one decision.

    Args:
        agent: its AGENT record after the decision.
        is_seeker: whether it was the seeker when the decision began.
        progress: by how many metres the two came closer.
        tags: how often it tagged the other, less how often it was tagged.
        near_jumps: how often the seeker jumped near the hider.
        sight: 1 or -1 where the seeker saw the hider when the decision began or did not, 0 where
            its eyes were closed.
        verdict: 1 or -1 where the time ran out and it won or lost, else 0.
        terms: (terms,) float64 to fill.
    """
    terms[TERM.distance] = w.distance_reward_scale * (progress if is_seeker else -progress)
    terms[TERM.time] = w.seeker_time_penalty if is_seeker else 0.0
    terms[TERM.survival] = 0.0 if is_seeker else w.runner_survival_bonus
    terms[TERM.tag] = (w.win_bonus if tags > 0 else w.tagged_penalty) * tags
    terms[TERM.timeout] = (
        w.timeout_hider_bonus if verdict > 0 else w.timeout_seeker_penalty
    ) * verdict
    stands_high = agent.on_floor == 1 and agent.y > w.high_ground_y_m
    terms[TERM.high_ground] = w.high_ground_bonus if stands_high and not is_seeker else 0.0
    terms[TERM.jump_near] = w.jump_near_bonus * near_jumps if is_seeker else 0.0
    room_x, room_z = c.stop_x - abs(agent.x), c.stop_z - abs(agent.z)
    near_wall = (room_x if room_x < room_z else room_z) < w.wall_near_m
    terms[TERM.wall] = -w.wall_penalty if near_wall else 0.0
    terms[TERM.speed] = 0.0
    if w.speed_bonus > 0.0:
        x, z = agent.velocity_x, agent.velocity_z
        terms[TERM.speed] = w.speed_bonus * (math.sqrt(x * x + z * z) / c.speed)
    terms[TERM.sight] = w.sight_bonus * (sight if is_seeker else -sight)
