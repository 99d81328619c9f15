"""Labels that never lie over one another, words that fit, and panels enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estragon.show.charts.paper import (
    DPI,
    WIDTH_IN,
    grid_of,
    key_below,
    new_panels,
    new_sheet,
    spread,
)
from estragon.support.errors import UserError

SHARES = st.lists(st.floats(-1.0, 2.0), max_size=9)


@given(SHARES, st.floats(0.001, 0.2))
def test_labels_keep_their_order_and_their_distance(wanted: list[float], gap: float) -> None:
    placed = spread(wanted, gap)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(np.array(placed)[order]) >= gap - 1e-9).all()
    assert np.mean(placed or [0.0]) == pytest.approx(np.mean(wanted or [0.0]), abs=1e-9)


def test_labels_that_are_apart_stay_where_they_are() -> None:
    assert spread([0.9, 0.1, 0.5], 0.05) == pytest.approx([0.9, 0.1, 0.5])


def test_words_above_a_chart_fit_its_width_and_stay_above_the_panels() -> None:
    sheet = new_sheet("Title", [f"part {number} of a long subtitle" for number in range(12)])
    key_below(sheet, {f"a run with a rather long name {number}": "#000000" for number in range(9)})
    (place,) = new_panels(sheet, titled=True)
    texts = sheet.figure.texts
    assert len(texts) > 12
    for text in texts:
        extent = text.get_window_extent()
        assert 0.0 <= extent.x0 < extent.x1 <= WIDTH_IN * DPI, text.get_text()
        assert extent.y0 > place.axes.get_window_extent().y1, text.get_text()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 11, 18])
def test_panels_are_on_the_sheet_and_apart(count: int) -> None:
    sheet = new_sheet("Title", ["subtitle"], grid_of(count)[0])
    places = new_panels(sheet, count, titled=True, right_in=0.5)
    boxes = [place.axes.get_position() for place in places]
    assert len(boxes) == count
    for number, box in enumerate(boxes):
        assert 0.0 < box.x0 < box.x1 < 1.0
        assert 0.0 < box.y0 < box.y1 < 1.0
        assert not any(box.overlaps(other) for other in boxes[:number])
    assert sum(place.is_lowest for place in places) == min(count, grid_of(count)[1])


def test_too_many_panels_are_refused() -> None:
    with pytest.raises(UserError, match="19 panels"):
        grid_of(19)
