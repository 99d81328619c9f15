"""Arenas set up by hand, for tests that need agents in a certain place."""

from typing import Any

import msgspec
import numpy as np

from estragon.tag.arenas import Arenas
from estragon.tag.rules import Rules, load_rules

REST = {
    "velocity_x": 0.0,
    "velocity_y": 0.0,
    "velocity_z": 0.0,
    "forward_x": 0.0,
    "forward_z": 1.0,
    "seen_tick": -1,
    "immune_ticks": 0,
    "it_ticks": 0,
    "on_floor": 1,
}


def tick_rules(rules: str | None = None, rewards: str | None = None) -> Rules:
    """The game's rules with a decision every tick, so that every tick can be looked at."""
    return with_episode(load_rules(rules=rules, rewards=rewards), step_tick_interval=1)


def with_episode(rules: Rules, **changes: Any) -> Rules:
    """The rules with some numbers of the episode changed."""
    return msgspec.structs.replace(rules, episode=msgspec.structs.replace(rules.episode, **changes))


def staged(*places: tuple[float, float, float], rules: Rules, layout: str = "empty") -> Arenas:
    """One arena with the two agents at rest at these places."""
    arenas = Arenas(1, rules=rules, layout=layout, threads=1)
    arenas.reset()
    for agent, (x, y, z) in enumerate(places):
        place(arenas, agent, x=x, y=y, z=z, **REST)
    return arenas


def place(arenas: Arenas, agent: int, **fields: float) -> None:
    """Set some fields of an agent of the first arena."""
    for name, value in fields.items():
        arenas.agents[name][0, agent] = value


def field(arenas: Arenas, agent: int, name: str) -> float:
    """One field of an agent of the first arena."""
    return float(arenas.agents[name][0, agent])


def command(
    first: tuple[float, float, float] = (0, 0, 0), second: tuple[float, float, float] = (0, 0, 0)
) -> np.ndarray:
    """Actions for the two agents of one arena."""
    return np.array([[first, second]], dtype=np.float32)
