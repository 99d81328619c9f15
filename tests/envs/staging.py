"""What the counter game must answer, worked out beside it."""

from typing import Any

import numpy as np

from tests.envs.peers.counter import Agent


class Expected:
    """One agent of the counter game, with a game's seed."""

    def __init__(self, number: int, seed: int, *, old: bool = False) -> None:
        self.agent, self.old = Agent(number, seed), old
        if old:
            self.agent.begin(None)  # an old game counts the reset

    def sees(self) -> list[float]:
        return self.agent.sees()

    def step(self, numbers: list[float]) -> dict[str, Any]:
        """Reward, terminated, truncated, what is seen last if the episode is over, and next."""
        before = self.agent.sees()
        reward, over = self.agent.act(numbers)
        last = None
        if over:
            last = before if self.old else self.agent.sees()
            self.agent.next_episode()
        return {
            "reward": reward,
            "terminated": bool(over) if self.old else over == 1,
            "truncated": over == 2 and not self.old,
            "last": last,
            "next": self.agent.sees(),
            "seed": self.agent.episode_seed,
        }


def flat(action: Any, order: tuple[str, ...] = ()) -> list[float]:
    """The numbers of an action, in the order of the game's keys."""
    if isinstance(action, dict):
        return [float(number) for key in order for number in np.ravel(action[key])]
    return [float(number) for number in np.ravel(action)]
