"""Earlier selves, and which of them to meet next."""

import numpy as np
import torch

from estragon.selfplay.policy import Policy

Weights = dict[str, torch.Tensor]


class League:
    """Pairs of earlier selves, evenly spread over the run so far."""

    def __init__(self, remembered: int) -> None:
        """Remember at most `remembered` pairs."""
        self.pairs: list[tuple[Weights, Weights]] = []
        self._remembered = remembered
        self.seen = 0
        """Selves so far, remembered or not."""

    def remember(self, policies: list[Policy]) -> None:
        """Add the policies as they are now; when full, forget every second of the older ones."""
        number, self.seen = self.seen, self.seen + 1
        if self._stride(number) > self._stride(number - 1):
            self.pairs = self.pairs[::2]
        if number % self._stride(number):
            return
        seeker, hider = (
            {name: value.detach().cpu().clone() for name, value in policy.state_dict().items()}
            for policy in policies
        )
        self.pairs.append((seeker, hider))

    def _stride(self, number: int) -> int:
        """Every how many-th self is remembered when there are so many before it."""
        return 1 << max(0, number // self._remembered).bit_length()

    def draw(self, random: np.random.Generator) -> tuple[Weights, Weights]:
        """A seeker and a hider out of the past, each on its own."""
        seeker, hider = random.integers(len(self.pairs), size=2)
        return self.pairs[seeker][0], self.pairs[hider][1]
