"""The page: header, tabs, keys and theme. Each tab is a file of its own."""

import asyncio
import importlib
from collections.abc import Callable
from typing import Any

from nicegui import app, ui
from nicegui.events import KeyEventArguments

from estragon.controller.project import Project
from estragon.controller.state import State
from estragon.controller.tab import Tab, empty_state, problems_shown
from estragon.support.errors import UserError

TICK_SEC = 1.0
HOME = "Home"
TABS = {
    HOME: "home",
    "Train": "play_circle",
    "Metrics": "show_chart",
    "Matches": "sports_kabaddi",
    "Export": "ios_share",
}
"""Name → icon. `Home` is `HomeTab` of `home_tab.py`, which is loaded when it is first shown."""
KEYS = {
    "1 – 5": f"the tabs: {', '.join(TABS)}",
    "p": "Home: check the Python environment and Godot",
    "d": "Train: run the demo",
    "s": "Train: start the run of the form",
    "x": "Train: stop what runs",
    "Space": "Matches: pause",
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


class Page:
    """One open page; what it shows and does is kept by `State`."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.project: Project | None = state.workspace.current()
        """The one in use here; another page may use another."""
        self._tabs: dict[str, Tab] = {}
        self._refreshing = False

    def build(self) -> None:
        """Create everything."""
        settings = self.state.workspace.settings()
        ui.add_css(STYLE)
        ui.colors(primary="#2f6f4f", secondary="#4d7ea8", accent="#b0413e")
        self._dark = ui.dark_mode(value=bool(settings.get("dark", False)))
        self._shown = str(settings.get("tab"))
        self._shown = self._shown if self._shown in TABS else HOME
        self._help = _build_help()
        with ui.header(elevated=False).classes("items-center gap-2 px-3 py-1"):
            ui.label("Estragon").classes("text-lg font-medium")
            self._title = ui.label().classes("opacity-80 ellipsis").style("max-width: 14rem")
            ui.space()
            with ui.tabs().props("dense mobile-arrows no-caps") as self._bar:
                for name, icon in TABS.items():
                    # Every click counts: the bar itself does not tell of one on the tab that the
                    # browser still shows, while the answer to an earlier one is on its way.
                    tab = ui.tab(name, icon=icon).classes("px-2")
                    tab.on("click", lambda name=name: self.show(name))
            self._bar.value = self._shown
            for icon, label, action in (
                ("contrast", "light or dark", self.toggle_theme),
                ("keyboard", "keys", self._help.open),
            ):
                button = ui.button(icon=icon, on_click=action)
                button.props(f"flat round dense color=white aria-label='{label}'")
        self._problem = ui.label().classes("text-negative w-full").props("role=alert")
        # Not animated: a panel whose transition is interrupted would stay beside the next one.
        panels = ui.tab_panels(self._bar, value=self._shown, animated=False)
        with panels.classes("w-full bg-transparent"):
            self._panels = {name: ui.tab_panel(name).classes("p-0") for name in TABS}
        for name, panel in self._panels.items():
            panel.props(f"data-tab={name}")
        ui.keyboard(on_key=self._on_key, ignore=["input", "textarea"])
        self._unseen = ui.element().classes("hidden")
        self.show(self._shown)
        ui.timer(TICK_SEC, self._refresh)
        ui.timer(TICK_SEC / 2, self._prefetch, once=True)

    def show(self, name: str) -> None:
        """Switch to a tab, building it the first time."""
        self._shown = self._bar.value = name
        if name not in self._tabs:
            with self._panels[name]:
                self._tabs[name] = self._make(name)
        with self._unseen:  # in the panels, it would make them start again
            ui.timer(0.0, self._refresh, once=True)
        if self.state.workspace.settings().get("tab") != name:
            with problems_shown():
                self.state.workspace.remember(tab=name)

    def is_shown(self, tab: Tab) -> bool:
        """Whether a tab is the one that is shown."""
        return self._tabs.get(self._shown) is tab

    def use(self, project: Project | None) -> None:
        """Show another project, or the list of them."""
        self.project = project
        for panel in self._panels.values():
            panel.clear()
        self._tabs.clear()
        self.show(self._shown)

    def toggle_theme(self) -> None:
        """Light or dark, for all pages from now on."""
        self._dark.value = not self._dark.value
        with problems_shown():
            self.state.workspace.remember(dark=bool(self._dark.value))

    def _make(self, name: str) -> Tab:
        if self.project is None and name != HOME:
            empty_state("No project", "Create or open one in Home.")
            return Tab(self)
        module = importlib.import_module(f"estragon.controller.{name.lower()}_tab")
        tab: Tab = getattr(module, f"{name}Tab")(self)
        tab.build()
        return tab

    def _prefetch(self) -> None:
        """Load the library of the charts while nobody waits for it."""
        with self._unseen:
            ui.echart({})

    async def _refresh(self) -> None:
        if self._refreshing:
            return
        self._refreshing = True
        problem = self.state.problem
        try:
            self._title.text = "" if self.project is None else f"· {self.project.name}"
            await self._tabs[self._shown].refresh()
        except (UserError, OSError) as error:
            problem = str(error)
        finally:
            self._refreshing = False
        self._problem.text = problem
        self._problem.set_visibility(bool(problem))

    def _on_key(self, event: KeyEventArguments) -> None:
        if not event.action.keydown or event.action.repeat:
            return
        if event.modifiers.ctrl or event.modifiers.alt or event.modifiers.meta:
            return
        name = str(event.key)
        if name == "?":
            self._help.open()
        elif name == "l":
            self.toggle_theme()
        elif name.isdecimal() and 1 <= int(name) <= len(TABS):
            self.show(list(TABS)[int(name) - 1])
        else:
            self._tabs[self._shown].key(name)


def _build_help() -> ui.dialog:
    with ui.dialog() as dialog, ui.card():
        ui.label("Keys").classes("text-lg")
        with ui.grid(columns="auto 1fr").classes("gap-x-6 gap-y-1"):
            for key, what in KEYS.items():
                ui.label(key).classes("font-mono")
                ui.label(what)
    return dialog


def serve(state: State, port: int, guard: Any, on_start: Callable[[], None]) -> None:
    """Serve the page on this machine until the process ends; `guard` makes the middleware."""

    @ui.page("/", title="Estragon")
    def index() -> None:
        Page(state).build()

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
