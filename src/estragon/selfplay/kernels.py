"""The loops of learning that run once a row: what a policy sees, what it chooses, what it earned.

Rows are arenas; `agents` says which agent of each arena plays the role in question.
"""

import math
from typing import NamedTuple

import numpy as np

from estragon.tag.arenas import Results
from estragon.tag.compile import inlined, kernel
from estragon.tag.frozen import CLIP
from estragon.tag.rules import GOING_ON, OBS, TAGGED

SMALLEST_CHANCE = 1e-9
FEW_ROWS = 64
"""Up to so many rows `decide_few` is quicker than torch."""


class Numbers(NamedTuple):
    """The numbers of a policy, as kernels want them; arrays are float32."""

    turns: bool
    """Whether observations have a heading, in whose frame the policy sees and acts."""
    mean: np.ndarray
    """(size,), of turned observations."""
    scale: np.ndarray
    moves: np.ndarray
    """(choices, 2), ahead and aside."""
    first: np.ndarray
    """(size, hidden)."""
    first_bias: np.ndarray
    second: np.ndarray
    """(hidden, hidden)."""
    second_bias: np.ndarray
    last: np.ndarray
    """(hidden, choices + 2)."""
    last_bias: np.ndarray


@kernel
def prepare(
    observations: np.ndarray,
    agents: np.ndarray,
    mean: np.ndarray,
    scale: np.ndarray,
    features: np.ndarray,
) -> None:
    """Turn observations into the heading frame, normalise and clip them.

    Args:
        observations: (arenas, 2, size) float32, in world axes.
        agents: (rows,) int64.
        mean, scale: (size,) float32.
        features: (rows, size) float32 to fill.
    """
    for row in range(len(agents)):
        _prepare_row(observations[row, agents[row]], True, mean, scale, features[row])


@inlined
def _prepare_row(
    seen: np.ndarray, turns: bool, mean: np.ndarray, scale: np.ndarray, out: np.ndarray
) -> None:
    limit = np.float32(CLIP)
    for k in range(len(mean)):
        out[k] = seen[k]
    if turns:
        x, z = seen[OBS.forward], seen[OBS.forward + 1]
        for start in (OBS.position, OBS.velocity, OBS.last_seen_relative):
            out[start] = seen[start] * x + seen[start + 2] * z
            out[start + 2] = seen[start + 2] * x - seen[start] * z
    for k in range(len(mean)):
        value = (out[k] - mean[k]) / scale[k]
        out[k] = min(max(value, -limit), limit)


@kernel
def choose(
    scores: np.ndarray,
    chances: np.ndarray,
    moves: np.ndarray,
    observations: np.ndarray,
    agents: np.ndarray,
    picks: np.ndarray,
    log_chances: np.ndarray,
    actions: np.ndarray,
) -> None:
    """Draw a move and a jump for every row, and write the action in world axes.

    Args:
        scores: (rows, choices + 2) float32, what a policy's last layer says.
        chances: (rows, 2) float32, uniform draws.
        moves: (choices, 2) float32, ahead and aside.
        observations: (arenas, 2, size) float32.
        agents: (rows,) int64.
        picks: (rows, 2) int64 to fill: the move's number, and 1 for a jump.
        log_chances: (rows,) float32 to fill: the log-probability of what was drawn.
        actions: (arenas, 2, 3) float32 to fill.
    """
    for row in range(len(agents)):
        seen, action = observations[row, agents[row]], actions[row, agents[row]]
        x, z = seen[OBS.forward], seen[OBS.forward + 1]
        log_chances[row] = _choose_row(scores[row], chances[row], moves, x, z, picks[row], action)


@inlined
def _choose_row(
    scores: np.ndarray,
    chances: np.ndarray,
    moves: np.ndarray,
    x: np.float32,
    z: np.float32,
    picks: np.ndarray,
    action: np.ndarray,
) -> float:
    """Draw for one row that faces (x, z); the log-probability of what was drawn."""
    choices = len(moves)
    best = scores[0]
    for k in range(1, choices):
        best = max(best, scores[k])
    total = 0.0
    for k in range(choices):
        total += math.exp(scores[k] - best)
    wanted, so_far, move = chances[0] * total, 0.0, choices - 1
    for k in range(choices):
        so_far += math.exp(scores[k] - best)
        if wanted < so_far:
            move = k
            break
    jump_chance = 1.0 / (1.0 + math.exp(-scores[choices]))
    jumps = chances[1] < jump_chance
    log_jump = math.log((jump_chance if jumps else 1.0 - jump_chance) + SMALLEST_CHANCE)
    picks[0], picks[1] = move, jumps
    ahead, aside = moves[move, 0], moves[move, 1]
    action[0] = ahead * x - aside * z
    action[1] = ahead * z + aside * x
    action[2] = 1.0 if jumps else 0.0
    return float(scores[move] - best) - math.log(total) + log_jump


@kernel
def decide_few(
    observations: np.ndarray,
    agents: np.ndarray,
    policy: Numbers,
    chances: np.ndarray,
    features: np.ndarray,
    values: np.ndarray,
    picks: np.ndarray,
    log_chances: np.ndarray,
    actions: np.ndarray,
) -> None:
    """`prepare`, the network and `choose` in one go: for few rows calls cost more than numbers do.

    Args:
        values: (rows,) float32 to fill: the return that the policy expects.
        observations, agents, policy, chances, features, picks, log_chances, actions: as above.
    """
    hidden, choices = len(policy.first_bias), len(policy.moves)
    early = np.empty(hidden, dtype=np.float32)
    late = np.empty(hidden, dtype=np.float32)
    scores = np.empty(choices + 2, dtype=np.float32)
    for row in range(len(agents)):
        seen, action = observations[row, agents[row]], actions[row, agents[row]]
        _prepare_row(seen, policy.turns, policy.mean, policy.scale, features[row])
        _dense(features[row], policy.first, policy.first_bias, early)
        _cut_below_zero(early)
        _dense(early, policy.second, policy.second_bias, late)
        _cut_below_zero(late)
        _dense(late, policy.last, policy.last_bias, scores)
        values[row] = scores[choices + 1]
        x, z = np.float32(1.0), np.float32(0.0)
        if policy.turns:
            x, z = seen[OBS.forward], seen[OBS.forward + 1]
        log_chances[row] = _choose_row(scores, chances[row], policy.moves, x, z, picks[row], action)


@inlined
def _dense(inputs: np.ndarray, weight: np.ndarray, bias: np.ndarray, outputs: np.ndarray) -> None:
    """One layer for one row, input by input, so that a processor does many outputs at a time."""
    for out in range(len(outputs)):
        outputs[out] = bias[out]
    for k in range(len(inputs)):
        value = inputs[k]
        for out in range(len(outputs)):
            outputs[out] += value * weight[k, out]


@inlined
def _cut_below_zero(values: np.ndarray) -> None:
    for k in range(len(values)):
        values[k] = max(values[k], np.float32(0.0))


@kernel
def estimate_advantages(
    rewards: np.ndarray,
    values: np.ndarray,
    ended: np.ndarray,
    swapped: np.ndarray,
    discount: float,
    smoothing: float,
    advantages: np.ndarray,
) -> None:
    """Generalised advantage estimation for both roles at once.

    An agent that changes its role goes on with the other role's estimates: its return is what it
    earns in both. Nothing flows across the end of an episode.

    Args:
        rewards: (2, steps, arenas) float32, by the role that acted.
        values: (2, steps + 1, arenas) float32.
        ended: (steps, arenas) bool: the episode ended with this step.
        swapped: (steps, arenas) bool: the roles changed hands with this step.
        discount: gamma.
        smoothing: lambda.
        advantages: (2, steps, arenas) float32 to fill.
    """
    steps, arenas = ended.shape
    for a in range(arenas):
        ahead = np.zeros(2)
        for t in range(steps - 1, -1, -1):
            now = np.zeros(2)
            for role in range(2):
                surprise = rewards[role, t, a] - values[role, t, a]
                if not ended[t, a]:
                    next_role = 1 - role if swapped[t, a] else role
                    surprise += discount * values[next_role, t + 1, a]
                    surprise += discount * smoothing * ahead[next_role]
                now[role] = surprise
                advantages[role, t, a] = surprise
            ahead = now


@kernel
def add_moments(
    features: np.ndarray,
    mean: np.ndarray,
    scale: np.ndarray,
    sums: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Add up the turned observations behind normalised features, and their squares.

    Args:
        features: (rows, size) float32.
        mean, scale: (size,) float32, those the features were normalised with.
        sums, squares: (size,) float64 to add to.
    """
    for row in range(len(features)):
        for k in range(len(mean)):
            value = float(features[row, k]) * float(scale[k]) + float(mean[k])
            sums[k] += value
            squares[k] += value * value


@kernel
def record(
    results: Results,
    seekers: np.ndarray,
    seekers_after: np.ndarray,
    reward_scale: float,
    rewards: np.ndarray,
    ended: np.ndarray,
    swapped: np.ndarray,
) -> None:
    """Note what a decision brought to each role.

    Args:
        results: of the decision.
        seekers, seekers_after: (arenas,) int64, who was "it" when it was taken, and who is now.
        reward_scale: rewards are multiplied by it.
        rewards: (2, arenas) float32 to fill, by the role that acted.
        ended, swapped: (arenas,) bool to fill.
    """
    for a in range(len(seekers)):
        seeker = seekers[a]
        rewards[0, a] = results.rewards[a, seeker] * reward_scale
        rewards[1, a] = results.rewards[a, 1 - seeker] * reward_scale
        ended[a] = results.ends[a] != GOING_ON
        swapped[a] = not ended[a] and seekers_after[a] != seeker


@kernel
def count_decision(
    results: Results,
    seekers: np.ndarray,
    first: int,
    terms: np.ndarray,
    distance: np.ndarray,
    decisions: np.ndarray,
    episodes: np.ndarray,
    episode_terms: np.ndarray,
) -> None:
    """Add a decision to the running sums of some arenas, and sum up the episodes that it ended.

    Args:
        results: of the decision.
        seekers: (arenas,) int64, who was "it" when it was taken.
        first: the arena that row 0 of the sums belongs to.
        terms: (rows, 2, terms) float64, rewards of the episode so far by role.
        distance, decisions: (rows,) float64, of the episode so far.
        episodes: (6,) float64 to add to: episodes, decisions, ticks, seeker's wins, tags, distance.
        episode_terms: (2, terms) float64 to add to.
    """
    for row in range(len(distance)):
        a = first + row
        for role in range(2):
            agent = seekers[a] if role == 0 else 1 - seekers[a]
            for term in range(terms.shape[2]):
                terms[row, role, term] += results.terms[a, agent, term]
        distance[row] += results.distances[a]
        decisions[row] += 1.0
        if results.ends[a] != GOING_ON:
            winner = results.winners[a]
            episodes[0] += 1.0
            episodes[1] += decisions[row]
            episodes[2] += results.ticks[a]
            episodes[3] += 1.0 if winner == 0 else (0.5 if winner < 0 else 0.0)
            episodes[4] += 1.0 if results.ends[a] == TAGGED else 0.0
            episodes[5] += distance[row]
            for role in range(2):
                for term in range(terms.shape[2]):
                    episode_terms[role, term] += terms[row, role, term]
                    terms[row, role, term] = 0.0
            distance[row] = 0.0
            decisions[row] = 0.0
