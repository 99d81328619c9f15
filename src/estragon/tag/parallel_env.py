"""Both roles at once, as a PettingZoo `ParallelEnv`."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from pettingzoo import ParallelEnv

from estragon.tag.arenas import Arenas
from estragon.tag.gym_env import action_space, agent_info, begin, observation_space
from estragon.tag.rules import GOING_ON, load_rules

NAMES = ("Agent1", "Agent2")


class TagParallelEnv(ParallelEnv[str, np.ndarray, np.ndarray]):
    """One arena; Agent1 begins as seeker, Agent2 as hider."""

    metadata: dict[str, Any] = {"name": "estragon_tag_v0", "render_modes": []}
    render_mode = None

    def __init__(
        self, layout: str | None = None, rules: str | None = None, rewards: str | None = None
    ) -> None:
        """Prepare the arena; arguments as for `TagVectorEnv`."""
        loaded = load_rules(rules=rules, rewards=rewards)
        self.arenas = Arenas(1, rules=loaded, layout=layout, threads=1)
        self.possible_agents = list(NAMES)
        self.agents: list[str] = []
        self.observation_spaces = {
            name: observation_space(loaded, self.arenas.layouts) for name in NAMES
        }
        self.action_spaces = {name: action_space() for name in NAMES}

    def observation_space(self, agent: str) -> Box:
        """What an agent sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        """What an agent does."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Begin an episode: with a seed, its first one; without, the next."""
        begin(self.arenas, seed, np.random.default_rng())
        self.agents = list(NAMES)
        return self._observations(), {name: {} for name in NAMES}

    def step(
        self, actions: dict[str, np.ndarray]
    ) -> tuple[
        dict[str, np.ndarray],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """One decision of both agents."""
        acted_as_seeker = self.arenas.is_seeker[0]
        wanted = np.array([[actions[name] for name in NAMES]], dtype=np.float32)
        results = self.arenas.step(wanted, restart=False)
        ended = bool(results.ends[0] != GOING_ON)
        rewards = {name: float(results.rewards[0, i]) for i, name in enumerate(NAMES)}
        infos = {
            name: agent_info(results, i, bool(acted_as_seeker[i])) for i, name in enumerate(NAMES)
        }
        if ended:
            self.agents = []
        over, cut = dict.fromkeys(NAMES, ended), dict.fromkeys(NAMES, False)
        return self._observations(), rewards, over, cut, infos

    def _observations(self) -> dict[str, np.ndarray]:
        return {name: self.arenas.observations[0, i].copy() for i, name in enumerate(NAMES)}
