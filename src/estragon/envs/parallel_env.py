"""One game as a PettingZoo `ParallelEnv`: agents of any kinds, who come and go."""

import os
from typing import Any

from gymnasium import Space
from pettingzoo import ParallelEnv

from estragon.envs.party import Party, Results


class GodotParallelEnv(ParallelEnv[str, Any, Any]):
    """Agents are named for their policy and number, such as shared_policy:3.

    An episode lasts from `reset` until no agent is left. An agent whose own episode ends is out, as
    PettingZoo has it: the game begins its next one, in which it does nothing (all zeros) until
    `reset`. Agents may leave (truncated, `agent_left` in their info) and join: they are then in
    `agents` and in what `step` returns, and from then on in `possible_agents`. When the game is
    lost, all are truncated with `game_lost`, and the next `reset` finds it started again.

    Games with an older addon never tell what was seen last, nor a time limit from an end: every end
    is then a termination, with what was seen one step before and `final_obs_missing` in the info.
    """

    metadata: dict[str, Any] = {"name": "estragon_godot_v0", "render_modes": []}
    render_mode = None

    def __init__(
        self,
        env_path: str | os.PathLike[str] | None = None,
        *,
        key: str | None = None,
        **options: Any,
    ) -> None:
        """Start the game, or wait for the editor.

        Args:
            env_path: what to play, see `Launch`.
            key: the one observation to give, instead of a dict of all.
            options: of `Launch`, but one game only.
        """
        self._party = Party(env_path, key, options)
        self.possible_agents = self._party.known
        self.agents: list[str] = []

    @property
    def encoding(self) -> str:
        """How Python and the game talk: binary1, or json with an older addon."""
        return self._party.games.encoding

    @property
    def restarts(self) -> int:
        """How many times the game was lost and started again."""
        return self._party.games.restarts

    def observation_space(self, agent: str) -> Space[Any]:
        """What an agent sees."""
        return self._party.faces[agent][0].space

    def action_space(self, agent: str) -> Space[Any]:
        """What an agent does."""
        return self._party.faces[agent][1].space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin an episode: with a seed, its first one; without, the next."""
        seen, infos = self._party.reset(seed)
        self.agents = list(self._party.names)
        return seen, infos

    def step(self, actions: dict[str, Any]) -> Results:
        """One action of every agent in `agents`."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        results = self._party.step(actions)
        self.agents = list(self._party.names)
        return results

    def call(self, method: str) -> list[Any]:
        """Call a method of every agent in the game; what each returned."""
        return self._party.games.call(method)

    def close(self) -> None:
        """End the game."""
        self._party.games.close()
