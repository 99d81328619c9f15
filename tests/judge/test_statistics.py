"""False alarms are as rare as stated, regressions are found as often as stated."""

import math

import numpy as np
import pytest

from estragon.judge import statistics
from estragon.judge.statistics import (
    compare,
    detectable_share,
    holm,
    mean_interval,
    student_quantile,
)

TRIALS = 300
AT_MOST = 0.05 + 3 * math.sqrt(0.05 * 0.95 / TRIALS)
AT_LEAST = 0.8 - 3 * math.sqrt(0.8 * 0.2 / TRIALS)


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 199)


def normal(random: np.random.Generator, count: int) -> np.ndarray:
    return random.normal(3.0, 2.0, count)


def skewed(random: np.random.Generator, count: int) -> np.ndarray:
    return random.exponential(1.0, count)


def successes(random: np.random.Generator, count: int) -> np.ndarray:
    return (random.random(count) < 0.9).astype(float)


@pytest.mark.parametrize("draw", [normal, skewed, successes], ids=lambda each: each.__name__)
@pytest.mark.parametrize("paired", [False, True], ids=["independent", "paired"])
def test_false_alarms_are_as_rare_as_stated(draw: object, paired: bool) -> None:
    random = np.random.default_rng(1)
    alarms = 0
    for _ in range(TRIALS):
        found = compare(draw(random, 50), draw(random, 50), paired=paired)  # type: ignore[operator]
        p_value = found.p_of(1)
        alarms += p_value is not None and p_value < 0.05
    assert alarms / TRIALS <= AT_MOST


@pytest.mark.parametrize("paired", [False, True], ids=["independent", "paired"])
def test_a_loss_of_the_stated_size_is_found_as_often_as_stated(paired: bool) -> None:
    """And one of half that size is not, or the statement would be useless."""
    random = np.random.default_rng(2)
    shared = random.normal(0.0, 5.0, 60) if paired else 0.0
    stated = [
        compare(shared + normal(random, 60), shared + normal(random, 60), paired=paired)
        for _ in range(20)
    ]
    loss = np.mean([each.detectable(0.05, 0.0) for each in stated])
    for size, least, most in ((loss, AT_LEAST, 0.95), (loss / 2, 0.0, 0.6)):
        finds = 0
        for _ in range(TRIALS):
            found = compare(
                shared + normal(random, 60), shared + normal(random, 60) - size, paired=paired
            )
            p_value = found.p_of(1)
            finds += p_value is not None and p_value < 0.05
        assert least <= finds / TRIALS <= most


def test_pairs_find_what_independent_episodes_cannot() -> None:
    random = np.random.default_rng(3)
    before = random.normal(0.0, 10.0, 50)
    after = before - 0.5 + random.normal(0.0, 0.5, 50)
    paired, independent = (compare(before, after, paired=each) for each in (True, False))
    assert paired.p_of(1) < 0.01  # type: ignore[operator]
    assert independent.p_of(1) > 0.1  # type: ignore[operator]
    assert paired.detectable(0.05, 0.0) < 0.5 < independent.detectable(0.05, 0.0)


def test_the_smallest_samples_are_exact() -> None:
    """Signs of five worse pairs: 1 of 32; McNemar's test of three against one: 5 of 16."""
    worse = compare(np.arange(5.0), np.arange(5.0) - 1.0, paired=True)
    assert worse.p_lower == 1 / 32
    assert worse.p_higher == 1.0
    before = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    after = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])
    assert compare(before, after, paired=True).p_lower == 5 / 16


def test_constants() -> None:
    tens, nines = np.full(40, 10.0), np.full(40, 9.0)
    assert compare(tens, tens, paired=True).method == "identical"
    assert compare(tens, tens, paired=False).method == "constant"
    for paired in (True, False):
        found = compare(tens, nines, paired=paired)
        assert found.p_lower is not None
        assert found.p_lower <= 0.01
        assert found.p_higher == 1.0
    assert compare(tens[:1], nines, paired=False).p_lower is None


def test_certain_successes_are_not_certain() -> None:
    """20 of 20 twice: the share may still be lower, and the statement says so."""
    found = compare(np.ones(20), np.ones(20), paired=False)
    assert found.p_lower == 1.0
    assert 0.1 < found.detectable(0.05, 0.0) < 0.3


def test_many_episodes_use_the_normal_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    before, after = normal(random, 300), normal(random, 300) - 0.2
    for paired in (False, True):
        resampled = compare(before, after, paired=paired)
        with monkeypatch.context() as few:
            few.setattr(statistics, "MANY", 100)
            assert compare(before, after, paired=paired).p_lower == pytest.approx(
                resampled.p_lower, abs=0.06
            )


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_share_of_identical_pairs_that_would_be_found() -> None:
    share = detectable_share(100, 0.05)
    random = np.random.default_rng(5)
    counts = random.binomial(100, share, 20_000)
    assert np.mean(0.5**counts < 0.05) == pytest.approx(0.8, abs=0.02)
    assert detectable_share(3, 0.05) == 1.0


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)],
)
def test_student_quantiles(freedom: float, quantile: float) -> None:
    """From a printed table."""
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, rel=0.002)


def test_intervals() -> None:
    assert mean_interval([1.0, 2.0, 3.0]) == pytest.approx([2.0, -0.484, 4.484], abs=0.01)
    assert mean_interval([7.0]) == (7.0, 7.0, 7.0)
    mean, low, high = mean_interval([1.0] * 20)
    assert mean == high == 1.0
    assert low == pytest.approx(0.839, abs=0.001)  # Wilson
