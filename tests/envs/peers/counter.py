"""The rules of a game in which everything is known in advance, for peers and for tests.

Agent `id` counts its steps: episodes last `3 + id % 3` of them, and end by termination for even
ids, by a time limit for odd ones. The reward is the count plus 100 times the id. It sees its id,
the count, the number of the episode, the episode's seed (modulo 1009), and an echo of its last
action: the sum of its numbers times 1, 2, 3, … in the order of the keys.
"""

import sys
from typing import Any

MASK = 0xFFFFFFFF
NUMBERS = 5
IMAGE = [36, 40, 3]
NEAR = 6
ACTIONS = {
    "box": {"move": ("continuous", 2)},
    "discrete": {"choose": ("discrete", 4)},
    "multi": {"steer": ("discrete", 3), "brake": ("discrete", 2)},
    "mixed": {"turn": ("discrete", 3), "move": ("continuous", 2), "jump": ("discrete", 2)},
}
ACTIONS["image"] = ACTIONS["masked"] = ACTIONS["discrete"]


def seed_of(seed: int, agent: int, episode: int) -> int:
    x = (seed * 0x9E3779B1 + agent * 0x85EBCA6B + episode * 0xC2B2AE35) & MASK
    x = ((x ^ x >> 16) * 0x7FEB352D) & MASK
    x = ((x ^ x >> 15) * 0x846CA68B) & MASK
    return x ^ x >> 16


class Agent:
    """One agent's episodes."""

    def __init__(self, number: int, seed: int) -> None:
        self.id, self.seed = number, seed
        self.episode = self.count = 0
        self.echo = 0.0
        self.length = 3 + number % 3

    def begin(self, seed: int | None) -> None:
        """A reset from outside."""
        if seed is None:
            self.episode += 1
        else:
            self.seed, self.episode = seed, 0
        self.count, self.echo = 0, 0.0

    def act(self, numbers: list[float]) -> tuple[float, int]:
        """Reward, and 0, 1 (terminated) or 2 (truncated)."""
        self.count += 1
        self.echo = float(sum((place + 1) * number for place, number in enumerate(numbers)))
        over = 0 if self.count < self.length else 1 + self.id % 2
        return self.count + 100.0 * self.id, over

    def next_episode(self) -> None:
        self.episode += 1
        self.count, self.echo = 0, 0.0

    @property
    def episode_seed(self) -> int:
        return seed_of(self.seed, self.id, self.episode)

    def sees(self) -> list[float]:
        return [self.id, self.count, self.episode, self.episode_seed % 1009, self.echo]

    def near(self) -> int:
        return self.count % NEAR

    def picture(self) -> bytes:
        """Height, width, channels: every byte says where it is, plus the count."""
        height, width, channels = IMAGE
        return bytes(
            (100 * row + 10 * column + channel + self.count) % 256
            for row in range(height)
            for column in range(width)
            for channel in range(channels)
        )

    def allowed(self) -> list[int]:
        """Of "choose" when it is masked: not the choice that is the count modulo 4."""
        return [int(choice != self.count % 4) for choice in range(4)]


def observation_space(kind: str) -> dict[str, Any]:
    space: dict[str, Any] = {"obs": {"size": [NUMBERS], "space": "box"}}
    if kind == "image":
        space["near"] = {"size": NEAR, "space": "discrete"}
        space["camera_2d"] = {"size": IMAGE, "space": "box"}
    return space


def action_space(kind: str) -> dict[str, object]:
    return {
        key: {"size": size, "action_type": action} for key, (action, size) in ACTIONS[kind].items()
    }


def options() -> dict[str, str]:
    """Of the command line: `--key=value`."""
    words = [word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--")]
    return {word[0]: word[1] for word in words if len(word) == 2}
