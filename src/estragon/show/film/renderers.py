"""Who draws the matches of a film: Godot, or the embedded top-down view."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from estragon.show.film.plan import Quality
from estragon.show.film.shots import Shot
from estragon.show.film.top_down_renderer import TopDownRenderer
from estragon.support.errors import UserError

RendererChoice = Literal["auto", "godot", "top-down"]


class Renderer(Protocol):
    """Draws matches into frames; what is there already is not drawn again."""

    name: str

    def fingerprint(self) -> str:
        """Changes when its pictures might."""
        ...

    def draw(
        self, shots: Sequence[Shot], quality: Quality, tell: Callable[[int, int], None]
    ) -> None:
        """Draw every frame that is missing; `tell` hears how many are drawn, and of how many."""
        ...


def choose_renderer(wanted: RendererChoice, say: Callable[[str], None]) -> Renderer:
    """The renderer that was asked for, or else the best that works here."""
    if wanted == "top-down":
        return TopDownRenderer()
    from estragon.show.film.godot_renderer import GodotRenderer

    if wanted == "godot":
        return GodotRenderer()
    if obstacle := _why_not_godot():
        say(f"drawing from above, without Godot: {obstacle}")
        return TopDownRenderer()
    return GodotRenderer()


def _why_not_godot() -> str:
    from estragon.godot.display import has_display, require_xvfb
    from estragon.godot.find import find_godot

    try:
        find_godot()
        if not has_display():
            require_xvfb()
    except UserError as error:
        return str(error)
    return ""
