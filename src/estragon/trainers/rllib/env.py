"""A game for an env runner: observations as one array, agents whose episodes follow each other."""

from collections.abc import Mapping
from typing import Any

from gymnasium import spaces
from ray.rllib.env.env_context import EnvContext

from estragon.envs.pettingzoo_env import MultiAgentStep
from estragon.envs.rllib_env import GodotMultiAgentEnv
from estragon.envs.spaces import ActionSpec
from estragon.trainers.rllib.sight import plain, plain_space

_waiting: "list[GameEnv]" = []


class GameEnv(GodotMultiAgentEnv):
    """Nobody waits for others: `begun` tells whose next episode began in the last step."""

    autoreset = True

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Start the game, or wait for the editor."""
        self._plain_spaces: dict[str, spaces.Box] = {}
        self._game_spaces: dict[str, spaces.Dict] = {}
        self._only: str | None = (config or {}).get("key")
        super().__init__(config)

    @property
    def begun(self) -> dict[str, Any]:
        """By agent, what it sees first."""
        return self._plain(self._env.reset_obs)

    def game_space(self, agent_id: str) -> spaces.Dict:
        """What an agent sees, as the game has it, by key."""
        if agent_id not in self._game_spaces:
            found: Any = self._env.observation_space(agent_id)
            if self._only is not None:
                found = spaces.Dict([(self._only, found)])
            self._game_spaces[agent_id] = found
        return self._game_spaces[agent_id]

    def get_observation_space(self, agent_id: str) -> spaces.Box:
        """What an agent sees, as a network has it."""
        if agent_id not in self._plain_spaces:
            self._plain_spaces[agent_id] = plain_space(self.game_space(agent_id))
        return self._plain_spaces[agent_id]

    def actions_of(self, agent_id: str) -> tuple[ActionSpec, ...]:
        """An agent's actions, in the game's order."""
        return self._env.codecs[agent_id].action.actions

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin everybody's episodes."""
        seen, infos = super().reset(seed=seed, options=options)
        return self._plain(seen), infos

    def step(self, action_dict: dict[str, Any]) -> MultiAgentStep:
        """One action of every agent."""
        seen, rewards, terminated, truncated, infos = super().step(action_dict)
        return self._plain(seen), rewards, terminated, truncated, infos

    def _plain(self, seen: dict[str, Any]) -> dict[str, Any]:
        if self._only is not None:
            seen = {agent: {self._only: each} for agent, each in seen.items()}
        return {agent: plain(self.game_space(agent), each) for agent, each in seen.items()}

    def _update_agents(self) -> None:
        super()._update_agents()
        if len(self.observation_spaces or {}) != len(self._plain_spaces):
            self.observation_spaces = {
                agent: self.get_observation_space(agent) for agent in self.possible_agents
            }


def make_env(config: EnvContext) -> GameEnv:
    """A game for an env runner: the one that waits for it, or a new one."""
    if _waiting:
        return _waiting.pop()
    if "log_folder" in config:
        folder = f"{config['log_folder']}/runner_{config.worker_index}"
        config = config.copy_with_overrides(env_config={**config, "log_folder": folder})
    return GameEnv(config)


def keep_waiting(env: GameEnv) -> None:
    """The next env runner of this process takes this game."""
    _waiting.append(env)


def let_go() -> None:
    """Close games that nobody took."""
    while _waiting:
        _waiting.pop().close()
