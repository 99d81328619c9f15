"""Smooth shapes and text on Pillow images, and the colours of the roles."""

import functools
import unicodedata
from collections.abc import Callable
from typing import Self

import numpy as np
from PIL import Image, ImageChops, ImageColor, ImageDraw, ImageFilter, ImageFont

RGB = tuple[int, int, int]
Colour = str | RGB
SEEKER, HIDER = "#d1495b", "#2e6f95"
ROLE_COLOURS = {"seeker": SEEKER, "hider": HIDER}
"""The same in every chart, film and in the game (tag_theme.tres)."""
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
INK = (38, 36, 34)

ELLIPSIS = "…"
MAX_LETTERS = 400
SUBSTITUTES = str.maketrans({"–": "-", "—": "-", "−": "-", "×": "x", "→": ">", "’": "'", "ß": "ss"})
"""For characters that Pillow's built-in font lacks."""


class Shape:
    """An area to fill with one colour, antialiased: drawn several times too large, then reduced.

    Coordinates are pixels of the image. Where parts of one `Shape` overlap, the last one counts, so
    that a translucent line has no darker joints. `bounds` are left, top, right and bottom of the
    area that may be touched; `samples` is the factor of the supersampling.
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
        """The polygon with corners (n, 2)."""
        self._draw.polygon(self._scaled(points), fill=round(255 * opacity))
        return self

    def rectangle(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        opacity: float = 1.0,
        radius: float = 0.0,
    ) -> Self:
        """A rectangle; `radius` rounds its corners, up to half circles at the shorter sides."""
        radius = min(radius, (right - left) / 2.0, (bottom - top) / 2.0) * self._samples
        box = self._box(left, top, right, bottom)
        self._draw.rounded_rectangle(box, radius, fill=round(255 * opacity))
        return self

    def disc(self, x: float, y: float, radius: float, opacity: float = 1.0) -> Self:
        """A filled circle."""
        box = self._box(x - radius, y - radius, x + radius, y + radius)
        self._draw.ellipse(box, fill=round(255 * opacity))
        return self

    def line(self, points: np.ndarray, width: float, opacity: float = 1.0) -> Self:
        """A line through points (n, 2)."""
        pixels = max(1, round(width * self._samples))
        self._draw.line(self._scaled(points), fill=round(255 * opacity), width=pixels)
        return self

    def fill(
        self,
        image: Image.Image,
        colour: Colour,
        *,
        blur: float = 0.0,
        fade: Callable[[int, int, tuple[int, int]], Image.Image] | None = None,
    ) -> None:
        """Paint the shape on an RGB or RGBA image.

        `blur` softens the edge by so many pixels; `fade` returns for left, top and size an image
        ("L") that scales the opacity.
        """
        mask = self._large.reduce(self._samples)
        if blur:
            mask = mask.filter(ImageFilter.GaussianBlur(blur))
        if fade is not None:
            mask = ImageChops.multiply(mask, fade(self._left, self._top, mask.size))
        box = (self._left, self._top, self._left + mask.width, self._top + mask.height)
        image.paste(colour, box, mask)

    def _box(
        self, left: float, top: float, right: float, bottom: float
    ) -> tuple[float, float, float, float]:
        """A box on the large image; Pillow includes the last pixel, hence the one less."""
        (x0, y0), (x1, y1) = (
            ((x - self._left) * self._samples, (y - self._top) * self._samples)
            for x, y in ((left, top), (right, bottom))
        )
        return x0, y0, max(x0, x1 - 1.0), max(y0, y1 - 1.0)

    def _scaled(self, points: np.ndarray) -> list[float]:
        return list(((points - (self._left, self._top)) * self._samples).ravel())


def blend(one: RGB, other: RGB, share: float) -> RGB:
    """A colour between two; `share` is the share of the other."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


@functools.cache
def rgb(colour: str) -> RGB:
    """The numbers of a colour."""
    red, green, blue = ImageColor.getrgb(colour)[:3]
    return red, green, blue


def rounded_square(side: float) -> np.ndarray:
    """The outline of a square around the origin with round corners: (n, 2)."""
    outline: np.ndarray = _UNIT_SQUARE * side
    return outline


def _unit_square(radius: float) -> np.ndarray:
    angles = np.radians(np.arange(0.0, 91.0, 15.0))
    arc = np.stack([np.cos(angles), np.sin(angles)], axis=1) * radius + (0.5 - radius)
    quarter_turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    sides = [arc]
    for _ in range(3):
        sides.append(sides[-1] @ quarter_turn)
    return np.concatenate(sides)


_UNIT_SQUARE = _unit_square(0.2)


def write_text(
    image: Image.Image,
    at: tuple[float, float],
    text: str,
    size: float,
    colour: Colour,
    *,
    anchor: str = "ls",
    weight: float = 0.0,
    max_width: float | None = None,
) -> None:
    """Write one line; `anchor` as in Pillow, `max_width` shortens a longer one with an ellipsis."""
    text, font = writable(text), _font(size)
    if max_width is not None and font.getlength(text) > max_width:
        while text and font.getlength(text + ELLIPSIS) > max_width:
            text = text[:-1]
        text = text.rstrip() + ELLIPSIS
    ImageDraw.Draw(image).text(at, text, fill=colour, font=font, anchor=anchor, stroke_width=weight)


def text_width(text: str, size: float) -> float:
    """The width of a line, in pixels."""
    return float(_font(size).getlength(writable(text)))


def writable(text: str) -> str:
    """The text in characters the font has: without accents, anything unknown as a "?"."""
    text = text[:MAX_LETTERS].translate(SUBSTITUTES).replace(ELLIPSIS, "\0")
    letters = [c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)]
    shown = "".join(c if " " <= c <= "~" or c in "\0·“”" else "?" for c in letters)
    return shown.replace("\0", ELLIPSIS)


@functools.cache
def _font(size: float) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size=size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise TypeError("this Pillow was built without FreeType")
    return font
