"""Many arenas as one Gymnasium `VectorEnv`: you play one role, a bot or a policy the other."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas
from estragon.tag.faces import action_space, batch_info, begin, observation_space
from estragon.tag.match import GOING_ON
from estragon.tag.players import Player, load_player
from estragon.tag.roles import ROLES, Role
from estragon.tag.rules import load_rules

OPPONENTS = {"seeker": "bot:evader", "hider": "bot:chaser"}


class TagVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` arenas that restart by themselves in the step that ends an episode.

    Every end is a termination: running out of time is a rule of the game, and the time left is part
    of the observation. `info["final_obs"]` holds the last sight of the episodes that `_final_obs`
    marks.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        role: Role = "seeker",
        opponent: str | Player | None = None,
        layout: str | None = None,
        rules: str | None = None,
        rewards: str | None = None,
        threads: int | None = None,
    ) -> None:
        """Prepare the arenas.

        Args:
            num_envs: arenas side by side.
            role: the role you begin each episode with.
            opponent: bot:NAME, a policy file, or anything with `act`; by default the bot for the
                other role.
            layout: boxes, as `estragon.tag.layout.load_layouts` reads them.
            rules: seek or transfer.
            rewards: the reward profile.
            threads: threads to play on; None for all cores.
        """
        if role not in ROLES:
            raise UserError(f"role: expected seeker or hider, got '{role}'")
        loaded = load_rules(rules=rules, rewards=rewards)
        self.role = role
        self.num_envs = num_envs
        self.arenas = Arenas(num_envs, rules=loaded, layout=layout, threads=threads)
        other: Role = "hider" if role == "seeker" else "seeker"
        chosen = opponent if opponent is not None else OPPONENTS[role]
        self.opponent = load_player(chosen, loaded, other) if isinstance(chosen, str) else chosen
        self.me = ROLES.index(role)
        self.single_observation_space = observation_space(loaded, self.arenas.layouts)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._actions = np.zeros((num_envs, 2, 3), dtype=np.float32)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin anew: with a seed, from its first episode; without, with the next ones."""
        first = seed[0] if isinstance(seed, list) else seed
        super().reset(seed=first)
        begin(self.arenas, first, self.np_random)
        return self._observations(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One decision in every arena; episodes that end begin again at once."""
        results = self.arenas.step(self.with_opponent(actions))
        ended = results.ends != GOING_ON
        info: dict[str, Any] = batch_info(results, self.me)
        if ended.any():
            info["final_obs"] = results.final_observations[:, self.me].copy()
            info["_final_obs"] = ended
        rewards = results.rewards[:, self.me].astype(np.float64)
        return self._observations(), rewards, ended, np.zeros_like(ended), info

    def with_opponent(self, actions: np.ndarray) -> np.ndarray:
        """Your actions (num_envs, 3) and the opponent's, for both agents of every arena."""
        seen = self.arenas.observations[:, 1 - self.me]
        self._actions[:, self.me] = actions
        self._actions[:, 1 - self.me] = self.opponent.act(np.ascontiguousarray(seen))
        return self._actions

    def close_extras(self, **_: Any) -> None:
        """Nothing to close: arenas are arrays."""

    def _observations(self) -> np.ndarray:
        return self.arenas.observations[:, self.me].copy()
