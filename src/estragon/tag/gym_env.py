"""One arena as a Gymnasium environment: you play one role, a bot or a policy the other."""

from typing import Any

import gymnasium
import numpy as np

from estragon.tag.faces import agent_info, begin
from estragon.tag.match import GOING_ON
from estragon.tag.players import Player
from estragon.tag.roles import Role
from estragon.tag.vector_env import TagVectorEnv


class TagEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A single match at a time; for speed, take `TagVectorEnv`."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        role: Role = "seeker",
        opponent: str | Player | None = None,
        layout: str | None = None,
        rules: str | None = None,
        rewards: str | None = None,
    ) -> None:
        """Prepare the arena; arguments as for `TagVectorEnv`."""
        self._many = TagVectorEnv(1, role, opponent, layout, rules, rewards, threads=1)
        self.observation_space = self._many.single_observation_space
        self.action_space = self._many.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode: with a seed, its first one; without, the next."""
        super().reset(seed=seed, options=options)
        begin(self._many.arenas, seed, self.np_random)
        return self._many.arenas.observations[0, self._many.me].copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One decision."""
        arenas, me = self._many.arenas, self._many.me
        was_seeker = bool(arenas.is_seeker[0, me])
        results = arenas.step(self._many.with_opponent(action[None]), restart=False)
        ended = bool(results.ends[0] != GOING_ON)
        info = agent_info(results, 0, me, was_seeker)
        reward = float(results.rewards[0, me])
        return results.observations[0, me].copy(), reward, ended, False, info
