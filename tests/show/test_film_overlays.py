"""Cards, captions and marks are where they should be, readable, and fade; frames are whole."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image, ImageColor

from estragon.show.canvas import HIDER, SEEKER
from estragon.show.film_overlays import PAGE, Composer, Overlay, encode_film
from estragon.show.film_plan import (
    Moment,
    Part,
    RoleCurve,
    RunFacts,
    Scene,
    StageFacts,
    plan_moments,
)
from estragon.show.film_renderers import Shot, save_frame
from estragon.show.frames import Quality, frame_path
from estragon.support.errors import UserError

SIZE, FPS = (960, 540), 10
CHOSEN = "chosen from 64 matches; the seeker wins 33% of them"
GROUNDS = ((120, 140, 120), (140, 120, 140))
INSET = np.s_[380:524, 750:940]
CARD_CHART = np.s_[130:380, 515:810]
SLOW_MARK = np.s_[18:42, 430:530]
VERDICTS = (np.s_[60:108, 400:560], np.s_[432:480, 400:560])
"""At the top, and at the bottom where a match ends at the top."""


class Film(NamedTuple):
    """What a composer needs."""

    run: RunFacts
    scenes: tuple[Scene, ...]
    quality: Quality


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Film:
    """Two stages; the pictures of each are of one colour."""
    folder = tmp_path_factory.mktemp("film")
    rates = {"seeker_vs_random": 0.34, "seeker_vs_evader": 0.09, "hider_vs_chaser": 0.02}
    stages = [
        StageFacts("0%", 0, None, rates, {"seeker": 1084.0, "hider": 1064.0}),
        StageFacts("100%", 30_000_000, 173.0, rates, {"seeker": 1708.0, "hider": 1712.0}),
    ]
    steps = [0.0, 6e6, 15e6, 30e6]
    curves = [
        RoleCurve("seeker", "evader", steps, [0.1, 0.5, 0.6, 0.85]),
        RoleCurve("hider", "chaser", steps, [0.02, 0.65, 0.8, 0.9]),
    ]
    scenes = []
    for number, (facts, ground) in enumerate(zip(stages, GROUNDS, strict=True)):
        shot = Shot(folder / "m.jsonl", folder / f"{number}", tuple(n / FPS for n in range(20)))
        for picture in range(20):
            save_frame(Image.new("RGB", SIZE, ground), frame_path(shot.folder, picture))
        tag = 1.0 if number == 0 else None
        winner = "seeker" if number == 0 else "hider"
        above = number == 1
        scenes.append(Scene(facts, CHOSEN, shot, 1.0, 10.0, tag, "in some way", winner, above))
    run = RunFacts("run", "self-play", stages, curves)
    return Film(run, tuple(scenes), Quality(SIZE, FPS))


@pytest.fixture(scope="module")
def composer(film: Film) -> Composer:
    return Composer(*film)


def shown(composer: Composer, *moment: object) -> np.ndarray:
    return np.asarray(composer.compose(Moment(*moment)), dtype=np.int64)  # type: ignore[arg-type]


def near(picture: np.ndarray, colour: str | tuple[int, ...]) -> int:
    wanted = ImageColor.getrgb(colour) if isinstance(colour, str) else colour
    return int((np.abs(picture - np.array(wanted[:3])) < 12).all(axis=-1).sum())


def test_a_match_shows_its_picture_with_words_in_the_corners(composer: Composer) -> None:
    picture = shown(composer, Part.MATCH, 1, 8, 0.8, 1.1)
    middle = picture[200:370, 300:700]
    assert (middle == GROUNDS[1]).all()
    for corner in (np.s_[20:70, 20:180], np.s_[18:48, 760:940], np.s_[485:520, 20:190], INSET):
        ground = near(picture[corner], GROUNDS[1])
        assert ground < 0.1 * picture[corner].shape[0] * picture[corner].shape[1]
        assert (picture[corner].max(axis=-1) < 160).sum() > 10, "dark letters"


def test_the_words_come_and_go_gently(composer: Composer) -> None:
    first, last = (shown(composer, Part.MATCH, 1, n, n / 10, (19 - n) / 10) for n in (0, 19))
    assert (first == GROUNDS[1]).all()
    assert (last == GROUNDS[1]).all()
    later = shown(composer, Part.MATCH, 1, 2, 0.2, 0.8)
    assert np.abs(later[INSET] - GROUNDS[1]).mean() > 1.0
    whole = shown(composer, Part.MATCH, 1, 6, 0.6, 0.4)
    assert np.abs(later[INSET] - GROUNDS[1]).mean() < np.abs(whole[INSET] - GROUNDS[1]).mean()


def test_the_curve_in_the_corner_has_grown_to_the_stage(composer: Composer) -> None:
    before, after = (shown(composer, Part.MATCH, stage, 6, 0.6, 0.4)[INSET] for stage in (0, 1))
    for colour in (SEEKER, HIDER):
        assert near(after, colour) > near(before, colour) + 80


def test_the_curve_on_the_card_grows(composer: Composer) -> None:
    ages = (0.5, 0.9, 1.3, 1.9)
    counts = [near(shown(composer, Part.CARD, 1, 0, age, 1.0)[CARD_CHART], SEEKER) for age in ages]
    assert counts == sorted(set(counts))


def test_the_verdict_has_the_colour_of_who_won_and_hides_nobody(composer: Composer) -> None:
    for stage, colour in enumerate((SEEKER, HIDER)):
        going_on = shown(composer, Part.MATCH, stage, 9, 0.9, 0.1)
        over = shown(composer, Part.MATCH, stage, 15, 1.5, 0.5)
        there, elsewhere = VERDICTS[stage], VERDICTS[1 - stage]
        assert near(going_on[there], colour) == 0
        assert near(over[there], colour) > 500
        assert near(over[elsewhere], colour) == 0


def test_slow_motion_is_said_to_be(composer: Composer) -> None:
    around, before = (shown(composer, Part.MATCH, 0, n, n / FPS, 0.3)[SLOW_MARK] for n in (9, 1))
    assert (around.max(axis=-1) < 60).mean() > 0.3
    assert (before == GROUNDS[0]).all()
    never = shown(composer, Part.MATCH, 1, 9, 0.9, 0.3)[SLOW_MARK]
    assert (never == GROUNDS[1]).all()


def test_a_card_fades_in_from_the_stage_before_and_out_into_its_own(composer: Composer) -> None:
    first = shown(composer, Part.CARD, 1, 0, 0.0, 2.7)
    last = shown(composer, Part.CARD, 1, 0, 2.7, 0.0)
    assert (first == GROUNDS[0]).all()
    assert (last == GROUNDS[1]).all()
    card = shown(composer, Part.CARD, 1, 0, 1.4, 1.4)
    assert near(card[110:430, 130:830], PAGE) > 10_000
    assert card[50, 50].sum() < sum(GROUNDS[1]), "darker behind it"


def test_the_title_and_the_end(composer: Composer) -> None:
    title = shown(composer, Part.TITLE, 0, 0, 1.5, 1.5)
    end = shown(composer, Part.END, 1, 11, 4.4, 0.0)
    for picture in (title, end):
        assert (picture[100:440, 200:760].max(axis=-1) < 90).sum() > 500
        assert near(picture, SEEKER) > 50
        assert near(picture, HIDER) > 50
    assert (shown(composer, Part.END, 1, 11, 0.0, 4.4) == GROUNDS[1]).all()


@pytest.mark.parametrize("size", [(960, 540), (1920, 1080)])
def test_a_layer_is_the_same_picture_at_any_size(size: tuple[int, int]) -> None:
    layer = Overlay(size).panel(100.0, 100.0, 300.0, 200.0).write(120.0, 150.0, "words", 30.0)
    frame = Image.new("RGB", size, (0, 0, 0))
    layer.paste_on(frame)
    small = np.asarray(frame.resize((96, 54), Image.Resampling.BOX), dtype=np.int64)
    assert small[15, 28].min() > 200, "the panel is nearly opaque"
    assert small[5, 5].max() == 0
    edge = np.asarray(frame)[int(size[1] * 150 / 540), int(size[0] * 100 / 960) - 2]
    assert edge.max() == 0
    half = Image.new("RGB", size, (0, 0, 0))
    layer.paste_on(half, 0.5)
    halved = np.asarray(half.resize((96, 54), Image.Resampling.BOX), dtype=np.int64)
    np.testing.assert_allclose(halved, small / 2.0, atol=3.0)


def test_a_film_without_curves_or_numbers_still_has_cards(film: Film) -> None:
    run = RunFacts("run", "self-play", [StageFacts("0%", 0, None, {}, {})] * 2, [])
    scenes = tuple(scene._replace(facts=run.stages[0]) for scene in film.scenes)
    composer = Composer(run, scenes, film.quality)
    for moment in plan_moments(scenes, FPS)[::7]:
        assert composer.compose(moment).size == SIZE


def test_a_missing_frame_is_named_before_anything_is_encoded(film: Film, tmp_path: Path) -> None:
    shot = film.scenes[1].shot
    gone = frame_path(shot.folder, 5)
    data = gone.read_bytes()
    gone.unlink()
    try:
        with pytest.raises(UserError, match=r"frame .*1.frame_000005\.png is missing"):
            encode_film(*film, tmp_path / "film.mp4", lambda *_: None)
    finally:
        gone.write_bytes(data)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_frame_is_named_by_the_worker_that_meets_it(film: Film, tmp_path: Path) -> None:
    broken = frame_path(film.scenes[0].shot.folder, 3)
    data = broken.read_bytes()
    broken.write_bytes(data[:50])
    try:
        with pytest.raises(UserError, match=r"frame_000003\.png is damaged"):
            encode_film(*film, tmp_path / "film.mp4", lambda *_: None)
    finally:
        broken.write_bytes(data)
    assert list(tmp_path.iterdir()) == []
