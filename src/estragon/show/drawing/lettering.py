"""Words on a picture, in the one typeface that comes with Pillow."""

import functools
import unicodedata

from PIL import Image, ImageDraw, ImageFont

from estragon.show.drawing.shape import Colour

ELLIPSIS = "…"
LONGEST = 400
"""Letters; a line of more would leave any picture."""
STAND_INS = str.maketrans({"–": "-", "—": "-", "−": "-", "×": "x", "→": ">", "’": "'", "ß": "ss"})
"""What the typeface lacks, and what is written instead."""


def write(
    picture: Image.Image,
    at: tuple[float, float],
    text: str,
    size: float,
    colour: Colour,
    *,
    anchor: str = "ls",
    weight: float = 0.0,
    widest: float | None = None,
) -> None:
    """Write one line; `anchor` as Pillow has it, `widest` cuts what would be longer."""
    text = writable(text[:LONGEST])
    typeface = _typeface(size)
    if widest is not None and typeface.getlength(text) > widest:
        while text and typeface.getlength(text + ELLIPSIS) > widest:
            text = text[:-1]
        text = text.rstrip() + ELLIPSIS
    ImageDraw.Draw(picture).text(
        at, text, fill=colour, font=typeface, anchor=anchor, stroke_width=weight
    )


def width_of(text: str, size: float) -> float:
    """How wide a line will be, in pixels."""
    return float(_typeface(size).getlength(writable(text[:LONGEST])))


def writable(text: str) -> str:
    """The text in letters the typeface has: without accents, anything unknown as a "?"."""
    plain = unicodedata.normalize("NFKD", text.translate(STAND_INS).replace(ELLIPSIS, "\0"))
    letters = [c for c in plain if not unicodedata.combining(c)]
    shown = "".join(c if " " <= c <= "~" or c in "\0·“”" else "?" for c in letters)
    return shown.replace("\0", ELLIPSIS)


@functools.cache
def _typeface(size: float) -> ImageFont.FreeTypeFont:
    typeface = ImageFont.load_default(size=size)
    if not isinstance(typeface, ImageFont.FreeTypeFont):
        raise TypeError("this Pillow was built without FreeType")
    return typeface
