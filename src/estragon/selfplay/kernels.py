"""Numba loops over rows: features, the policy's forward pass, sampling, and recording steps.

A row is an arena; `agents` says which agent of each arena plays the role in question. The outputs
of a policy are (rows, moves + 2): the logits of the moves, the logit of jumping, and the value.
"""

import math
from typing import NamedTuple

import numpy as np

from estragon.tag.arenas import Results
from estragon.tag.compile import inlined, kernel
from estragon.tag.frozen import CLIP
from estragon.tag.rules import GOING_ON, OBS, RAY_CHANNELS, TAGGED

TINY_PROB = 1e-9
FEW_ROWS = 64
"""Up to this many rows `act` is faster than torch."""
PRIVILEGED = 15
"""Numbers of `extract_privileged`."""
PRIVILEGED_ASIDE = (2, 6, 9, 11)
"""Those that a mirror changes."""
COUNTS = 6
"""Of an episode's numbers in `count_episodes`, those before the reward terms."""


class PolicyArrays(NamedTuple):
    """The parameters of a policy as float32 arrays, for `act`."""

    has_heading: bool
    """Whether observations have a heading, in whose frame the policy sees and acts."""
    mean: np.ndarray
    """(size,), of observations in the heading frame."""
    scale: np.ndarray
    moves: np.ndarray
    """(moves, 2), ahead and aside."""
    first: np.ndarray
    """(size, hidden)."""
    first_bias: np.ndarray
    second: np.ndarray
    """(hidden, hidden)."""
    second_bias: np.ndarray
    last: np.ndarray
    """(hidden, moves + 2)."""
    last_bias: np.ndarray


@kernel
def extract_features(
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
        _extract_row(observations[row, agents[row]], True, mean, scale, features[row])


@inlined
def _extract_row(
    seen: np.ndarray, has_heading: bool, mean: np.ndarray, scale: np.ndarray, out: np.ndarray
) -> None:
    limit = np.float32(CLIP)
    for k in range(len(mean)):
        out[k] = seen[k]
    if has_heading:
        x, z = seen[OBS.forward], seen[OBS.forward + 1]
        for start in (OBS.position, OBS.velocity, OBS.last_seen_relative):
            out[start] = seen[start] * x + seen[start + 2] * z
            out[start + 2] = seen[start + 2] * x - seen[start] * z
    for k in range(len(mean)):
        value = (out[k] - mean[k]) / scale[k]
        out[k] = min(max(value, -limit), limit)


@kernel
def extract_privileged(observations: np.ndarray, agents: np.ndarray, out: np.ndarray) -> None:
    """What a critic knows beside the features: the truth about the opponent, in the own heading.

    Args:
        observations: (arenas, 2, size) float32, in world axes.
        agents: (rows,) int64, the agents whose critic it is.
        out: (rows, PRIVILEGED) float32 to fill: the opponent's relative position, distance,
            velocity, forward vector, whether it stands, sees, and what it remembers.
    """
    for row in range(len(agents)):
        own, other = observations[row, agents[row]], observations[row, 1 - agents[row]]
        x, z = own[OBS.forward], own[OBS.forward + 1]
        dx = other[OBS.position] - own[OBS.position]
        dy = other[OBS.position + 1] - own[OBS.position + 1]
        dz = other[OBS.position + 2] - own[OBS.position + 2]
        values = out[row]
        values[0], values[1], values[2] = dx * x + dz * z, dy, dz * x - dx * z
        values[3] = math.sqrt(dx * dx + dy * dy + dz * dz)
        for place, start in ((4, OBS.velocity), (7, OBS.last_seen_relative)):
            values[place] = other[start] * x + other[start + 2] * z
            values[place + 1] = other[start + 1]
            values[place + 2] = other[start + 2] * x - other[start] * z
        forward_x, forward_z = other[OBS.forward], other[OBS.forward + 1]
        values[10], values[11] = forward_x * x + forward_z * z, forward_z * x - forward_x * z
        values[12] = other[OBS.on_floor]
        values[13] = other[OBS.opponent_visible]
        values[14] = other[OBS.last_seen_age]


@kernel
def transform_rows(
    features: np.ndarray,
    privileged: np.ndarray,
    actions: np.ndarray,
    mean: np.ndarray,
    scale: np.ndarray,
    mirrored_moves: np.ndarray,
    codes: np.ndarray,
) -> None:
    """Turn rows into what they would be in an arena that is mirrored, then turned.

    Args:
        features: (rows, size) float32 to change.
        privileged: (rows, PRIVILEGED or 0) float32 to change.
        actions: (rows, 2) int64 to change.
        mean, scale: (size,) float32 of the features.
        mirrored_moves: (moves,) int64, the mirror image of each move.
        codes: (rows,) uint8, as `layout.symmetries` gives them. A turn only changes where the
            agent faces in the world: all else is seen in its heading frame.
    """
    size = features.shape[1]
    rays = (size - OBS.rays) // RAY_CHANNELS
    for row in range(len(codes)):
        own, code = features[row], codes[row]
        a, b = OBS.forward, OBS.forward + 1
        x, z = own[a] * scale[a] + mean[a], own[b] * scale[b] + mean[b]
        if code & 1:
            x = -x
            for start in (OBS.position, OBS.velocity, OBS.last_seen_relative):
                k = start + 2
                own[k] = (-(own[k] * scale[k] + mean[k]) - mean[k]) / scale[k]
            for ray in range(rays // 2):
                for channel in range(RAY_CHANNELS):
                    k = OBS.rays + ray * RAY_CHANNELS + channel
                    j = OBS.rays + (rays - 1 - ray) * RAY_CHANNELS + channel
                    left, right = own[k] * scale[k] + mean[k], own[j] * scale[j] + mean[j]
                    own[k], own[j] = (right - mean[k]) / scale[k], (left - mean[j]) / scale[j]
            actions[row, 0] = mirrored_moves[actions[row, 0]]
            if privileged.shape[1]:
                for k in PRIVILEGED_ASIDE:
                    privileged[row, k] = -privileged[row, k]
        for _ in range(code >> 1):
            x, z = -z, x
        own[a], own[b] = (x - mean[a]) / scale[a], (z - mean[b]) / scale[b]


@kernel
def sample_actions(
    outputs: np.ndarray,
    uniforms: np.ndarray,
    moves: np.ndarray,
    observations: np.ndarray,
    agents: np.ndarray,
    actions: np.ndarray,
    log_probs: np.ndarray,
    env_actions: np.ndarray,
) -> None:
    """Draw a move and a jump for every row, and write the action in world axes.

    Args:
        outputs: (rows, n_moves + 2) float32, the outputs of a policy.
        uniforms: (rows, 2) float32, uniform draws.
        moves: (n_moves, 2) float32, ahead and aside.
        observations: (arenas, 2, size) float32.
        agents: (rows,) int64.
        actions: (rows, 2) int64 to fill: the move's number, and 1 for a jump.
        log_probs: (rows,) float32 to fill: the log-probability of what was drawn.
        env_actions: (arenas, 2, 3) float32 to fill.
    """
    for row in range(len(agents)):
        seen, action = observations[row, agents[row]], env_actions[row, agents[row]]
        x, z = seen[OBS.forward], seen[OBS.forward + 1]
        log_probs[row] = _sample_row(outputs[row], uniforms[row], moves, x, z, actions[row], action)


@inlined
def _sample_row(
    outputs: np.ndarray,
    uniforms: np.ndarray,
    moves: np.ndarray,
    x: np.float32,
    z: np.float32,
    actions: np.ndarray,
    action: np.ndarray,
) -> float:
    """Draw for one row that faces (x, z); the log-probability of what was drawn."""
    n_moves = len(moves)
    largest = outputs[0]
    for k in range(1, n_moves):
        largest = max(largest, outputs[k])
    total = 0.0
    for k in range(n_moves):
        total += math.exp(outputs[k] - largest)
    target, cumulative, move = uniforms[0] * total, 0.0, n_moves - 1
    for k in range(n_moves):
        cumulative += math.exp(outputs[k] - largest)
        if target < cumulative:
            move = k
            break
    jump_prob = 1.0 / (1.0 + math.exp(-outputs[n_moves]))
    jumps = uniforms[1] < jump_prob
    log_jump = math.log((jump_prob if jumps else 1.0 - jump_prob) + TINY_PROB)
    actions[0], actions[1] = move, jumps
    ahead, aside = moves[move, 0], moves[move, 1]
    action[0] = ahead * x - aside * z
    action[1] = ahead * z + aside * x
    action[2] = 1.0 if jumps else 0.0
    return float(outputs[move] - largest) - math.log(total) + log_jump


@kernel
def act(
    observations: np.ndarray,
    agents: np.ndarray,
    policy: PolicyArrays,
    uniforms: np.ndarray,
    features: np.ndarray,
    values: np.ndarray,
    actions: np.ndarray,
    log_probs: np.ndarray,
    env_actions: np.ndarray,
) -> None:
    """`extract_features`, the network and `sample_actions` in one call, for few rows.

    Args:
        values: (rows,) float32 to fill: the return that the policy expects.
        observations, agents, policy, uniforms, features, actions, log_probs, env_actions: as above.
    """
    hidden, n_moves = len(policy.first_bias), len(policy.moves)
    early = np.empty(hidden, dtype=np.float32)
    late = np.empty(hidden, dtype=np.float32)
    outputs = np.empty(n_moves + 2, dtype=np.float32)
    for row in range(len(agents)):
        seen, action = observations[row, agents[row]], env_actions[row, agents[row]]
        _extract_row(seen, policy.has_heading, policy.mean, policy.scale, features[row])
        _dense(features[row], policy.first, policy.first_bias, early)
        _relu(early)
        _dense(early, policy.second, policy.second_bias, late)
        _relu(late)
        _dense(late, policy.last, policy.last_bias, outputs)
        values[row] = outputs[n_moves + 1]
        x, z = np.float32(1.0), np.float32(0.0)
        if policy.has_heading:
            x, z = seen[OBS.forward], seen[OBS.forward + 1]
        own = uniforms[row], policy.moves, x, z, actions[row], action
        log_probs[row] = _sample_row(outputs, *own)


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
def _relu(values: np.ndarray) -> None:
    for k in range(len(values)):
        values[k] = max(values[k], np.float32(0.0))


@kernel
def add_moments(
    features: np.ndarray, mean: np.ndarray, scale: np.ndarray, sums: np.ndarray, squares: np.ndarray
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
def record_step(
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
def count_episodes(
    results: Results,
    seekers: np.ndarray,
    first: int,
    terms: np.ndarray,
    distance: np.ndarray,
    decisions: np.ndarray,
    ended: np.ndarray,
    sums: np.ndarray,
) -> int:
    """Add a decision to the running sums of some arenas; return how many episodes it ended.

    An ended episode is (6 + 2 × terms,) float64: 1, decisions, ticks, seeker's wins, tags,
    distance, then the reward terms of the seeker and of the hider.

    Args:
        results: of the decision.
        seekers: (arenas,) int64, who was "it" when it was taken.
        first: the arena that row 0 of the sums belongs to.
        terms: (rows, 2, terms) float64, rewards of the running episode by role.
        distance, decisions: (rows,) float64, of the running episode.
        ended: (rows, 6 + 2 × terms) float64 to fill: the episodes that ended.
        sums: (6 + 2 × terms,) float64 to add them to.
    """
    count, n_terms = 0, terms.shape[2]
    for row in range(len(distance)):
        a = first + row
        for role in range(2):
            agent = seekers[a] if role == 0 else 1 - seekers[a]
            for term in range(n_terms):
                terms[row, role, term] += results.terms[a, agent, term]
        distance[row] += results.distances[a]
        decisions[row] += 1.0
        if results.ends[a] != GOING_ON:
            winner, episode = results.winners[a], ended[count]
            episode[0] = 1.0
            episode[1] = decisions[row]
            episode[2] = results.ticks[a]
            episode[3] = 1.0 if winner == 0 else (0.5 if winner < 0 else 0.0)
            episode[4] = 1.0 if results.ends[a] == TAGGED else 0.0
            episode[5] = distance[row]
            for role in range(2):
                for term in range(n_terms):
                    episode[COUNTS + role * n_terms + term] = terms[row, role, term]
                    terms[row, role, term] = 0.0
            for k in range(len(sums)):
                sums[k] += episode[k]
            distance[row] = 0.0
            decisions[row] = 0.0
            count += 1
    return count
