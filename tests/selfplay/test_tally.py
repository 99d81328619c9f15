"""Episodes are counted where learners meet learners, and not lost between two sittings."""

import numpy as np
import pytest

from estragon.selfplay.opponents import Sides
from estragon.selfplay.tally import Episodes, Tally
from estragon.support.errors import UserError
from estragon.tag.rules import TERMS
from tests.selfplay.test_kernels import decisions_of

COUNT = 24


def counted(sides: Sides, decisions: int = 60) -> Episodes:
    tally = Tally(sides)
    for results, seekers, _ in decisions_of("seek", COUNT, decisions):
        tally.add(results, seekers)
    return tally.take()


def ended_in(arenas: slice, decisions: int = 60) -> int:
    course = decisions_of("seek", COUNT, decisions)
    return sum(int((results.ends[arenas] != 0).sum()) for results, _, _ in course)


@pytest.mark.parametrize(
    ("sides", "arenas"),
    [
        (Sides(5, 9, 10), slice(5, 14)),
        (Sides(0, 24, 0), slice(0, 24)),
        (Sides(24, 0, 0), slice(0, 24)),
        (Sides(0, 0, 24), slice(0, 24)),
        (Sides(12, 0, 12), slice(0, 24)),
    ],
)
def test_which_episodes_count(sides: Sides, arenas: slice) -> None:
    found = counted(sides)
    assert found.count == ended_in(arenas) > 0


def test_what_was_taken_is_not_given_again() -> None:
    tally = Tally(Sides(0, COUNT, 0))
    taken = Episodes()
    for number, (results, seekers, _) in enumerate(decisions_of("seek", COUNT, 60)):
        tally.add(results, seekers)
        if number % 7 == 0:
            taken += tally.take()
    taken += tally.take()
    assert tally.take() == Episodes()
    whole = counted(Sides(0, COUNT, 0))
    assert (taken.count, taken.decisions, taken.ticks) == (
        whole.count,
        whole.decisions,
        whole.ticks,
    )
    assert taken.distance == pytest.approx(whole.distance)
    np.testing.assert_allclose(taken.terms, whole.terms)
    assert np.shape(taken.terms) == (2, len(TERMS))


def test_a_saved_tally_goes_on_in_the_middle_of_episodes() -> None:
    sides = Sides(5, 9, 10)
    tally, later = Tally(sides), Tally(sides)
    taken = Episodes()
    for number, (results, seekers, _) in enumerate(decisions_of("seek", COUNT, 60)):
        tally.add(results, seekers)
        if number == 25:
            taken = tally.take()
            later.restore(tally.save())
            tally = later
    assert taken.count > 0
    both, whole = taken + tally.take(), counted(sides)
    assert both.count == whole.count > taken.count
    assert both.decisions == whole.decisions
    assert both.distance == pytest.approx(whole.distance)
    np.testing.assert_allclose(both.terms, whole.terms)


def test_a_tally_of_other_arenas_is_refused() -> None:
    with pytest.raises(UserError, match="another number of arenas"):
        Tally(Sides(5, 9, 10)).restore(Tally(Sides(4, 10, 10)).save())
