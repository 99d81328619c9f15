"""Who plays in a game, and where each agent's part is in the flat arrays of a message."""

import functools
from typing import NamedTuple

import numpy as np

from estragon.envs.spaces import Spaces

MOST_AGENTS = 65_536


class Agent(NamedTuple):
    """One agent of a game."""

    id: int
    policy: str
    spaces: Spaces


class Roster:
    """Agents in the order of a message's rows; never changes."""

    def __init__(self, agents: tuple[Agent, ...]) -> None:
        self.agents = agents

    def __len__(self) -> int:
        """How many agents."""
        return len(self.agents)

    @functools.cached_property
    def spaces(self) -> Spaces | None:
        """What all agents see and do, if that is the same for all."""
        found = {agent.spaces for agent in self.agents}
        return found.pop() if len(found) == 1 else None

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """(agents + 1,) where each agent's numbers begin; the last is how many there are."""
        return _places([agent.spaces.numbers for agent in self.agents])

    @functools.cached_property
    def image_bytes(self) -> np.ndarray:
        """(agents + 1,) the same for images."""
        return _places([agent.spaces.image_bytes for agent in self.agents])

    @functools.cached_property
    def actions(self) -> np.ndarray:
        """(agents + 1,) the same for actions."""
        return _places([agent.spaces.action_width for agent in self.agents])

    @functools.cached_property
    def mask_bytes(self) -> np.ndarray:
        """(agents + 1,) the same for masks."""
        return _places([agent.spaces.mask_bytes for agent in self.agents])

    def only(self, rows: np.ndarray) -> "Roster":
        """The agents in these rows."""
        return Roster(tuple(self.agents[row] for row in rows))

    def joined_by(self, agents: tuple[Agent, ...]) -> "Roster":
        """With these behind."""
        return Roster(self.agents + agents) if agents else self


def _places(sizes: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
