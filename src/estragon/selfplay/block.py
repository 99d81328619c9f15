"""Some of the arenas, played by one thread from one update to the next."""

import numpy as np

from estragon.selfplay.config import PPOConfig
from estragon.selfplay.opponents import Sides
from estragon.selfplay.rollout import Players, Rollout
from estragon.tag.arenas import Arenas


class Block:
    """Arenas of the embedded engine that advance `horizon` decisions at a time."""

    def __init__(self, arenas: Arenas, sides: Sides, config: PPOConfig) -> None:
        """Play these arenas."""
        self.arenas = arenas
        self.rollout = Rollout(arenas.rules, sides, config)

    def play(self, players: Players) -> None:
        """Play `horizon` decisions in every arena."""
        arenas, rollout = self.arenas, self.rollout
        rollout.begin()
        while not rollout.full:
            actions = rollout.decide(arenas.observations, self._seekers, players)
            results = arenas.step(actions)
            rollout.record(results, self._seekers)
        rollout.close(arenas.observations, self._seekers, players.policies)

    @property
    def _seekers(self) -> np.ndarray:
        seekers: np.ndarray = self.arenas.arenas["seeker"]
        return seekers
