"""The running mean and spread are those of everything seen at once."""

import numpy as np

from estragon.selfplay.normaliser import SMALLEST_VARIANCE, Normaliser
from estragon.selfplay.rollout import Moments

ROWS, SIZE = 20_000, 5


def seen() -> np.ndarray:
    random = np.random.default_rng(0)
    rows: np.ndarray = random.normal(
        [0.0, 3.0, -8.0, 0.5, 0.0], [1.0, 2.0, 0.1, 1.0, 0.0], (ROWS, SIZE)
    )
    return rows


def merged(batches: list[np.ndarray], calls: int) -> Normaliser:
    normaliser = Normaliser(SIZE)
    moments = [Moments(len(rows), rows.sum(axis=0), (rows**2).sum(axis=0)) for rows in batches]
    for part in np.array_split(np.arange(len(moments)), calls):
        normaliser.add(moments[number] for number in part)
    return normaliser


def test_batches_merge_to_the_mean_and_variance_of_all_rows() -> None:
    rows = seen()
    mean = rows.mean(axis=0)
    uneven = np.split(rows, [1, 10, 500, 501, 9000])
    for normaliser in (merged([rows], 1), merged(uneven, 1), merged(uneven, 6)):
        little = (1.0 + mean**2) / ROWS  # the imagined first row
        assert (np.abs(normaliser.mean - mean) < little).all()
        variance = normaliser.scale.astype(np.float64) ** 2 - SMALLEST_VARIANCE
        assert (np.abs(variance - rows.var(axis=0)) < 1.01 * little + 1e-5).all()
        assert normaliser.mean.dtype == normaliser.scale.dtype == np.float32


def test_with_the_imagined_first_row_it_is_exact() -> None:
    """Which has mean 0 and mean square 1."""
    rows = seen()
    normaliser = merged(np.array_split(rows, 7), 3)
    mean = rows.sum(axis=0) / (ROWS + 1)
    square = ((rows**2).sum(axis=0) + 1.0) / (ROWS + 1)
    np.testing.assert_allclose(normaliser.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(
        normaliser.scale, np.sqrt(square - mean**2 + SMALLEST_VARIANCE), rtol=1e-6
    )


def test_before_anything_is_seen_it_changes_next_to_nothing() -> None:
    normaliser = Normaliser(SIZE)
    assert normaliser.mean.tolist() == [0.0] * SIZE
    np.testing.assert_allclose(normaliser.scale, 1.0, atol=0.01)


def test_what_never_changes_is_not_blown_up() -> None:
    normaliser = merged([np.full((ROWS, SIZE), 4.0)], 1)
    assert (normaliser.scale >= np.sqrt(SMALLEST_VARIANCE) * 0.99).all()
    assert np.isfinite(normaliser.scale).all()
