"""Actions at random, of those that are allowed."""

import numpy as np

from estragon.envs.outcome import Outcome
from estragon.envs.roster import Roster
from estragon.envs.spaces import Spaces


def random_actions(roster: Roster, rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    """float32, agent by agent, key by key; `masks` is uint8, as the game tells them."""
    if roster.spaces is not None:
        return _rows(roster.spaces, len(roster), rng, masks).reshape(-1)
    rows = [
        _rows(agent.spaces, 1, rng, masks[first : first + agent.spaces.mask_bytes]).reshape(-1)
        for agent, first in zip(roster.agents, roster.mask_bytes, strict=False)
    ]
    return np.concatenate(rows) if rows else np.zeros(0, np.float32)


def masks_of_next(outcome: Outcome, roster: Roster) -> np.ndarray:
    """What those who play on may do; everything, where the game does not tell."""
    if outcome.masks is None:
        return np.ones(int(roster.mask_bytes[-1]), np.uint8)
    if len(outcome.roster) == len(roster):
        return outcome.masks
    stays = {agent.id for agent in roster.agents}
    places = zip(outcome.roster.agents, outcome.roster.mask_bytes, strict=False)
    parts = [
        outcome.masks[first : first + agent.spaces.mask_bytes]
        for agent, first in places
        if agent.id in stays
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint8)


def _rows(spaces: Spaces, count: int, rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    told = masks.reshape(count, -1)
    rows = np.zeros((count, spaces.action_width), np.float32)
    byte = 0
    for action, place in spaces.action_places:
        if action.kind == "continuous":
            rows[:, place : place + action.size] = rng.uniform(-1.0, 1.0, (count, action.size))
        elif action.masked:
            allowed = told[:, byte : byte + action.size] != 0
            byte += action.size
            rows[:, place] = np.where(allowed, rng.random(allowed.shape), -1.0).argmax(axis=1)
        else:
            rows[:, place] = rng.integers(action.size, size=count)
    return rows
