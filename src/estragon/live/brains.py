"""Brains that only play: at random, or from a policy file. Numpy is all they need."""

from collections.abc import Mapping, Sequence

import numpy as np

from estragon.live.brain import Ask, Decision, Experience, Hello
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import ACTION_SIZE, AGENTS, ROLES, Role, Rules

JUMP_CHANCE = 0.125


class RandomBrain:
    """Runs anywhere and jumps now and then, whatever it sees; same seed, same actions."""

    learning = False

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def describe(self) -> str:
        """What it is."""
        return "random actions"

    def join(self, client: int, hello: Hello) -> None:
        """Anybody fits."""

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        """Actions for all arenas."""
        counts = [len(decision.seekers) for _, decision in asked]
        actions = self.draw(AGENTS * sum(counts)).reshape(-1, AGENTS, ACTION_SIZE)
        return _share_out(actions, counts)

    def act(self, asks: Sequence[Ask]) -> np.ndarray:
        """Actions for all agents."""
        return self.draw(len(asks))

    def learn(self, experiences: Sequence[Experience]) -> int:
        """Nothing is learned, and nothing is wrong with that."""
        return len(experiences)

    def leave(self, client: int) -> None:
        """Nothing was remembered."""

    def draw(self, agents: int) -> np.ndarray:
        """That many actions, (agents, 3) float32."""
        actions = self._random.random((agents, ACTION_SIZE), dtype=np.float32)
        actions[:, :2] = 2.0 * actions[:, :2] - 1.0
        actions[:, 2] = actions[:, 2] < JUMP_CHANCE
        return actions


class PolicyBrain:
    """Plays trained policies, without chance; a role that has none plays at random."""

    learning = False

    def __init__(
        self, policies: Mapping[Role, FrozenPolicy], rules: Rules, substitute: RandomBrain
    ) -> None:
        self._policies, self._substitute = policies, substitute
        self._is_seeker = rules.field("is_seeker").start

    def describe(self) -> str:
        """What it is."""
        shown = [
            f"{role} of {self._policies[role].name} ({self._policies[role].trained_steps:,} steps)"
            if role in self._policies
            else f"{role} at random"
            for role in ROLES
        ]
        return ", ".join(shown)

    def join(self, client: int, hello: Hello) -> None:
        """Anybody fits who sees what the policies were trained on."""

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        """Actions for all arenas, by who is "it"."""
        counts = [len(decision.seekers) for _, decision in asked]
        seekers = np.concatenate([decision.seekers for _, decision in asked])
        observations = np.concatenate([decision.observations for _, decision in asked])
        arenas = np.arange(len(seekers))
        actions = np.empty((len(seekers), AGENTS, ACTION_SIZE), dtype=np.float32)
        for role, agents in zip(ROLES, (seekers, 1 - seekers), strict=True):
            actions[arenas, agents] = self._play(role, observations[arenas, agents])
        return _share_out(actions, counts)

    def act(self, asks: Sequence[Ask]) -> np.ndarray:
        """Actions for all agents, by what their observations say they are."""
        observations = np.stack([ask.observation for ask in asks])
        seeking = observations[:, self._is_seeker] > 0.5
        actions = np.empty((len(asks), ACTION_SIZE), dtype=np.float32)
        for role, rows in zip(ROLES, (seeking, ~seeking), strict=True):
            if rows.any():
                actions[rows] = self._play(role, observations[rows])
        return actions

    def learn(self, experiences: Sequence[Experience]) -> int:
        """Nothing is learned, and nothing is wrong with that."""
        return len(experiences)

    def leave(self, client: int) -> None:
        """Nothing was remembered."""

    def _play(self, role: Role, observations: np.ndarray) -> np.ndarray:
        if role in self._policies:
            return self._policies[role].act(observations)
        return self._substitute.draw(len(observations))


def _share_out(actions: np.ndarray, counts: Sequence[int]) -> list[np.ndarray]:
    return np.split(actions, np.cumsum(counts)[:-1]) if len(counts) > 1 else [actions]
