"""Labels that never lie over one another, and a rolling mean that is one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estragon.show.panel import rolling_mean
from estragon.show.paper import spread

SHARES = st.lists(st.floats(-1.0, 2.0), max_size=9)


@given(SHARES, st.floats(0.001, 0.2))
def test_labels_keep_their_order_and_their_distance(wanted: list[float], gap: float) -> None:
    placed = spread(wanted, gap)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(np.array(placed)[order]) >= gap - 1e-9).all()
    assert np.mean(placed or [0.0]) == pytest.approx(np.mean(wanted or [0.0]), abs=1e-9)


def test_labels_that_are_apart_stay_where_they_are() -> None:
    assert spread([0.9, 0.1, 0.5], 0.05) == pytest.approx([0.9, 0.1, 0.5])


def test_rolling_mean_of_few_rows_is_the_rows() -> None:
    values = np.array([1.0, 5.0, 3.0])
    np.testing.assert_allclose(rolling_mean(values), values)


def test_rolling_mean_is_centred() -> None:
    values = np.random.default_rng(0).normal(size=200)
    smooth = rolling_mean(values)
    for row in (0, 3, 100, 199):
        np.testing.assert_allclose(smooth[row], values[max(0, row - 5) : row + 6].mean())
