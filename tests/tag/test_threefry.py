"""The random streams: known answers, independence, and no visible bias."""

import numpy as np
import pytest

from estragon.tag import threefry

FULL = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((FULL, FULL), (FULL, FULL), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_its_published_answers(
    key: tuple[int, int], counter: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert threefry.threefry(*key, *counter) == expected


def test_numbers_lie_in_the_unit_interval_and_are_level() -> None:
    pairs = np.array([threefry.uniform_pair(1, 2, 3, threefry.SPAWN, n) for n in range(4000)])
    assert pairs.min() >= 0.0
    assert pairs.max() < 1.0
    counts, _ = np.histogram(pairs, bins=16, range=(0, 1))
    chi_square = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert chi_square < 37.7, "15 degrees of freedom, one in a thousand"
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.06


def test_every_coordinate_of_a_draw_matters() -> None:
    base = (1, 2, 3, threefry.SPAWN, 4)
    drawn = {threefry.uniform_pair(*base)}
    for place in range(5):
        changed = list(base)
        changed[place] += 1
        drawn.add(threefry.uniform_pair(*changed))
    assert len(drawn) == 6
