"""Who plays in a game, looked up before anything is built: agents, policies, spaces."""

import dataclasses
from collections.abc import Callable
from typing import Any

from gymnasium import spaces

from estragon.envs.spaces import ActionSpec
from estragon.support.errors import UserError
from estragon.trainers.rllib.env import GameEnv
from estragon.trainers.rllib.sight import plain_space
from estragon.trainers.spaces import describe


@dataclasses.dataclass(frozen=True)
class Role:
    """What a policy sees and does."""

    sees: spaces.Dict
    """As the game has it."""
    does: spaces.Space[Any]
    actions: tuple[tuple[str, str, int], ...]
    """(key, continuous or discrete, size) in the game's order."""
    agents: int
    """How many it plays in a game."""

    @property
    def sees_plain(self) -> spaces.Box:
        """As the network has it."""
        return plain_space(self.sees)


def survey(env: GameEnv, policy_of: Callable[..., str]) -> dict[str, Role]:
    """By policy, what it is for."""
    found: dict[str, Role] = {}
    for agent in env.possible_agents:
        policy = policy_of(agent)
        actions = tuple(_action(action) for action in env.actions_of(agent))
        role = Role(env.game_space(agent), env.get_action_space(agent), actions, 1)
        before = found.get(policy)
        if before is not None:
            if (before.sees, before.does) != (role.sees, role.does):
                raise UserError(
                    f"policy {policy} cannot play {agent}: it sees {describe(role.sees)} and does "
                    f"{describe(role.does)}, others of that policy see {describe(before.sees)} and "
                    f"do {describe(before.does)}; map them to different policies"
                )
            role = dataclasses.replace(before, agents=before.agents + 1)
        found[policy] = role
    if not found:
        raise UserError("the game has no agents: is there an AIController in its scene?")
    return found


def _action(action: ActionSpec) -> tuple[str, str, int]:
    return action.key, action.kind, action.size
