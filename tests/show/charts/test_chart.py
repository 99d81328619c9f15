"""Rolling means that are means, and several runs on a common grid."""

import numpy as np
import pytest

from estragon.show.charts.chart import exact_curve, noisy_curve, rolling_mean, window_of
from estragon.show.charts.data import Points


def line(slope: float, first: float = 0.0, last: float = 10.0, count: int = 5) -> Points:
    x = np.linspace(first, last, count)
    return Points(x, slope * x)


def test_rolling_mean_of_few_rows_is_the_rows() -> None:
    points = Points(np.arange(3.0), np.array([1.0, 5.0, 3.0]))
    assert window_of(points) == 1
    np.testing.assert_allclose(rolling_mean(points.y, window_of(points)), points.y)


def test_rolling_mean_is_centred() -> None:
    values = np.random.default_rng(0).normal(size=200)
    points = Points(np.arange(200.0), values)
    assert window_of(points) == 11
    smooth = rolling_mean(values, 11)
    for row in (0, 3, 100, 199):
        np.testing.assert_allclose(smooth[row], values[max(0, row - 5) : row + 6].mean())


def test_single_episodes_are_smoothed_over_more_rows() -> None:
    x = np.arange(400.0)
    assert window_of(Points(x, x)) == 21
    assert window_of(Points(x, x, scattered=True)) == 41


def test_one_noisy_run_keeps_every_number() -> None:
    run = Points(np.arange(40.0), np.random.default_rng(1).normal(size=40))
    curve = noisy_curve([run])
    assert curve is not None
    assert curve.every is run
    assert curve.low is None
    assert np.std(curve.y) < np.std(run.y)


@pytest.mark.parametrize("curve_of", [noisy_curve, exact_curve])
def test_several_runs_give_their_mean_and_the_span_between_them(curve_of: object) -> None:
    assert callable(curve_of)
    curve = curve_of([line(1.0), line(2.0, count=9), line(6.0, count=7)])
    np.testing.assert_allclose(curve.y, 3.0 * curve.x)
    np.testing.assert_allclose(curve.low, curve.x)
    np.testing.assert_allclose(curve.high, 6.0 * curve.x)
    assert (curve.x[0], curve.x[-1]) == (0.0, 10.0)
    assert (np.diff(curve.x) > 0.0).all()


def test_runs_of_different_length_are_compared_where_all_have_numbers() -> None:
    runs = [line(1.0, 0.0, 6.0), line(1.0, 2.0, 9.0)]
    noisy, exact = noisy_curve(runs), exact_curve(runs)
    assert noisy is not None
    assert exact is not None
    for curve in (noisy, exact):
        assert 2.0 <= curve.x[0] <= curve.x[-1] <= 6.0
        np.testing.assert_allclose(curve.y, curve.x)
    assert set(exact.x) <= {*runs[0].x, *runs[1].x}


def test_runs_that_never_meet_and_no_runs_give_nothing() -> None:
    apart = [line(1.0, 0.0, 2.0), line(1.0, 3.0, 9.0)]
    for curve_of in (noisy_curve, exact_curve):
        assert curve_of(apart) is None
        assert curve_of([]) is None
