"""A frame shows who is where, how high, what they see and how long is left."""

import numpy as np
import pytest
from PIL import Image, ImageColor

from estragon.show.film import FPS
from estragon.show.motion import Motion
from estragon.show.palette import HIDER, SEEKER
from estragon.show.scenery import ARENA_TOP, view_of
from estragon.show.top_down import INK, SIZE, TopDown
from estragon.tag.rules import Rules, load_rules
from tests.show.staging import filmed, played, playground


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


@pytest.fixture(scope="module")
def top_down(rules: Rules) -> TopDown:
    return TopDown(rules, playground(rules))


@pytest.fixture(scope="module")
def motion(rules: Rules) -> Motion:
    return filmed(rules, played(rules))


def pixels(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture, dtype=np.int64)


def count(picture: Image.Image, colour: str) -> int:
    """Pixels of exactly this colour."""
    return int((pixels(picture) == ImageColor.getrgb(colour)).all(axis=-1).sum())


def posed(motion: Motion, places: list[tuple[float, float, float]]) -> Motion:
    """The first frame, with the agents at these places and facing along x."""
    facing = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    return motion._replace(positions=np.array([places]), forwards=facing)


def test_cubes_are_where_the_agents_are(rules: Rules, top_down: TopDown, motion: Motion) -> None:
    still = top_down.headed("", "")
    for frame in (0, len(motion.seconds) // 2):
        picture = top_down.draw(still, motion, frame, float(motion.seconds[frame]))
        assert picture.size == SIZE
        for agent, colour in enumerate((SEEKER, HIDER)):
            x, y = view_of(rules).at(motion.positions[frame, agent, ::2]).astype(int)
            patch = pixels(picture)[y - 20 : y + 20, x - 20 : x + 20].reshape(-1, 3)
            assert (patch == ImageColor.getrgb(colour)).all(axis=-1).sum() > 50


def test_the_still_picture_stays_as_it_was(top_down: TopDown, motion: Motion) -> None:
    still = top_down.headed("10%", "after a while")
    before = still.tobytes()
    top_down.draw(still, motion, 0, 0.0, "survived 10 s")
    assert still.tobytes() == before
    assert before != top_down.headed("20%", "after a while").tobytes()


def test_who_jumps_looks_larger(top_down: TopDown, motion: Motion) -> None:
    still = top_down.headed("", "")
    low, high, away = (-8.0, 0.501, 0.0), (-8.0, 2.001, 0.0), (8.0, 0.501, 8.0)
    standing = count(top_down.draw(still, posed(motion, [low, away]), 0, 0.0), SEEKER)
    jumping = count(top_down.draw(still, posed(motion, [high, away]), 0, 0.0), SEEKER)
    assert jumping > 1.1 * standing


def test_sight_is_a_tint_and_is_stronger_on_the_opponent(
    rules: Rules, top_down: TopDown, motion: Motion
) -> None:
    still = top_down.headed("", "")
    frame = int(np.flatnonzero(motion.seen[:, 0])[0])
    blind = motion._replace(seen=np.zeros_like(motion.seen))
    pale = pixels(top_down.draw(still, blind, frame, 0.0))
    strong = pixels(top_down.draw(still, motion, frame, 0.0))
    middle = motion.ray_ends[frame, 0].mean(axis=0)
    x, y = view_of(rules).at((motion.positions[frame, 0, ::2] + middle) / 2.0).astype(int)
    floor = pixels(still)[y, x, 1]
    assert strong[y, x, 1] < pale[y, x, 1] < floor


def test_the_bar_runs_out(top_down: TopDown, motion: Motion) -> None:
    still = top_down.headed("", "")
    lengths = []
    for frame in (0, FPS, 2 * FPS, 3 * FPS):
        picture = pixels(top_down.draw(still, motion, frame, float(motion.seconds[frame])))
        lengths.append(int((picture[700, :560] == INK).all(axis=-1).sum()))
    assert lengths == sorted(lengths, reverse=True)
    np.testing.assert_allclose(np.diff(lengths), -lengths[0] / 10.0, atol=2.0)


def test_the_verdict_has_the_colour_of_who_won(top_down: TopDown, motion: Motion) -> None:
    still = top_down.headed("", "")
    over = motion._replace(tags=[])
    last = len(motion.seconds) - 1
    quiet = pixels(top_down.draw(still, motion, last, 9.0))
    tagged = pixels(top_down.draw(still, motion, last, 9.0, "tagged after 3.4 s"))
    survived = pixels(top_down.draw(still, over, last, 9.0, "survived 10 s"))
    x, y = SIZE[0] // 2, ARENA_TOP + 34
    assert quiet[y, x].min() > max(tagged[y, x].min(), survived[y, x].min())
    assert np.argmax(tagged[y, x]) == 0
    assert np.argmax(survived[y, x]) == 2


def test_tall_boxes_are_darker(rules: Rules, top_down: TopDown) -> None:
    picture = pixels(top_down.headed("", ""))
    shades = {}
    for box in playground(rules).boxes:
        x, y = view_of(rules).at(np.array(box.at_m)).astype(int)
        shades[box.size_m[1]] = picture[y, x].sum()
    assert shades[2.8] < shades[1.1] < picture[90, 40].sum()
