"""The page: header, tabs, keys and theme. Each tab is a file of its own."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from nicegui import app, ui
from nicegui.events import KeyEventArguments

from estragon.controller.project import Project
from estragon.controller.state import State
from estragon.support.errors import UserError

TICK_SEC = 1.0
KEYS = {
    "1 – 5": "the tabs: Home, Train, Metrics, Matches, Export",
    "p": "Home: check the Python environment and Godot",
    "d": "Train: run the demo",
    "s": "Train: start the run of the form",
    "x": "Train: stop what runs",
    "l": "light or dark",
    "?": "these keys",
}
STYLE = """
.nicegui-content { padding: 0.75rem; max-width: 80rem; margin: auto; }
.q-card { box-shadow: none; border: 1px solid rgba(128, 128, 128, 0.3); }
.q-btn { text-transform: none; }
.nicegui-log.log * { white-space: pre-wrap; overflow-wrap: anywhere; }
.body--dark .nicegui-content { --q-primary: #45a079; }
.log { font: 12px/1.5 monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
"""


class Tab(Protocol):
    """One tab of a page."""

    def build(self) -> None:
        """Create its elements."""

    async def refresh(self) -> None:
        """Called about once per second while it is shown."""

    def key(self, name: str) -> None:
        """A key was pressed while it is shown."""


class Page:
    """One open page; what it shows and does is kept by `State`."""

    def __init__(self, state: State, tabs: "Tabs") -> None:
        self.state = state
        self._makers = tabs
        self._tabs: dict[str, Tab] = {}
        self._refreshing = False

    @property
    def project(self) -> Project | None:
        """The project in use."""
        return self.state.workspace.current()

    def build(self) -> None:
        """Create everything."""
        settings = self.state.workspace.settings()
        ui.add_css(STYLE)
        ui.colors(primary="#2f6f4f", secondary="#4d7ea8", accent="#b0413e")
        self._dark = ui.dark_mode(value=bool(settings.get("dark", False)))
        shown = settings.get("tab")
        shown = shown if shown in self._makers else next(iter(self._makers))
        with ui.header(elevated=False).classes("items-center gap-2 px-3 py-1"):
            ui.label("Estragon").classes("text-lg font-medium")
            self._title = ui.label().classes("opacity-80 ellipsis").style("max-width: 14rem")
            ui.space()
            with ui.tabs().props("dense mobile-arrows no-caps") as self._bar:
                for name, (icon, _) in self._makers.items():
                    ui.tab(name, icon=icon).classes("px-2")
            self._bar.value = shown
            button = ui.button(icon="contrast", on_click=self.toggle_theme)
            button.props("flat round dense color=white aria-label='light or dark'")
            button = ui.button(icon="keyboard", on_click=self._show_keys)
            button.props("flat round dense color=white aria-label=keys")
        self._problem = ui.label().classes("text-negative w-full").props("role=alert")
        self._panels = ui.tab_panels(self._bar, value=shown).classes("w-full bg-transparent")
        self._panels.props("keep-alive")
        with self._panels:
            for name in self._makers:
                with ui.tab_panel(name).classes("p-0") as panel:
                    panel.props(f"data-tab={name}")
        self._bar.on_value_change(lambda change: self.show(change.value))
        self._keyboard = ui.keyboard(on_key=self._on_key, ignore=["input", "textarea"])
        self._help = self._build_help()
        self._unseen = ui.element().classes("hidden")
        self.show(shown)
        ui.timer(TICK_SEC, self._refresh)
        ui.timer(TICK_SEC / 2, self._prefetch, once=True)

    def show(self, name: str) -> None:
        """Switch to a tab, building it the first time."""
        if name not in self._makers:
            return
        if name not in self._tabs:
            panel = next(each for each in self._panels if each.props.get("name") == name)
            self._tabs[name] = self._makers[name][1](self)
            with panel:
                self._tabs[name].build()
        self._bar.value = name
        with self._unseen:  # in the panels, it would make them begin anew
            ui.timer(0.0, self._refresh, once=True)
        if self.state.workspace.settings().get("tab") != name:
            with problems_shown():
                self.state.workspace.remember(tab=name)

    def is_shown(self, tab: Tab) -> bool:
        """Whether a tab is the one that is shown."""
        return self._tabs.get(self._bar.value) is tab

    def rebuild(self) -> None:
        """Build all tabs anew, for another project."""
        current = self._bar.value
        for panel in self._panels:
            panel.clear()
        self._tabs.clear()
        self.show(current)

    def toggle_theme(self) -> None:
        """Light or dark, for all pages from now on."""
        self._dark.value = not self._dark.value
        with problems_shown():
            self.state.workspace.remember(dark=bool(self._dark.value))

    def _prefetch(self) -> None:
        """Load the library of the charts while nobody waits for it."""
        with self._unseen:
            ui.echart({})

    async def _refresh(self) -> None:
        if self._refreshing:
            return
        self._refreshing = True
        try:
            project = self.project
            self._title.text = "" if project is None else f"· {_name(project)}"
            self._problem.text = self.state.problem
            self._problem.set_visibility(bool(self.state.problem))
            await self._tabs[self._bar.value].refresh()
        except (UserError, OSError) as error:
            self._problem.text = str(error)
            self._problem.set_visibility(True)
        finally:
            self._refreshing = False

    def _on_key(self, event: KeyEventArguments) -> None:
        if not event.action.keydown or event.action.repeat:
            return
        if event.modifiers.ctrl or event.modifiers.alt or event.modifiers.meta:
            return
        name = str(event.key)
        if name == "?":
            self._show_keys()
        elif name == "l":
            self.toggle_theme()
        elif name.isdecimal() and 1 <= int(name) <= len(self._makers):
            self.show(list(self._makers)[int(name) - 1])
        else:
            self._tabs[self._bar.value].key(name)

    def _show_keys(self) -> None:
        self._help.open()

    def _build_help(self) -> ui.dialog:
        with ui.dialog() as dialog, ui.card():
            ui.label("Keys").classes("text-lg")
            with ui.grid(columns="auto 1fr").classes("gap-x-6 gap-y-1"):
                for key, what in KEYS.items():
                    ui.label(key).classes("font-mono")
                    ui.label(what)
        return dialog


Tabs = dict[str, tuple[str, Callable[[Page], Tab]]]
"""By name, the icon of a tab and what makes it."""


@contextlib.contextmanager
def problems_shown() -> Iterator[None]:
    """Show a UserError as a message, instead of failing."""
    try:
        yield
    except UserError as error:
        with contextlib.suppress(RuntimeError):  # the page was closed meanwhile
            ui.notify(str(error), type="negative", multi_line=True, close_button="OK", timeout=0)


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


def _name(project: Project) -> str:
    try:
        return project.file.name
    except UserError:
        return project.path.name


def serve(
    state: State,
    tabs: Tabs,
    port: int,
    guard: Any,
    on_start: Callable[[], None],
) -> None:
    """Serve the page on this machine until the process ends; `guard` makes the middleware."""

    @ui.page("/", title="Estragon")
    def index() -> None:
        Page(state, tabs).build()

    async def tick() -> None:
        await asyncio.to_thread(state.tick)

    app.on_startup(lambda: app.timer(TICK_SEC, tick))
    app.on_startup(on_start)
    app.add_middleware(guard)
    ui.run(
        host="127.0.0.1",
        port=port,
        reload=False,
        show=False,
        title="Estragon",
        favicon="🌿",
        show_welcome_message=False,
        uvicorn_logging_level="error",
        reconnect_timeout=10.0,
    )
