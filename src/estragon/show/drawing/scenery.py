"""What stands still in a film: the arena from above, its boxes and their shadows."""

from typing import NamedTuple

import numpy as np
from PIL import Image

from estragon.show.drawing.shape import BLACK, Shape, blend
from estragon.tag.layout import Box, Layout
from estragon.tag.rules import Rules

ARENA_SHARE = 0.92
"""How much of a frame's height the arena takes."""
USUAL_PIXELS_PER_M = 30.0
"""What widths and blurs in pixels are meant for; they grow with the view."""

PAGE, WALL, FLOOR, TILE = (244, 242, 237), (92, 88, 82), (252, 251, 248), (240, 238, 232)
SHADOW = (54, 48, 40)
LOW, TALL = (222, 209, 184), (132, 122, 110)
"""Tops of the lowest and the tallest boxes."""
TALL_M = 3.0
AROUND = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
WALL_PX, TILE_M = 7, 2.0
LIGHT = np.array([0.26, 0.36])
"""Where a shadow falls: metres to the right and down for every metre of height."""


class View(NamedTuple):
    """A fixed camera straight above the arena."""

    size: tuple[int, int]
    pixels_per_m: float
    middle: np.ndarray

    @property
    def unit(self) -> float:
        """How much larger than usual everything is."""
        return self.pixels_per_m / USUAL_PIXELS_PER_M

    def at(self, places: np.ndarray) -> np.ndarray:
        """Pixels of places (..., 2), x and z in metres."""
        pixels: np.ndarray = self.middle + places * self.pixels_per_m
        return pixels


def view_of(rules: Rules, size: tuple[int, int]) -> View:
    """The camera that has the whole arena in the middle of a frame."""
    side = ARENA_SHARE * min(size)
    scale = side / max(rules.arena.width_m, rules.arena.depth_m)
    return View(size, scale, np.array(size) / 2.0)


def draw_scenery(layout: Layout, rules: Rules, view: View) -> Image.Image:
    """The picture on which every frame is drawn."""
    picture = Image.new("RGB", view.size, PAGE)
    unit = view.unit
    corner = np.array([rules.arena.width_m, rules.arena.depth_m]) / 2.0
    (left, top), (right, bottom) = view.at(-corner), view.at(corner)
    everywhere = (0.0, 0.0, float(view.size[0]), float(view.size[1]))
    outer = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
    outer += WALL_PX * unit * AROUND
    fallen = outer + np.array([0, 3]) * unit
    Shape(everywhere).polygon(fallen, 0.25).fill(picture, SHADOW, blur=5 * unit)
    Shape(everywhere).polygon(outer).fill(picture, WALL)
    Shape(everywhere).rectangle(left, top, right, bottom).fill(picture, FLOOR)
    _tile(picture, view, corner)
    rim = Shape((left, top, right, bottom)).rectangle(left, top, right, bottom, 0.16)
    rim.rectangle(left + 5 * unit, top + 8 * unit, right, bottom, 0.0)
    rim.fill(picture, SHADOW, blur=4 * unit)
    for box in sorted(layout.boxes, key=lambda box: box.size_m[1]):
        _draw_box(picture, view, box)
    return picture


def footprint(box: Box) -> np.ndarray:
    """The corners of a box from above, x and z: (4, 2)."""
    half = np.array([box.size_m[0], box.size_m[2]]) / 2.0
    corners: np.ndarray = np.array(box.at_m) + half * AROUND
    return corners


def _tile(picture: Image.Image, view: View, corner: np.ndarray) -> None:
    (left, top), (right, bottom) = view.at(-corner), view.at(corner)
    lines = Shape((left, top, right, bottom))
    steps = np.arange(-np.floor(corner.max() / TILE_M), corner.max() / TILE_M) * TILE_M
    half = view.unit / 2.0
    for x, y in view.at(np.stack([steps, steps], axis=1)):
        lines.rectangle(x - half, top, x + half, bottom)
        lines.rectangle(left, y - half, right, y + half)
    lines.fill(picture, TILE)


def _draw_box(picture: Image.Image, view: View, box: Box) -> None:
    height = box.size_m[1]
    corners = view.at(footprint(box))
    thrown = LIGHT * height * view.pixels_per_m
    shadow = Shape.around(np.concatenate([corners, corners + thrown]), 12.0 * view.unit)
    for share in np.linspace(0.0, 1.0, 33):
        shadow.polygon(corners + thrown * share, 0.24)
    shadow.fill(picture, SHADOW, blur=3.0 * view.unit)
    top = blend(LOW, TALL, min(1.0, height / TALL_M) ** 1.5)
    Shape.around(corners).polygon(corners).fill(picture, blend(top, BLACK, 0.22))
    middle = corners.mean(axis=0)
    rim = 3.0 * view.unit
    inset = middle + (corners - middle) * np.maximum(0.0, 1.0 - rim / np.abs(corners - middle))
    Shape.around(corners).polygon(inset).fill(picture, top)
