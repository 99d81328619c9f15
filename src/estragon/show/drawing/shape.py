"""Smooth shapes on a picture: drawn several times too large, reduced, and poured with colour."""

from collections.abc import Callable
from typing import Self

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

RGB = tuple[int, int, int]
Colour = str | RGB
BLACK, WHITE = (0, 0, 0), (255, 255, 255)


class Shape:
    """A part of a picture to fill with one colour; its edges are smooth.

    Places are in pixels of the picture. Where shapes overlap within one `Shape`, the last counts,
    so that a line with joints has no blots where it is translucent.

    Args:
        bounds: left, top, right and bottom of what may be touched.
        samples: how many times larger it is drawn before it is reduced.
    """

    def __init__(self, bounds: tuple[float, float, float, float], samples: int = 4) -> None:
        self._left, self._top = int(np.floor(bounds[0])), int(np.floor(bounds[1]))
        width = max(1, int(np.ceil(bounds[2])) - self._left)
        height = max(1, int(np.ceil(bounds[3])) - self._top)
        self._samples = samples
        self._large = Image.new("L", (width * samples, height * samples))
        self._draw = ImageDraw.Draw(self._large)

    @classmethod
    def around(cls, points: np.ndarray, margin: float = 1.0, samples: int = 4) -> Self:
        """A shape with room for points (n, 2)."""
        (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
        bounds = (left - margin, top - margin, right + margin, bottom + margin)
        return cls(bounds, samples)

    def polygon(self, points: np.ndarray, opacity: float = 1.0) -> Self:
        """The inside of a line around points (n, 2)."""
        self._draw.polygon(self._placed(points), fill=round(255 * opacity))
        return self

    def rectangle(
        self, left: float, top: float, right: float, bottom: float, opacity: float = 1.0
    ) -> Self:
        """An upright rectangle."""
        self._draw.rectangle(self._box(left, top, right, bottom), fill=round(255 * opacity))
        return self

    def pill(
        self, left: float, top: float, right: float, bottom: float, opacity: float = 1.0
    ) -> Self:
        """A rectangle whose shorter sides are half circles."""
        radius = min(right - left, bottom - top) / 2.0
        return self.rounded(left, top, right, bottom, radius, opacity)

    def rounded(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        radius: float,
        opacity: float = 1.0,
    ) -> Self:
        """A rectangle with round corners."""
        box = self._box(left, top, right, bottom)
        self._draw.rounded_rectangle(box, radius * self._samples, fill=round(255 * opacity))
        return self

    def disc(self, x: float, y: float, radius: float, opacity: float = 1.0) -> Self:
        """A filled circle."""
        box = self._box(x - radius, y - radius, x + radius, y + radius)
        self._draw.ellipse(box, fill=round(255 * opacity))
        return self

    def line(self, points: np.ndarray, width: float, opacity: float = 1.0) -> Self:
        """A line through points (n, 2)."""
        pixels = max(1, round(width * self._samples))
        self._draw.line(self._placed(points), fill=round(255 * opacity), width=pixels)
        return self

    def fill(
        self,
        picture: Image.Image,
        colour: Colour,
        *,
        blur: float = 0.0,
        fade: Callable[[int, int, tuple[int, int]], Image.Image] | None = None,
    ) -> None:
        """Pour the colour.

        Args:
            picture: RGB.
            colour: anything Pillow understands.
            blur: softens the edge, in pixels.
            fade: gives for left, top and size a picture ("L") that takes away from the opacity.
        """
        mask = self._large.reduce(self._samples)
        if blur:
            mask = mask.filter(ImageFilter.GaussianBlur(blur))
        if fade is not None:
            mask = ImageChops.multiply(mask, fade(self._left, self._top, mask.size))
        box = (self._left, self._top, self._left + mask.width, self._top + mask.height)
        picture.paste(colour, box, mask)

    def _box(
        self, left: float, top: float, right: float, bottom: float
    ) -> tuple[float, float, float, float]:
        """A box on the large picture; Pillow draws the last pixel as well, hence the one less."""
        x, y, times = self._left, self._top, self._samples
        across, down = (right - x) * times - 1.0, (bottom - y) * times - 1.0
        near_x, near_y = (left - x) * times, (top - y) * times
        return near_x, near_y, max(near_x, across), max(near_y, down)

    def _placed(self, points: np.ndarray) -> list[float]:
        placed = (points - (self._left, self._top)) * self._samples
        flat: list[float] = placed.ravel().tolist()
        return flat


def blend(one: RGB, other: RGB, share: float) -> RGB:
    """A colour between two; `share` is how much there is of the other."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def rounded_square(side: float) -> np.ndarray:
    """The outline of a square around the origin with round corners: (n, 2)."""
    outline: np.ndarray = _UNIT_SQUARE * side
    return outline


def _unit_square(radius: float) -> np.ndarray:
    turns = np.radians(np.arange(0.0, 91.0, 15.0))
    arc = np.stack([np.cos(turns), np.sin(turns)], axis=1) * radius + (0.5 - radius)
    quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    sides = [arc]
    for _ in range(3):
        sides.append(sides[-1] @ quarter)
    return np.concatenate(sides)


_UNIT_SQUARE = _unit_square(0.2)
