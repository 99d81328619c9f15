"""Earlier selves, and which of them to meet next."""

import numpy as np
import torch

from estragon.learn.policy import Policy

Weights = dict[str, torch.Tensor]


class League:
    """Pairs of earlier selves, evenly spread over the run so far."""

    def __init__(self, remembered: int) -> None:
        """Remember at most `remembered` pairs."""
        self.pairs: list[tuple[Weights, Weights]] = []
        self._remembered = remembered

    def remember(self, policies: list[Policy]) -> None:
        """Add the policies as they are now; when full, forget every second of the older ones."""
        seeker, hider = (
            {name: value.detach().cpu().clone() for name, value in policy.state_dict().items()}
            for policy in policies
        )
        self.pairs.append((seeker, hider))
        if len(self.pairs) > self._remembered:
            half = len(self.pairs) // 2
            self.pairs = self.pairs[:half:2] + self.pairs[half:]

    def draw(self, random: np.random.Generator) -> tuple[Weights, Weights]:
        """A seeker and a hider out of the past, each on its own."""
        seeker, hider = random.integers(len(self.pairs), size=2)
        return self.pairs[seeker][0], self.pairs[hider][1]
