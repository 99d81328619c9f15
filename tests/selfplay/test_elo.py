"""Ratings that say how often whom beats whom, whatever the results."""

import numpy as np
import pytest

from estragon.selfplay.elo import ANCHOR, fit_elo

SEEKERS = np.array([600.0, 900.0, 1000.0, 1250.0])
HIDERS = np.array([700.0, 1100.0, 1150.0])
EVERYBODY = ([0, 1, 2, 3], [0, 1, 2])


def chances(seekers: np.ndarray, hiders: np.ndarray) -> np.ndarray:
    """How often each seeker beats each hider."""
    rates: np.ndarray = 1.0 / (1.0 + 10.0 ** ((hiders[None, :] - seekers[:, None]) / 400.0))
    return rates


def test_known_ratings_are_recovered_from_expected_results() -> None:
    games = np.full((4, 3), 1e6)
    seekers, hiders = fit_elo(games * chances(SEEKERS, HIDERS), games, EVERYBODY)
    middle = np.concatenate([SEEKERS, HIDERS]).mean() - 1000.0
    np.testing.assert_allclose(seekers, SEEKERS - middle, atol=0.1)
    np.testing.assert_allclose(hiders, HIDERS - middle, atol=0.1)


def test_they_are_recovered_also_where_some_never_met() -> None:
    games = np.array([[1e6, 0.0, 0.0], [1e6, 0.0, 1e6], [0.0, 1e6, 1e6], [0.0, 0.0, 1e6]])
    seekers, hiders = fit_elo(games * chances(SEEKERS, HIDERS), games, EVERYBODY)
    middle = np.concatenate([SEEKERS, HIDERS]).mean() - 1000.0
    np.testing.assert_allclose(seekers, SEEKERS - middle, atol=1.0)
    np.testing.assert_allclose(hiders, HIDERS - middle, atol=1.0)


def test_a_few_hundred_games_are_enough_for_a_good_guess() -> None:
    games = np.full((4, 3), 256.0)
    wins = np.random.default_rng(0).binomial(256, chances(SEEKERS, HIDERS)).astype(np.float64)
    seekers, hiders = fit_elo(wins, games, EVERYBODY)
    middle = np.concatenate([SEEKERS, HIDERS]).mean() - 1000.0
    np.testing.assert_allclose(seekers, SEEKERS - middle, atol=60.0)
    np.testing.assert_allclose(hiders, HIDERS - middle, atol=60.0)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_clean_sweep_gives_finite_ratings(rate: float) -> None:
    games = np.full((3, 3), 256.0)
    seekers, hiders = fit_elo(games * rate, games, ([0], [0]))
    assert np.isfinite(seekers).all()
    assert np.isfinite(hiders).all()
    assert (seekers[0] > hiders[0]) == (rate == 1.0)
    assert np.abs(np.concatenate([seekers, hiders])).max() < 10_000.0


def test_who_never_played_has_a_rating_too() -> None:
    games, wins = np.zeros((3, 2)), np.zeros((3, 2))
    games[0, 0], wins[0, 0] = 100.0, 75.0
    seekers, hiders = fit_elo(wins, games, ([0], [0]))
    assert np.isfinite(np.concatenate([seekers, hiders])).all()
    assert seekers[0] > seekers[1] == seekers[2] == hiders[1] > hiders[0]


@pytest.mark.parametrize("anchors", [([0], [0]), ([1, 2], [0, 2]), EVERYBODY])
def test_anchors_average_1000(anchors: tuple[list[int], list[int]]) -> None:
    games = np.full((4, 3), 300.0)
    seekers, hiders = fit_elo(games * chances(SEEKERS, HIDERS), games, anchors)
    fixed = [*seekers[anchors[0]], *hiders[anchors[1]]]
    assert np.mean(fixed) == pytest.approx(ANCHOR)
    assert ANCHOR == 1000.0


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_strengths_is_kept(seed: int) -> None:
    random = np.random.default_rng(seed)
    seekers, hiders = random.uniform(-500.0, 2500.0, 8), random.uniform(-500.0, 2500.0, 8)
    games = np.full((8, 8), 256.0)
    found = fit_elo(games * chances(seekers, hiders), games, ([0], [0]))
    assert np.array_equal(np.argsort(found[0]), np.argsort(seekers))
    assert np.array_equal(np.argsort(found[1]), np.argsort(hiders))
