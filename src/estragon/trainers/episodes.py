"""Episodes that ended: what they paid, how long they were, and what the game says of them."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

NOT_OF_THE_GAME = frozenset(
    {
        "TimeLimit.truncated",
        "action_mask",
        "agent_left",
        "episode",
        "final_obs_missing",
        "game_lost",
        "seed",
        "terminal_observation",
        "terminal_observation_missing",
    }
)
"""Keys of an info that we or a library put there."""


@dataclasses.dataclass
class Episodes:
    """Some episodes."""

    rewards: list[float] = dataclasses.field(default_factory=list)
    lengths: list[int] = dataclasses.field(default_factory=list)
    custom: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    """By key of `get_info`, the numbers at the ends of episodes."""

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """All of them."""
        everything = cls()
        for part in parts:
            everything.rewards += part.rewards
            everything.lengths += part.lengths
            for key, values in part.custom.items():
                everything.custom.setdefault(key, []).extend(values)
        return everything

    def __len__(self) -> int:
        """How many."""
        return len(self.rewards)

    def add(self, reward: float, length: int, info: Mapping[str, Any]) -> None:
        """One more, with the info of its last step."""
        self.rewards.append(reward)
        self.lengths.append(length)
        for key, value in info.items():
            if isinstance(value, bool | int | float) and key not in NOT_OF_THE_GAME:
                self.custom.setdefault(key, []).append(float(value))

    @property
    def reward_mean(self) -> float:
        """NaN where there are none."""
        return mean(self.rewards)

    @property
    def reward_min(self) -> float:
        """NaN where there are none."""
        return _of(min, self.rewards)

    @property
    def reward_max(self) -> float:
        """NaN where there are none."""
        return _of(max, self.rewards)

    @property
    def length_mean(self) -> float:
        """NaN where there are none."""
        return mean(self.lengths)

    def custom_means(self) -> dict[str, float]:
        """By key, the mean of what the game said at the ends."""
        return {key: mean(values) for key, values in self.custom.items()}


def mean(values: Sequence[float]) -> float:
    """NaN of nothing."""
    return sum(values) / len(values) if values else math.nan


def _of(pick: Callable[[Sequence[float]], float], values: Sequence[float]) -> float:
    return pick(values) if values else math.nan
