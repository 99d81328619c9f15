"""One game as an RLlib `MultiAgentEnv`, for its new API stack."""

from collections.abc import Mapping
from typing import Any

from gymnasium import Space
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from estragon.envs.party import Party, Results

EVERYBODY = "__all__"
SEEDS_APART = 1000


class GodotMultiAgentEnv(MultiAgentEnv):
    """Give its options as `env_config`: `env_path`, `key`, and those of `Launch`.

    Agents are named for their policy and number, such as shared_policy:3; `policy_of` maps them.
    Episodes, agents who come and go, older games and lost games are as in `GodotParallelEnv`. Every
    env runner starts a game of its own, with a seed of its own.
    """

    goes_on = False
    """Whether an agent whose episode ended begins the next one at once."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Start the game, or wait for the editor."""
        options = dict(config or {})
        runner = getattr(config, "worker_index", 0) or 0
        copy = getattr(config, "vector_index", 0) or 0
        options["seed"] = options.get("seed", 0) + SEEDS_APART * runner + copy
        self.possible_agents: list[str] = []
        self._party = Party(
            options.pop("env_path", None), options.pop("key", None), options, goes_on=self.goes_on
        )
        self._learn_names()
        self.agents = list(self._party.known)
        super().__init__()

    @property
    def encoding(self) -> str:
        """How Python and the game talk: binary1, or json with an older addon."""
        return self._party.games.encoding

    @property
    def restarts(self) -> int:
        """How many times the game was lost and started again."""
        return self._party.games.restarts

    def get_observation_space(self, agent_id: str) -> Space[Any]:
        """What an agent sees."""
        return self._party.faces[agent_id][0].space

    def get_action_space(self, agent_id: str) -> Space[Any]:
        """What an agent does."""
        return self._party.faces[agent_id][1].space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin an episode: with a seed, its first one; without, the next."""
        super().reset(seed=seed, options=options)
        found = self._party.reset(seed)
        self._learn_names()
        self.agents = list(self._party.names)
        return found

    def step(self, action_dict: dict[str, Any]) -> Results:
        """One action of every agent in `agents`."""
        seen, rewards, terminated, truncated, infos = self._party.step(action_dict)
        self._learn_names()
        self.agents = list(self._party.names)
        over = not self.agents
        all_cut = over and not any(terminated.values())
        terminated[EVERYBODY], truncated[EVERYBODY] = over and not all_cut, all_cut
        return seen, rewards, terminated, truncated, infos

    def call(self, method: str) -> list[Any]:
        """Call a method of every agent in the game; what each returned."""
        return self._party.games.call(method)

    def close(self) -> None:
        """End the game."""
        self._party.games.close()

    def _learn_names(self) -> None:
        known = self._party.known
        if len(known) != len(self.possible_agents):
            faces = self._party.faces
            self.possible_agents = list(known)
            self.observation_spaces = {name: faces[name][0].space for name in known}
            self.action_spaces = {name: faces[name][1].space for name in known}
