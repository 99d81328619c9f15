"""A trained policy that only plays, with numpy alone.

The network sees the world in the agent's heading frame and chooses one of a few directions in it;
both turns are part of the policy, so that everything outside speaks world axes.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from estragon.tag.rules import ACTION_SIZE, Role, Rules

CLIP = 10.0
"""Normalised observations are cut off here."""
TURNED_FIELDS = ("position", "velocity", "last_seen_relative")
DIRECTIONS_DEG = (0, 5, -5, 12, -12, 25, -25, 45, -45, 75, -75, 110, -110, 150, -150, 180)
"""Where a policy may run, from straight ahead; standing still comes after them."""
SHY_OF_JUMPING = -2.0
"""A policy begins with a jump in about one of eight decisions: in the air nothing can be learned
about running."""


def moves_in_heading_frame() -> np.ndarray:
    """What each choice means: (choices, 2) float32, ahead and aside."""
    angles = np.radians(DIRECTIONS_DEG)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.concatenate([directions, np.zeros((1, 2))]).astype(np.float32)


class FrozenPolicy:
    """A multi-layer perceptron over normalised, heading-frame observations.

    Its last layer gives a score for each move, one for jumping (above 0 it jumps), and an estimate
    of the return, which playing does not need.
    """

    def __init__(
        self,
        role: Role,
        rules: Rules,
        *,
        mean: np.ndarray,
        scale: np.ndarray,
        moves: np.ndarray,
        weights: list[tuple[np.ndarray, np.ndarray]],
        name: str,
        trained_steps: int = 0,
    ) -> None:
        """Make a policy from its parts; `policy_files.load_policy` and `untrained` are usual.

        Args:
            role: what it was trained to play.
            rules: the game whose observations it reads.
            mean: (observation size,) float32, of turned observations.
            scale: (observation size,) float32, above 0.
            moves: (choices, 2) float32, ahead and aside.
            weights: weight (in, out) and bias (out,) of each layer, float32.
            name: for messages.
            trained_steps: agent-steps it has learned from.
        """
        self.role: Role = role
        self.name = name
        self.trained_steps = trained_steps
        self.mean, self.scale, self.moves, self.weights = mean, scale, moves, weights
        self._has_heading = rules.has_heading
        if self._has_heading:
            self._forward = rules.field("forward").start
            self._turned = [rules.field(field).start for field in TURNED_FIELDS]

    @classmethod
    def untrained(
        cls, rules: Rules, role: Role, seed: int, hidden: int | Sequence[int] = 64
    ) -> "FrozenPolicy":
        """A policy as learning finds it: random weights, no preference among moves.

        `hidden` is the size of both hidden layers, or of each of any number of them.
        """
        random = np.random.default_rng(seed)
        size = rules.observation.size
        moves = moves_in_heading_frame()
        layers = [hidden, hidden] if isinstance(hidden, int) else hidden
        weights = [
            (_orthogonal(random, rows, columns), np.zeros(columns, dtype=np.float32))
            for rows, columns in pairwise([size, *layers, len(moves) + 2])
        ]
        weights[-1][0][:, :-1] *= 0.01
        weights[-1][1][len(moves)] = SHY_OF_JUMPING
        return cls(
            role,
            rules,
            mean=np.zeros(size, dtype=np.float32),
            scale=np.ones(size, dtype=np.float32),
            moves=moves,
            weights=weights,
            name=f"untrained {role}",
        )

    def act(self, observations: np.ndarray) -> np.ndarray:
        """The policy's own choice, without chance: (rows, 3) float32 for (rows, size) float32."""
        scores = self.scores(observations)
        choices = len(self.moves)
        ahead, aside = self.moves[scores[:, :choices].argmax(axis=1)].T
        forward_x, forward_z = self._heading(observations)
        actions = np.empty((len(observations), ACTION_SIZE), dtype=np.float32)
        actions[:, 0] = ahead * forward_x - aside * forward_z
        actions[:, 1] = ahead * forward_z + aside * forward_x
        actions[:, 2] = scores[:, choices] > 0.0
        return np.clip(actions, -1.0, 1.0, out=actions)

    def scores(self, observations: np.ndarray) -> np.ndarray:
        """What the last layer says: (rows, choices + 2) float32."""
        normal = (self._turn(observations) - self.mean) / self.scale
        values: np.ndarray = np.clip(normal, -CLIP, CLIP)
        for layer, (weight, bias) in enumerate(self.weights):
            values = values @ weight + bias
            if layer < len(self.weights) - 1:
                values = np.maximum(values, 0.0)
        return values

    def _heading(self, observations: np.ndarray) -> tuple[np.ndarray | float, np.ndarray | float]:
        """Which way the agents face; along the x axis if the observation does not say."""
        if not self._has_heading:
            return 1.0, 0.0
        return observations[:, self._forward], observations[:, self._forward + 1]

    def _turn(self, observations: np.ndarray) -> np.ndarray:
        if not self._has_heading:
            return observations
        forward_x, forward_z = self._heading(observations)
        turned = observations.copy()
        for start in self._turned:
            x, z = observations[:, start], observations[:, start + 2]
            turned[:, start] = x * forward_x + z * forward_z
            turned[:, start + 2] = z * forward_x - x * forward_z
        return turned


def _orthogonal(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A weight matrix that neither shrinks nor stretches what passes through, times √2."""
    tall = random.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(tall)
    q *= np.sign(np.diag(r))
    matrix = q if rows >= columns else q.T
    return np.ascontiguousarray(np.sqrt(2.0) * matrix, dtype=np.float32)
