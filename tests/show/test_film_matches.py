"""A film shows an eventful match with the usual outcome, and always the same one."""

import numpy as np
import pytest

from estragon.show.film import (
    Events,
    choose_match,
    events_of,
    find_match,
    gaps_m,
)
from estragon.show.trajectory import Trajectory
from estragon.show.trajectory_log import play_in_memory
from estragon.tag.bots import Bot
from estragon.tag.matches import play_matches
from estragon.tag.rules import Rules, load_rules
from tests.show.staging import played, playground, short_rules


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


@pytest.fixture(scope="module")
def match(rules: Rules) -> Trajectory:
    return played(rules)


def staged(
    match: Trajectory, places: list[tuple[float, float]], *, sees: bool = True
) -> Trajectory:
    """The seeker at these x and z every half a second, the hider in the origin; no boxes near."""
    count = len(places)
    positions = np.zeros((count, 2, 3))
    positions[:, 0, ::2] = places
    positions[..., 1] = 0.5
    seen = np.zeros((count, 2), dtype=bool)
    seen[:, 0] = sees
    is_seeker = np.tile([True, False], (count, 1))
    return match._replace(
        ticks=30 * np.arange(count), positions=positions, sees=seen, is_seeker=is_seeker
    )


def test_the_gap_is_between_the_cubes_not_their_middles(match: Trajectory) -> None:
    gaps = gaps_m(staged(match, [(4.0, 0.0), (0.0, -1.5), (4.0, 5.0), (0.4, 0.2)]))
    np.testing.assert_allclose(gaps, [3.0, 0.5, 5.0, 0.0])


def test_a_chase_is_close_while_the_gap_is_small_and_the_hider_is_seen(match: Trajectory) -> None:
    places = [(9.0, 0.0), (3.9, 0.0), (2.0, 0.0), (4.1, 0.0), (3.0, 0.0)]
    assert events_of(staged(match, places)).close_chase_sec == pytest.approx(1.5)
    assert events_of(staged(match, places, sees=False)).close_chase_sec == 0.0
    hider_sees = staged(match, places)
    swapped = hider_sees._replace(sees=hider_sees.sees[:, ::-1])
    assert events_of(swapped).close_chase_sec == 0.0


@pytest.mark.parametrize(
    ("gaps", "escapes"),
    [
        ([3.0, 0.5, 1.0, 1.3], 1),
        ([3.0, 0.5, 1.0, 0.5, 1.1], 0),
        ([0.5, 2.0, 0.4, 2.0, 0.7, 2.0], 2),
        ([3.0, 0.5, 0.3], 0),
    ],
)
def test_narrow_escapes(match: Trajectory, gaps: list[float], escapes: int) -> None:
    places = [(1.0 + gap, 0.0) for gap in gaps]
    assert events_of(staged(match, places)).narrow_escapes == escapes


def test_jumps_are_counted_when_somebody_comes_over_a_box(match: Trajectory) -> None:
    (x, z) = match.layout.boxes[0].at_m
    away = (x - 3.0, z)
    way = [away, (x, z), (x + 0.1, z), away, (x, z), away]
    assert events_of(staged(match, way)).jumps == 2
    assert events_of(staged(match, [away, away])).jumps == 0


def test_run_and_length(match: Trajectory) -> None:
    events = events_of(staged(match, [(9.0, 0.0), (6.0, 4.0), (6.0, 4.0)]))
    assert events.run_m == pytest.approx(5.0)
    assert events.seconds == 1.0


def test_the_score_is_what_the_docstring_says() -> None:
    long = Events(10.0, 4.5, 2, 3, 100.0)
    assert long.score == pytest.approx(4.5 + 2 * 2 + 3 + 2.0)
    assert long._replace(seconds=1.0).score == pytest.approx(long.score / 4)


def test_the_usual_outcome_and_of_those_the_most_eventful(match: Trajectory) -> None:
    dull = staged(match, [(9.0, 0.0)] * 9)._replace(winner=1)
    chase = staged(match, [(2.0, 0.0)] * 9)._replace(winner=1)
    wild = staged(match, [(1.3, 0.0), (5.0, 0.0)] * 4)._replace(winner=0)
    choice = choose_match([dull, wild, chase, chase, dull])
    assert choice.number == 2, "of equal ones the first"
    assert choice.matches == 5
    assert choice.seeker_wins == pytest.approx(0.2)
    assert choose_match([dull, wild, wild]).number == 1
    drawn = dull._replace(winner=-1)
    assert choose_match([drawn, drawn, wild, chase]).seeker_wins == pytest.approx(0.5)


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
def test_the_same_match_every_time_among_those_that_judge_strength(rule_set: str) -> None:
    rules = short_rules(3.0, rule_set)
    layouts = [playground(rules)]
    bots = Bot("chaser", rules), Bot("evader", rules)
    first = find_match(*bots, rules=rules, layouts=layouts, matches=12)
    again = find_match(*bots, rules=rules, layouts=layouts, matches=12)
    assert first[0] == again[0]
    np.testing.assert_array_equal(first[1].positions, again[1].positions)
    assert first[1].start.arena == first[0].number
    kept = play_in_memory(*bots, 12, rules=rules, layouts=layouts, seed=7)
    outcomes = play_matches(*bots, 12, rules=rules, layouts=layouts, seed=7)
    assert [match.winner for match in kept] == outcomes.winners.tolist()
    assert [match.ticks[-1] for match in kept] == outcomes.ticks.tolist()
    scores = [events_of(match).score for match in kept if match.winner == first[1].winner]
    assert events_of(first[1]).score == max(scores)
