"""A film keeps the game's pace, but for the tag, and has a frame for every 1/fps of a second."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from estragon.show.film_plan import (
    AFTER_SEC,
    CARD_SEC,
    END_SEC,
    MAX_SEC,
    SLOW,
    TITLE_SEC,
    Part,
    Scene,
    StageFacts,
    match_times,
    pace,
    plan_moments,
    steps_text,
    time_text,
)
from estragon.show.film_renderers import Shot

FPS = 30


def scene(times: tuple[float, ...], end_sec: float, steps: int = 0) -> Scene:
    facts = StageFacts("0%", steps, None, {}, {})
    shot = Shot(Path("match.jsonl"), Path("frames"), times)
    return Scene(facts, "chosen from 64", shot, end_sec, 10.0, None, "survived", "hider", False)


def test_without_a_tag_a_second_is_a_second() -> None:
    times = match_times(10.0, None, FPS)
    np.testing.assert_allclose(np.diff(times), 1.0 / FPS, atol=2e-6)
    assert times[0] == 0.0
    assert 10.0 + AFTER_SEC <= times[-1] < 10.0 + AFTER_SEC + 2.0 / FPS


def test_around_the_tag_time_passes_slowly_and_changes_gently() -> None:
    times = match_times(4.0, 4.0, FPS)
    paces = np.diff(times) * FPS
    assert paces.min() == pytest.approx(SLOW, abs=1e-3)
    assert (np.abs(np.diff(paces)) < 0.15).all()
    at_the_tag = int(np.searchsorted(times, 4.0))
    np.testing.assert_allclose(paces[at_the_tag - 8 : at_the_tag + 8], SLOW, atol=1e-3)
    assert pace(0.0, 4.0) == pace(5.0, 4.0) == 1.0
    assert all(earlier < later for earlier, later in pairwise(times))


def test_of_a_long_match_the_end_is_shown() -> None:
    times = match_times(100.0, None, FPS)
    assert times[0] == 100.0 - MAX_SEC
    assert len(times) == pytest.approx((MAX_SEC + AFTER_SEC) * FPS, abs=3)


def test_every_frame_of_the_film_in_order() -> None:
    scenes = [scene(match_times(2.0, None, FPS), 2.0), scene(match_times(1.0, 1.0, FPS), 1.0)]
    film = plan_moments(scenes, FPS)
    parts = [(moment.part, moment.scene) for moment in film]
    order = [part for number, part in enumerate(parts) if number == 0 or parts[number - 1] != part]
    assert order == [
        (Part.TITLE, 0),
        (Part.CARD, 0),
        (Part.MATCH, 0),
        (Part.CARD, 1),
        (Part.MATCH, 1),
        (Part.END, 1),
    ]
    for number, shown in enumerate(scenes):
        pictures = [m.picture for m in film if m.part is Part.MATCH and m.scene == number]
        assert pictures == list(range(len(shown.shot.times)))
    drawn = sum(len(shown.shot.times) for shown in scenes)
    assert len(film) == drawn + round((TITLE_SEC + 2 * CARD_SEC + END_SEC) * FPS)
    cards = [m for m in film if m.part is Part.CARD and m.scene == 1]
    assert cards[0].age_sec == cards[-1].left_sec == 0.0
    assert cards[-1].age_sec == cards[0].left_sec == pytest.approx(CARD_SEC - 1.0 / FPS)


def test_the_verdict_comes_with_the_end() -> None:
    times = (0.0, 0.4, 0.9, 1.0, 1.1)
    assert scene(times, 1.0).first_after == 3
    assert scene(times, 0.95).first_after == 3


def test_what_a_stage_is_called() -> None:
    untrained = StageFacts("0%", 0, None, {}, {})
    assert (untrained.title, untrained.subtitle) == ("untrained", "before the training")
    known = StageFacts("5%", 1_525_696, 11.2, {}, {})
    assert (known.title, known.subtitle) == ("1.5 million steps", "after 11 s of training")
    unknown = StageFacts("100%", 20_000, None, {}, {})
    assert (unknown.title, unknown.subtitle) == ("20,000 steps", "after 100% of the training")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (173.0, "2 min 53 s"),
        (3725.0, "1 h 2 min"),
    ],
)
def test_times_in_words(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_steps_in_words() -> None:
    assert steps_text(999_999) == "999,999 steps"
    assert steps_text(30_021_760) == "30.0 million steps"
