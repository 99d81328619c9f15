"""One agent from above: a cube with two eyes, its shadow, its trail and what it sees."""

import functools
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageColor

from estragon.show.drawing.palette import HIDER, SEEKER
from estragon.show.drawing.scenery import LIGHT, SHADOW, View
from estragon.show.drawing.shape import BLACK, RGB, WHITE, Shape, blend, rounded_square

CAMERA_M = 11.0
"""How high the camera seems to hang: what is nearer to it looks larger."""
TRAIL_WIDTH_M, TRAIL_OPACITY = 0.5, 0.45
GAZE_OPACITY, SEEING_OPACITY = 0.3, 0.55
EYES = np.array([[0.22, -0.22], [0.22, 0.22]])
"""Ahead and to the right of the middle of a cube of size 1."""
PUPIL = (30, 30, 36)


class Cube(NamedTuple):
    """How an agent looks in one frame."""

    place: np.ndarray
    """x and z, m."""
    forward: np.ndarray
    gaze: np.ndarray
    """Where the pupils point: at the opponent, if it is seen, else ahead."""
    height_m: float
    """Of its feet above the floor."""
    drop_m: float
    """Of its feet above what is under it."""
    is_seeker: bool
    sees: bool

    @property
    def colour(self) -> RGB:
        """The colour of its role."""
        return _rgb(SEEKER if self.is_seeker else HIDER)


def draw_trail(picture: Image.Image, view: View, cube: Cube, walked: np.ndarray) -> None:
    """The way it came, places (n, 2) from old to new, fading with age."""
    if len(walked) < 2:
        return
    points = view.at(walked)
    width = TRAIL_WIDTH_M * view.pixels_per_m
    trail = Shape.around(points, width, samples=2)
    for step in range(1, len(points)):
        share = step / (len(points) - 1)
        thick, opacity = width * (0.3 + 0.7 * share), TRAIL_OPACITY * share**1.5
        trail.line(points[step - 1 : step + 1], thick, opacity)
        x, y = points[step]
        trail.disc(x, y, thick / 2.0, opacity)
    trail.fill(picture, cube.colour)


def draw_sight(
    picture: Image.Image,
    view: View,
    cube: Cube,
    ray_ends: np.ndarray,
    screens: list[np.ndarray],
    range_m: float,
) -> None:
    """The area its rays sweep, stronger while it sees its opponent.

    Args:
        ray_ends: (rays, 2) x and z of where each ray ends.
        screens: corners (4, 2) of the boxes it cannot look over. A straight line from one ray's
            end to the next would cut across their corners.
        range_m: where sight ends.
    """
    apex = view.at(cube.place)
    outline = np.concatenate([apex[None], view.at(ray_ends)])
    sight = Shape.around(outline, samples=2)
    sight.polygon(outline, SEEING_OPACITY if cube.sees else GAZE_OPACITY)
    for corners in screens:
        sight.polygon(view.at(corners), 0.0)
    reach = round(range_m * view.pixels_per_m)
    falloff = _falloff(reach)

    def fade(left: int, top: int, size: tuple[int, int]) -> Image.Image:
        x, y = left - round(apex[0]) + reach, top - round(apex[1]) + reach
        return falloff.crop((x, y, x + size[0], y + size[1]))

    sight.fill(picture, cube.colour, fade=fade)


def draw_shadow(picture: Image.Image, view: View, cube: Cube, size_m: float) -> None:
    """Its shadow, farther off and softer the higher it is above what it falls on."""
    fall = LIGHT * (cube.drop_m + 0.35 * size_m)
    outline = view.at(cube.place + fall + _turned(rounded_square(size_m * 0.98), cube.forward))
    soft = view.unit * (2.0 + 3.0 * cube.drop_m)
    opacity = 0.34 / (1.0 + 0.5 * cube.drop_m)
    shadow = Shape.around(outline, 3.0 * soft).polygon(outline, opacity)
    shadow.fill(picture, SHADOW, blur=soft)


def draw_cube(picture: Image.Image, view: View, cube: Cube, size_m: float) -> None:
    """The cube itself, larger the higher it is."""
    size = size_m * CAMERA_M / (CAMERA_M - min(cube.height_m, 0.6 * CAMERA_M))

    def patch(outline: np.ndarray, colour: RGB) -> None:
        points = view.at(cube.place + _turned(outline, cube.forward))
        Shape.around(points).polygon(points).fill(picture, colour)

    patch(rounded_square(size), blend(cube.colour, BLACK, 0.32))
    patch(rounded_square(size * 0.9), cube.colour)
    top = rounded_square(size * 0.74) * (0.9, 1.0) - (0.045 * size, 0.0)
    patch(top, blend(cube.colour, WHITE, 0.16))
    eyes = cube.place + _turned(EYES * size, cube.forward)
    _draw_discs(picture, view, eyes, 0.165 * size, WHITE)
    _draw_discs(picture, view, eyes + cube.gaze * 0.07 * size, 0.085 * size, PUPIL)


def _draw_discs(
    picture: Image.Image, view: View, places: np.ndarray, radius_m: float, colour: RGB
) -> None:
    points, radius = view.at(places), radius_m * view.pixels_per_m
    shape = Shape.around(points, radius + 1.0)
    for x, y in points:
        shape.disc(x, y, radius)
    shape.fill(picture, colour)


def _turned(points: np.ndarray, forward: np.ndarray) -> np.ndarray:
    """Points (..., 2), ahead and to the right of an agent, as x and z offsets."""
    ahead, aside = forward
    turned: np.ndarray = points @ np.array([[ahead, aside], [-aside, ahead]])
    return turned


@functools.cache
def _falloff(reach: int) -> Image.Image:
    """How sight fades from the middle of a square to its sides, `reach` pixels away."""
    away = np.arange(-reach, reach + 1) / reach
    distance = np.minimum(1.0, np.sqrt(away[:, None] ** 2 + away[None, :] ** 2))
    return Image.fromarray((255 * (1.0 - 0.82 * distance**0.8)).astype(np.uint8))


@functools.cache
def _rgb(colour: str) -> RGB:
    red, green, blue = ImageColor.getrgb(colour)[:3]
    return red, green, blue
