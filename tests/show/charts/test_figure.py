"""Labels that never lie over one another, text that fits, and panels enough."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.transforms import BboxBase

from estragon.show.charts.figure import (
    DPI,
    WIDTH_IN,
    EndLabel,
    is_lowest,
    label_axes,
    label_ends,
    new_figure,
    place_labels,
    spread,
)
from estragon.support.errors import UserError


def extent_of(axes: Axes) -> BboxBase:
    """All that belongs to a panel."""
    box = axes.get_tightbbox()
    assert box is not None
    return box


SHARES = st.lists(st.floats(-1.0, 2.0), max_size=9)


@settings(max_examples=50)
@given(SHARES, st.floats(0.001, 0.2))
def test_labels_keep_their_order_and_their_distance(wanted: list[float], gap: float) -> None:
    placed = spread(wanted, gap)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(np.array(placed)[order]) >= gap - 1e-9).all()
    assert np.mean(placed or [0.0]) == pytest.approx(np.mean(wanted or [0.0]), abs=1e-9)


def test_labels_that_are_apart_stay_where_they_are() -> None:
    assert spread([0.9, 0.1, 0.5], 0.05) == pytest.approx([0.9, 0.1, 0.5])


def test_text_above_a_chart_fits_its_width_and_stays_above_the_panels() -> None:
    figure, (axes,) = new_figure(
        "Title",
        [f"part {number} of a long subtitle" for number in range(12)],
        legend={f"a run with a rather long name {number}": "#000000" for number in range(9)},
        legend_below=True,
    )
    label_axes(axes, title="Panel")
    figure.draw_without_rendering()
    texts = figure.texts
    assert len(texts) > 3
    (legend,) = figure.legends
    heights = [text.get_window_extent().y0 for text in texts]
    assert legend.get_window_extent().y1 < min(heights), "below the subtitle"
    for artist in (*texts, *legend.get_texts()):
        extent = artist.get_window_extent()
        assert 0.0 <= extent.x0 < extent.x1 <= WIDTH_IN * DPI, artist.get_text()
        assert extent.y0 > extent_of(axes).y1, artist.get_text()


@pytest.mark.parametrize("count", [1, 4, 5])
def test_panels_and_their_labels_are_on_the_figure_and_apart(count: int) -> None:
    figure, panels = new_figure("Title", ["subtitle"], count)
    assert len(panels) == count
    for axes in panels:
        label_axes(axes, title="Panel", x="steps", y="reward")
        label_ends(figure, axes, [EndLabel(0.5, "a line", "#000000")] * 2)
    place_labels(figure)
    width, height = figure.get_size_inches() * DPI
    boxes = [extent_of(axes) for axes in panels]
    for number, box in enumerate(boxes):
        assert 0.0 < box.x0 < box.x1 < width
        assert 0.0 < box.y0 < box.y1 < height
        assert not any(box.overlaps(other) for other in boxes[:number])
    assert sum(is_lowest(axes) for axes in panels) == min(count, 2 if count == 4 else 3)


def test_too_many_panels_are_refused() -> None:
    with pytest.raises(UserError, match="19 panels"):
        new_figure("Title", ["subtitle"], 19)
