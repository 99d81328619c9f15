"""What the tabs of the page share: their base, messages, cards, and the log of a session."""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from nicegui import ui

from estragon.controller.project import Project
from estragon.controller.sessions import Session, Sessions, read_log
from estragon.support.errors import UserError

if TYPE_CHECKING:
    from estragon.controller.page import Page

MOST_LINES = 400
LINES = {"lineStyle": {"color": "rgba(128, 128, 128, 0.25)"}}
"""Of a grid."""


class Tab:
    """One tab of a page, for one project; made when it is first shown."""

    def __init__(self, page: "Page") -> None:
        self.page, self.state = page, page.state

    @functools.cached_property
    def project(self) -> Project:
        """The project that it shows; without one, the page makes no tab but Home."""
        if self.page.project is None:
            raise UserError("create or open a project in Home first")
        return self.page.project

    @functools.cached_property
    def sessions(self) -> Sessions:
        """The sessions of the project."""
        return self.state.sessions(self.project)

    def build(self) -> None:
        """Create its elements."""

    async def refresh(self) -> None:
        """Called about once per second while it is shown."""

    def key(self, name: str) -> None:
        """A key was pressed while it is shown."""


class SessionLog:
    """The log of one session; it grows while the session runs."""

    def __init__(self, sessions: Sessions, height: str) -> None:
        self.session: Session | None = None
        self._sessions = sessions
        self._offset: int | None = None
        self._log = ui.log(max_lines=MOST_LINES).classes(f"w-full log {height}")

    def follow(self, session: Session) -> None:
        """Show this session's log from now on."""
        self.session, self._offset = session, None
        self._log.clear()

    async def refresh(self) -> None:
        """Add what was written meanwhile."""
        if (session := self.session) is None:
            return
        path = self._sessions.log(session)
        lines, offset = await asyncio.to_thread(read_log, path, self._offset)
        if session is self.session:
            self._offset = offset
            for line in lines[-MOST_LINES:]:
                self._log.push(line)


@contextlib.contextmanager
def problems_shown() -> Iterator[None]:
    """Show a UserError as a message, instead of failing."""
    try:
        yield
    except UserError as error:
        with contextlib.suppress(RuntimeError):  # the page was closed meanwhile
            ui.notify(str(error), type="negative", multi_line=True, close_button="OK", timeout=0)


def button(text: str, action: Callable[..., Any], look: str = "flat dense") -> ui.button:
    """A button; `look` is Quasar's."""
    return ui.button(text, on_click=action).props(look)


def empty_state(text: str, what_next: str) -> None:
    """What to say where there is nothing yet."""
    with ui.column().classes("w-full items-center py-10 gap-1 opacity-80"):
        ui.label(text).classes("text-lg")
        ui.label(what_next)


def card(title: str) -> ui.card:
    """A card with a heading."""
    with ui.card().classes("w-full gap-2") as made:
        ui.label(title).classes("text-base font-medium")
    return made


def chart(**options: Any) -> dict[str, Any]:
    """Options of a chart in light and dark."""
    grey = {"color": "#888"}
    return {
        "animation": False,
        "textStyle": grey,
        "legend": {"type": "scroll", "top": 0, "right": 140, "textStyle": grey},
        # Drawn on the canvas: what a run calls itself is never markup.
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        **options,
    }
