"""The chart of where each role spends its time, with the boxes on top."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import MultipleLocator

from estragon.show.charts.paper import FAINT, FRAME, INK, WIDTH_IN, new_panels, new_sheet
from estragon.show.charts.places import Places
from estragon.show.drawing.palette import ROLES
from estragon.tag.layout import Box

TOLD_APART = 99.7
"""Of all spots, the share in % whose colours differ; the rest is as dark as it gets."""
MATCHES = 100
"""Seconds are those in so many matches."""
SCALE_ROOM_IN, SCALE_IN, TICK_M = 0.62, 0.14, 5.0
BOX, BOX_EDGE = "#8d8981", "#57544e"


class Setting(NamedTuple):
    """Who plays where."""

    boxes: Sequence[Box]
    jump_m: float
    """How high a box may be to be jumped on."""
    where: str
    """Names the layout."""
    who: dict[str, str]
    """Names the players of the roles."""


def draw_places(places: Places, setting: Setting) -> Figure:
    """Both roles side by side, on the same scale."""
    about = [f"seconds per square metre in {MATCHES} matches", f"{setting.where} from above"]
    about.append(f"{places.matches} matches were played")
    if setting.boxes:
        about.append("filled boxes are tall, outlined ones can be jumped on")
    sheet = new_sheet("Where they spend their time", about)
    seconds = [MATCHES * places.seconds(role) for role in range(len(ROLES))]
    most = float(np.percentile(np.stack(seconds), TOLD_APART)) or 1.0
    panels = new_panels(sheet, len(ROLES), titled=True, right_in=SCALE_ROOM_IN)
    for place, role, each in zip(panels, ROLES, seconds, strict=True):
        axes = place.axes
        colours = LinearSegmentedColormap.from_list(role, ["#ffffff", ROLES[role], INK])
        half_x, half_z = places.width_m / 2.0, places.depth_m / 2.0
        sides = (-half_x, half_x, half_z, -half_z)
        image = axes.imshow(each, colours, vmin=0.0, vmax=most, extent=sides)
        image.set_interpolation("bilinear")
        for box in setting.boxes:
            _draw_box(axes, box, tall=box.size_m[1] > setting.jump_m)
        _finish(axes, f"{role.capitalize()}: {setting.who[role]}")
        _draw_scale(sheet.figure, axes, image, capped=bool(each.max() > most))
    return sheet.figure


def _draw_box(axes: Axes, box: Box, *, tall: bool) -> None:
    (x, z), (width, _, depth) = box.at_m, box.size_m
    corner = (x - width / 2.0, z - depth / 2.0)
    face = BOX if tall else "none"
    axes.add_patch(Rectangle(corner, width, depth, facecolor=face, edgecolor=BOX_EDGE, lw=1.2))


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, color=INK, fontsize=13, loc="left", pad=10)
    axes.set_anchor("NW")
    axes.grid(visible=False)
    axes.xaxis.set_major_locator(MultipleLocator(TICK_M))
    axes.yaxis.set_major_locator(MultipleLocator(TICK_M))
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color(FRAME)
    axes.set_xlabel("x (m)", color=FAINT, fontsize=11, labelpad=6)
    axes.set_ylabel("z (m)", color=FAINT, fontsize=11, labelpad=0)


def _draw_scale(figure: Figure, axes: Axes, image: AxesImage, *, capped: bool) -> None:
    """A bar of the colours, right of the panel and as high as it."""
    axes.apply_aspect()
    sides = axes.get_position()
    bar = figure.add_axes((sides.x1 + 0.12 / WIDTH_IN, sides.y0, SCALE_IN / WIDTH_IN, sides.height))
    scale = figure.colorbar(image, cax=bar, extend="max" if capped else "neither")
    scale.outline.set_visible(False)
    bar.tick_params(colors=FAINT, labelsize=10, length=0, pad=5)
    bar.yaxis.set_major_formatter("{x:g} s")
