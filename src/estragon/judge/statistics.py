"""Are two sets of episodes different? Permutation tests, intervals, and what they could have seen.

A permutation test needs no assumption about how rewards are distributed: it asks how often the same
numbers, dealt at random, would look at least as bad. It is exact for successes, too: on pairs it is
McNemar's test.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np

NORMAL = NormalDist()
POWER = 0.8
RESAMPLES = 9_999
EXACT_PAIRS = 13
"""Up to this many differences all signs are tried, else `RESAMPLES` random ones."""
MANY = 2_000
"""With more episodes than this the t statistic is as good as normal."""
CHUNK = 500
SEED = 20_240_501
"""The same files always give the same verdict."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What the episodes say about a change of a mean."""

    method: str
    baseline: float
    current: float
    interval: tuple[float, float] | None = None
    """95% interval of the difference, current minus baseline."""
    p_lower: float | None = None
    """How likely noise alone looks as much like a decrease; None: not tested."""
    p_higher: float | None = None
    """The same for an increase."""
    error: float = 0.0
    """Standard error of the difference."""
    pairs: int = 0
    """Number of pairs; 0: not paired."""
    changed: int = 0
    """Pairs that differ."""

    @property
    def difference(self) -> float:
        """Current minus baseline."""
        return self.current - self.baseline

    def p_of(self, direction: int) -> float | None:
        """For a worsening: of a metric of which higher (1) or lower (-1) is better, or any (0)."""
        if self.p_lower is None or self.p_higher is None:
            return None
        if direction == 0:
            return min(1.0, 2.0 * min(self.p_lower, self.p_higher))
        return self.p_lower if direction > 0 else self.p_higher

    def detectable(self, alpha: float, margin: float) -> float:
        """The smallest worsening that is found with a probability of 80%."""
        power = NORMAL.inv_cdf(POWER)
        needed = NORMAL.inv_cdf(1.0 - alpha) + power
        return max(needed * self.error, margin + power * self.error)


def compare(baseline: np.ndarray, current: np.ndarray, *, paired: bool) -> Comparison:
    """Compare two samples of a metric; of pairs, episode i is the same in both."""
    means = float(baseline.mean()), float(current.mean())
    if paired:
        return _compare_pairs(means, current - baseline, binary=_is_binary(baseline, current))
    n, m = len(baseline), len(current)
    if n < 2 or m < 2:
        return Comparison("too few to test", *means)
    pooled = np.concatenate([baseline, current])
    if np.ptp(pooled) == 0.0 and not _is_binary(pooled):
        return Comparison("constant", *means, (0.0, 0.0), 1.0, 1.0)
    spreads = float(baseline.var(ddof=1)) / n, float(current.var(ddof=1)) / m
    error = math.sqrt(sum(spreads))
    freedom = error**4 / (spreads[0] ** 2 / (n - 1) + spreads[1] ** 2 / (m - 1)) if error else n + m
    reach = student_quantile(0.975, freedom) * error
    difference = means[1] - means[0]
    if n + m > MANY and error:
        p_lower = NORMAL.cdf(difference / error)
        p_higher = 1.0 - p_lower
    else:
        p_lower, p_higher = _permute(pooled, n)
    if _is_binary(pooled):  # a share of 0 or 1 has no spread, but is not certain
        error = math.sqrt(_share_variance(baseline) + _share_variance(current))
    interval = difference - reach, difference + reach
    return Comparison("independent episodes", *means, interval, p_lower, p_higher, error)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted so that the chance of any false alarm is at most alpha (Holm 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def detectable_share(pairs: int, alpha: float) -> float:
    """The smallest share of pairs that, made worse, is found with a probability of 80%.

    Of pairs that are otherwise identical, k worse ones have p = 2^-k.
    """
    needed = math.ceil(math.log2(1.0 / alpha))
    if needed > pairs:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        share = (low + high) / 2.0
        fewer = sum(
            math.comb(pairs, k) * share**k * (1.0 - share) ** (pairs - k) for k in range(needed)
        )
        low, high = (low, share) if fewer <= 1.0 - POWER else (share, high)
    return high


def mean_interval(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """Mean and the ends of its 95% interval; Wilson's for successes, else Student's."""
    data = np.asarray(values, float)
    mean = float(data.mean())
    if _is_binary(data):
        from estragon.tag.matches import wilson_interval

        low, high = wilson_interval(mean, len(data))
        return mean, low, high
    reach = 0.0
    if len(data) > 1:
        error = float(data.std(ddof=1)) / math.sqrt(len(data))
        reach = student_quantile(0.975, len(data) - 1) * error
    return mean, mean - reach, mean + reach


def student_quantile(share: float, freedom: float) -> float:
    """A quantile of Student's t; the error is below 1% from 3 degrees of freedom on.

    The expansion of Cornish and Fisher in 1/freedom (Abramowitz and Stegun 26.7.5).
    """
    if freedom < 1.5:
        return math.tan(math.pi * (share - 0.5))
    if freedom < 2.5:
        return (2.0 * share - 1.0) / math.sqrt(2.0 * share * (1.0 - share))
    z = NORMAL.inv_cdf(share)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


def _compare_pairs(means: tuple[float, float], change: np.ndarray, *, binary: bool) -> Comparison:
    count, differing = len(change), change[change != 0.0]
    if not len(differing):
        return Comparison("identical", *means, (0.0, 0.0), 1.0, 1.0, 0.0, count)
    if count < 2:
        return Comparison("too few to test", *means, pairs=count, changed=len(differing))
    error = float(change.std(ddof=1)) / math.sqrt(count)
    if binary:
        error = max(error, math.sqrt(len(differing) + 1.0) / count)
    middle, reach = float(change.mean()), student_quantile(0.975, count - 1) * error
    interval = middle - reach, middle + reach
    if len(differing) > MANY:
        p_lower = NORMAL.cdf(middle / error)
        p_higher = 1.0 - p_lower
    else:
        p_lower, p_higher = _flip(differing)
    return Comparison(
        "paired by seed", *means, interval, p_lower, p_higher, error, count, len(differing)
    )


def _flip(change: np.ndarray) -> tuple[float, float]:
    """How often the sum of differences with random signs is as low, and as high."""
    seen, size = float(change.sum()), len(change)
    slack = 1e-9 * float(np.abs(change).sum())
    if size <= EXACT_PAIRS:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=size)))
        sums = signs @ change
        return float(np.mean(sums <= seen + slack)), float(np.mean(sums >= seen - slack))
    random = np.random.default_rng(SEED)
    lower = higher = 1
    for rows in _chunks():
        sums = random.choice((-1.0, 1.0), (rows, size)) @ change
        lower += int(np.sum(sums <= seen + slack))
        higher += int(np.sum(sums >= seen - slack))
    return lower / (RESAMPLES + 1), higher / (RESAMPLES + 1)


def _permute(pooled: np.ndarray, first: int) -> tuple[float, float]:
    """How often a random division has as low a Welch statistic, and as high.

    Studentized, so that it is valid for unequal variances, too (Janssen 1997).
    """
    centred = pooled - pooled.mean()
    centred = centred / max(float(np.abs(centred).max()), 1e-300)
    (seen,) = _welch(centred[None], first)
    slack = 1e-9 * max(1.0, abs(float(seen)))
    random = np.random.default_rng(SEED)
    lower = higher = 1
    for rows in _chunks():
        shuffled = random.permuted(np.broadcast_to(centred, (rows, len(centred))), axis=1)
        found = _welch(shuffled, first)
        lower += int(np.sum(found <= seen + slack))
        higher += int(np.sum(found >= seen - slack))
    return lower / (RESAMPLES + 1), higher / (RESAMPLES + 1)


def _welch(rows: np.ndarray, first: int) -> np.ndarray:
    one, two = rows[:, :first], rows[:, first:]
    spread = one.var(axis=1, ddof=1) / one.shape[1] + two.var(axis=1, ddof=1) / two.shape[1]
    statistic: np.ndarray = (two.mean(axis=1) - one.mean(axis=1)) / np.sqrt(spread + 1e-18)
    return statistic


def _chunks() -> Iterator[int]:
    """Sizes of the parts in which resamples are drawn, to bound memory."""
    for start in range(0, RESAMPLES, CHUNK):
        yield min(CHUNK, RESAMPLES - start)


def _share_variance(values: np.ndarray) -> float:
    """Of a share, with one more success and failure (Agresti and Caffo 2000)."""
    count = len(values) + 2
    share = (float(values.sum()) + 1.0) / count
    return share * (1.0 - share) / count


def _is_binary(*samples: np.ndarray) -> bool:
    return all(bool(np.isin(each, (0.0, 1.0)).all()) for each in samples)
