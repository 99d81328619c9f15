"""Shapes: smooth, of the right size and place, also over the picture's edge."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from estragon.show.canvas import (
    BLACK,
    ROLE_COLOURS,
    WHITE,
    Shape,
    blend,
    rounded_square,
    text_width,
    writable,
    write_text,
)

THEME = Path(__file__).parents[2] / "godot/tag/look/tag_theme.tres"
SQUARE = np.array([[10.0, 10.0], [30.0, 10.0], [30.0, 30.0], [10.0, 30.0]])


def darkness(picture: Image.Image) -> np.ndarray:
    """How black each pixel of a picture on white is: (height, width), 0 to 1."""
    return 1.0 - np.asarray(picture.convert("L"), dtype=np.float64) / 255.0


def page() -> Image.Image:
    return Image.new("RGB", (60, 40), WHITE)


def test_a_shape_covers_its_area() -> None:
    for shape, area in (
        (Shape.around(SQUARE).polygon(SQUARE), 400.0),
        (Shape((0, 0, 60, 40)).rectangle(5.5, 5.0, 25.5, 10.0), 100.0),
        (Shape((0, 0, 60, 40)).disc(20.3, 20.7, 10.0), np.pi * 100.0),
        (
            Shape((0, 0, 60, 40)).rectangle(10.0, 10.0, 40.0, 20.0, radius=99.0),
            200.0 + np.pi * 25.0,
        ),
    ):
        picture = page()
        shape.fill(picture, BLACK)
        assert darkness(picture).sum() == pytest.approx(area, rel=0.06)


def test_opacity_and_edges_are_between_black_and_white() -> None:
    picture = page()
    Shape((0, 0, 60, 40)).disc(20.0, 20.0, 10.0, 0.5).fill(picture, BLACK)
    dark = darkness(picture)
    assert dark.max() == pytest.approx(0.5, abs=0.01)
    assert ((dark > 0.02) & (dark < 0.48)).any(), "the edge is smooth"


def test_where_two_overlap_the_last_one_counts() -> None:
    picture = page()
    shape = Shape((0, 0, 60, 40)).disc(20.0, 20.0, 10.0, 0.4).disc(20.0, 20.0, 5.0, 0.0)
    shape.fill(picture, BLACK)
    assert darkness(picture)[20, 20] == 0.0


def test_over_the_edge_of_the_picture() -> None:
    picture = page()
    Shape.around(SQUARE - 20.0).polygon(SQUARE - 20.0).fill(picture, BLACK, blur=1.0)
    assert darkness(picture)[0, 0] > 0.9
    Shape.around(SQUARE + 100.0).polygon(SQUARE + 100.0).fill(picture, BLACK)
    assert darkness(picture)[39, 59] == 0.0


def test_rounded_square_is_as_wide_as_its_side() -> None:
    outline = rounded_square(4.0)
    np.testing.assert_allclose([outline.min(axis=0), outline.max(axis=0)], [[-2, -2], [2, 2]])
    np.testing.assert_allclose(outline.mean(axis=0), 0.0, atol=1e-12)


def test_blend() -> None:
    assert blend(BLACK, WHITE, 0.0) == BLACK
    assert blend(BLACK, WHITE, 1.0) == WHITE
    assert blend((10, 20, 30), (20, 40, 60), 0.5) == (15, 30, 45)


def test_letters_the_typeface_lacks_have_stand_ins() -> None:
    assert writable("10% – Müller × 3 → “it” …") == "10% - Muller x 3 > “it” …"
    assert writable("日本\n") == "???"


def test_a_long_line_is_cut() -> None:
    picture = Image.new("RGB", (300, 40), WHITE)
    write_text(picture, (5, 30), "a very long line " * 10, 20, BLACK, max_width=200.0)
    columns = np.flatnonzero(darkness(picture).any(axis=0))
    assert 150 < columns.max() <= 207
    assert text_width("aa", 20) == pytest.approx(2 * text_width("a", 20), rel=0.1)


def test_the_game_has_the_same_role_colours() -> None:
    colours = dict(
        re.findall(r"^Tag/colors/(\w+) = Color\((.+), 1\)$", THEME.read_text(), re.MULTILINE)
    )
    in_the_game = {
        role: "#" + "".join(f"{round(255 * float(part)):02x}" for part in colours[role].split(", "))
        for role in ROLE_COLOURS
    }
    assert in_the_game == ROLE_COLOURS
