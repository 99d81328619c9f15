"""A sheet of glass over the frames of a film: words, panels and marks, drawn once and laid on."""

import functools
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from PIL import Image

from estragon.show.drawing.lettering import width_of, write
from estragon.show.drawing.palette import ROLES
from estragon.show.drawing.shape import Colour, Shape, rounded_square

DESIGN_HEIGHT = 540.0
"""Places and sizes are given for frames this high, and grow with the frame."""
PAGE, INK, FAINT, TRACK = (250, 249, 246), (38, 36, 34), (112, 107, 100), (222, 218, 210)
PANEL_OPACITY, CORNER = 0.9, 9.0


class _Finished(NamedTuple):
    """The part of a layer on which something is drawn."""

    box: tuple[int, int, int, int]
    colours: Image.Image
    alpha: Image.Image


class Layer:
    """A picture with an opacity, as large as a frame."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.unit = size[1] / DESIGN_HEIGHT
        self.width, self.height = size[0] / self.unit, DESIGN_HEIGHT
        self._picture = Image.new("RGBA", size)

    def panel(
        self, left: float, top: float, right: float, bottom: float, colour: Colour = PAGE
    ) -> Self:
        """A rounded ground to write on."""
        self.shape(
            (left, top, right, bottom),
            lambda shape, box: shape.rounded(*box, CORNER * self.unit, PANEL_OPACITY),
            colour,
        )
        return self

    def pill(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        colour: Colour,
        opacity: float = 1.0,
    ) -> Self:
        """A bar with round ends."""
        self.shape((left, top, right, bottom), lambda shape, box: shape.pill(*box, opacity), colour)
        return self

    def shape(
        self,
        bounds: tuple[float, float, float, float],
        draw: Callable[[Shape, tuple[float, float, float, float]], object],
        colour: Colour,
    ) -> None:
        """Any shape; `draw` gets it and the bounds in pixels."""
        left, top, right, bottom = (self.unit * edge for edge in bounds)
        shape = Shape((left, top, right, bottom))
        draw(shape, (left, top, right, bottom))
        shape.fill(self._picture, colour)

    def line(self, points: np.ndarray, width: float, colour: Colour, opacity: float = 1.0) -> Self:
        """A line with round joints through points (n, 2)."""
        pixels, thick = points * self.unit, width * self.unit
        shape = Shape.around(pixels, thick + 1.0).line(pixels, thick, opacity)
        for x, y in pixels:
            shape.disc(x, y, thick / 2.0, opacity)
        shape.fill(self._picture, colour)
        return self

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> Self:
        """A dot."""
        bounds = (x - radius, y - radius, x + radius, y + radius)
        middle_x, middle_y, wide = x * self.unit, y * self.unit, radius * self.unit
        self.shape(bounds, lambda shape, _: shape.disc(middle_x, middle_y, wide), colour)
        return self

    def write(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        colour: Colour = INK,
        *,
        anchor: str = "ls",
        weight: float = 0.0,
    ) -> Self:
        """A line of text."""
        at = (x * self.unit, y * self.unit)
        write(
            self._picture,
            at,
            text,
            size * self.unit,
            colour,
            anchor=anchor,
            weight=weight * self.unit,
        )
        return self

    def cube(self, x: float, y: float, role: str, side: float = 11.0) -> Self:
        """The mark of a role, around a point."""
        outline = (rounded_square(side) + np.array([x, y])) * self.unit
        Shape.around(outline).polygon(outline).fill(self._picture, ROLES[role])
        return self

    def wide(self, text: str, size: float) -> float:
        """How wide a text will be."""
        return width_of(text, size * self.unit) / self.unit

    def lay_on(self, frame: Image.Image, opacity: float = 1.0) -> None:
        """Put it over a frame (RGB); nothing more may be drawn on it afterwards."""
        if opacity <= 0.0 or self._finished is None:
            return
        box, colours, alpha = self._finished
        if opacity < 1.0:
            alpha = alpha.point([round(value * opacity) for value in range(256)])
        frame.paste(colours, box, alpha)

    @functools.cached_property
    def _finished(self) -> _Finished | None:
        box = self._picture.getbbox()
        if box is None:
            return None
        part = self._picture.crop(box)
        return _Finished(box, part.convert("RGB"), part.getchannel("A"))
