"""A policy as an opponent: it plays, drawing its moves by chance or not, and does not learn."""

import numpy as np
import torch

from estragon.selfplay.kernels import FEW_ROWS, choose, decide_few, prepare
from estragon.selfplay.policy import Policy


class PolicyRival:
    """Plays as a policy does while it learns (by chance), or as it is shown (its best move)."""

    name = "policy"

    def __init__(self, policy: Policy, random: np.random.Generator | None) -> None:
        """Play `policy`; without `random`, always its best move."""
        self._policy = policy
        self._random = random
        self._mean, self._scale = policy.mean.numpy(), policy.scale.numpy()
        self._moves = policy.moves.numpy()
        self._numbers = policy.numbers() if random is not None else None

    @torch.no_grad()
    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        rows, size = observations.shape
        seen = observations.reshape(rows, 1, size)
        agents = np.zeros(rows, dtype=np.int64)
        features = np.empty((rows, size), dtype=np.float32)
        picks = np.empty((rows, 2), dtype=np.int64)
        actions = np.empty((rows, 1, 3), dtype=np.float32)
        log_chances = np.empty(rows, dtype=np.float32)
        if self._random is None:
            chances = np.full((rows, 2), 0.5, dtype=np.float32)
        else:
            chances = self._random.random((rows, 2), dtype=np.float32)
        if self._numbers is not None and rows <= FEW_ROWS:
            own, values = self._numbers, np.empty(rows, dtype=np.float32)
            decide_few(seen, agents, own, chances, features, values, picks, log_chances, actions)
            return actions[:, 0]
        prepare(seen, agents, self._mean, self._scale, features)
        scores = self._policy.score(torch.from_numpy(features)).numpy()
        if self._random is None:
            scores = self._sharpen(scores)
        choose(scores, chances, self._moves, seen, agents, picks, log_chances, actions)
        return actions[:, 0]

    def _sharpen(self, scores: np.ndarray) -> np.ndarray:
        """Scores that leave nothing to chance."""
        choices = len(self._moves)
        sharp = np.full_like(scores, -1e4)
        sharp[np.arange(len(scores)), scores[:, :choices].argmax(axis=1)] = 0.0
        sharp[:, choices] = np.where(scores[:, choices] > 0.0, 100.0, -100.0)
        return sharp
