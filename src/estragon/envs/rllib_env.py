"""RLlib: one game as a `MultiAgentEnv` of the new API stack."""

from collections.abc import Mapping
from typing import Any

from gymnasium import Space
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from estragon.envs.pettingzoo_env import GodotParallelEnv, MultiAgentStep
from estragon.envs.pool import PoolProperties

ALL = "__all__"
SEED_STRIDE = 1000
"""Between the games of two env runners."""


class GodotMultiAgentEnv(PoolProperties, MultiAgentEnv):
    """Give its options as `env_config`: `env_path`, `key`, and those of `Launch`.

    Agents are named after their policy and id, such as shared_policy:3; `policy_of` maps them.
    Episodes, agents that join and leave, older games and lost games are as in `GodotParallelEnv`.
    Every env runner starts its own game, with its own seed.
    """

    autoreset = False
    """Whether an agent whose episode ended starts the next one at once."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Start the game, or wait for the editor."""
        options = dict(config or {})
        runner = getattr(config, "worker_index", 0) or 0
        copy = getattr(config, "vector_index", 0) or 0
        options["seed"] = options.get("seed", 0) + SEED_STRIDE * runner + copy
        self._env = GodotParallelEnv(autoreset=self.autoreset, **options)
        self._pool = self._env._pool  # noqa: SLF001 - the same environment under another API
        self.possible_agents: list[str] = []
        self._update_agents()
        self.agents = list(self.possible_agents)
        super().__init__()

    def get_observation_space(self, agent_id: str) -> Space[Any]:
        """The observation space of an agent."""
        return self._env.observation_space(agent_id)

    def get_action_space(self, agent_id: str) -> Space[Any]:
        """The action space of an agent."""
        return self._env.action_space(agent_id)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start an episode: with a seed, its first one; without, the next."""
        super().reset(seed=seed, options=options)
        found = self._env.reset(seed)
        self._update_agents()
        return found

    def step(self, action_dict: dict[str, Any]) -> MultiAgentStep:
        """One action of every agent in `agents`."""
        obs, rewards, terminated, truncated, infos = self._env.step(action_dict)
        self._update_agents()
        ended = not self.agents
        all_truncated = ended and not any(terminated.values())
        terminated[ALL], truncated[ALL] = ended and not all_truncated, all_truncated
        return obs, rewards, terminated, truncated, infos

    def call(self, method: str) -> list[Any]:
        """Call a method of every agent in the game; returns what each returned."""
        return self._env.call(method)

    def close(self) -> None:
        """Stop the game."""
        self._env.close()

    def _update_agents(self) -> None:
        self.agents = list(self._env.agents)
        known = self._env.possible_agents
        if len(known) != len(self.possible_agents):
            self.possible_agents = list(known)
            self.observation_spaces = {name: self._env.observation_space(name) for name in known}
            self.action_spaces = {name: self._env.action_space(name) for name in known}
