"""Elo ratings fitted to cross-play: one number that says how often whom beats whom."""

import numpy as np

POINTS_PER_NAT = 400.0 / np.log(10.0)
ANCHOR = 1000.0
"""The mean rating of the anchor players."""
PRIOR_GAMES = 2.0
"""Imagined draws against an average opponent, so that a clean sweep has a finite rating."""
ROUNDS = 60


def fit_elo(
    wins: np.ndarray, games: np.ndarray, anchors: tuple[list[int], list[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Ratings of seekers and hiders from who beat whom.

    The chance that seeker i beats hider j is 1 / (1 + 10^((h_j - s_i) / 400)); the ratings are the
    most likely ones, with a weak pull to the middle (Newton's method on the log-likelihood).

    Args:
        wins: (seekers, hiders) matches that the seeker won; a draw counts half.
        games: (seekers, hiders) matches played; 0 where a pair never met.
        anchors: numbers of the seekers and hiders whose mean rating is ANCHOR.
    """
    seekers, hiders = wins.shape
    ratings = np.zeros(seekers + hiders)
    for _ in range(ROUNDS):
        gap = ratings[:seekers, None] - ratings[None, seekers:]
        chance = 1.0 / (1.0 + np.exp(-gap))
        surprise = wins - games * chance
        weight = games * chance * (1.0 - chance)
        own = 1.0 / (1.0 + np.exp(-ratings))
        slope = np.concatenate([surprise.sum(axis=1), -surprise.sum(axis=0)])
        slope += PRIOR_GAMES * (0.5 - own)
        curve = np.diag(np.concatenate([weight.sum(axis=1), weight.sum(axis=0)]))
        curve += np.diag(PRIOR_GAMES * own * (1.0 - own))
        curve[:seekers, seekers:] = -weight
        curve[seekers:, :seekers] = -weight.T
        step = np.linalg.solve(curve, slope)
        ratings += np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    points = ratings * POINTS_PER_NAT
    fixed = np.concatenate([points[anchors[0]], points[seekers:][anchors[1]]])
    points += ANCHOR - fixed.mean()
    return points[:seekers], points[seekers:]
