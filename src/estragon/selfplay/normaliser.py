"""The running mean and spread of what a role has seen so far."""

from collections.abc import Iterable

import numpy as np

from estragon.selfplay.rollout import Moments

SMALLEST_VARIANCE = 1e-2
"""Features that hardly ever change are not blown up."""

TAKEN_UP = 1e6
"""How many observations count as seen by a policy that was trained before."""


class Normaliser:
    """Mean and variance over everything seen, merged batch by batch in float64."""

    def __init__(self, size: int) -> None:
        """Begin with mean 0 and variance 1, as if seen once."""
        self.count = 1.0
        self.sums = np.zeros(size)
        self.squares = np.ones(size)

    def take_up(self, mean: np.ndarray, scale: np.ndarray) -> None:
        """Go on as if much had been seen that gave this mean and scale."""
        self.count = TAKEN_UP
        self.sums = mean.astype(np.float64) * TAKEN_UP
        variance = np.maximum(scale.astype(np.float64) ** 2 - SMALLEST_VARIANCE, 0.0)
        self.squares = (variance + mean.astype(np.float64) ** 2) * TAKEN_UP

    def add(self, batches: Iterable[Moments]) -> None:
        """Count what was seen in these batches."""
        for batch in batches:
            self.count += batch.rows
            self.sums += batch.sums
            self.squares += batch.squares

    @property
    def mean(self) -> np.ndarray:
        """(size,) float32."""
        mean: np.ndarray = (self.sums / self.count).astype(np.float32)
        return mean

    @property
    def scale(self) -> np.ndarray:
        """(size,) float32, above 0."""
        variance = self.squares / self.count - (self.sums / self.count) ** 2
        scale: np.ndarray = np.sqrt(np.maximum(variance, 0.0) + SMALLEST_VARIANCE)
        return scale.astype(np.float32)
