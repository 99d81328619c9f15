"""Train: a form for every trainer, the sessions and the queue, and the log of one of them."""

import asyncio
import shlex
from functools import partial
from typing import Any

from nicegui import ui

from estragon.controller.forms import Field, Form
from estragon.controller.runs import Run, run_of
from estragon.controller.sessions import Session, Status
from estragon.controller.tab import SessionLog, Tab, button, card, problems_shown
from estragon.support.errors import UserError

DEMO = ["demo", "--iterations=20"]
SHOWN_SESSIONS = 12
COLORS = {"running": "primary", "queued": "grey", "finished": "positive", "stopped": "warning"}


class TrainTab(Tab):
    """Start, follow, stop and resume."""

    def build(self) -> None:
        """Create its elements."""
        self._inputs: dict[str, Any] = {}
        self._listed: list[tuple[str, Status]] | None = None
        forms = self.state.forms
        chosen = self.state.workspace.settings().get("form")
        with ui.row().classes("w-full items-start"):
            with ui.column().classes("grow basis-96"), card("New run"):
                self._choice = ui.toggle(
                    {key: form.title for key, form in forms.items()},
                    value=chosen if chosen in forms else next(iter(forms)),
                    on_change=self._build_form,
                )
                self._choice.props("no-caps unelevated").classes("flex-wrap")
                self._form = ui.column().classes("w-full gap-2")
            with ui.column().classes("grow basis-96"):
                with card("Sessions"):
                    self._list = ui.column().classes("w-full gap-1")
                with card("Log"):
                    self._log_title = ui.label().classes("text-sm opacity-70")
                    self._log = SessionLog(self.sessions, "h-80")
        self._build_form()

    async def refresh(self) -> None:
        """List the sessions again when something changed, and follow the log."""
        sessions = await asyncio.to_thread(
            lambda: [(each, self.sessions.status(each)) for each in self.sessions.all()]
        )
        listed = [(each.id, status) for each, status in sessions]
        if listed != self._listed:
            self._listed = listed
            runs = await asyncio.to_thread(self.state.runs, self.project)
            if self._log.session is None and sessions:
                self._follow(sessions[0][0])
            self._list_sessions(sessions, runs)
        await self._log.refresh()

    def key(self, name: str) -> None:
        """`d` runs the demo, `s` starts, `x` stops."""
        if name == "d":
            self._start("demo", DEMO)
        elif name == "s":
            self._start_form(queued=False)
        elif name == "x":
            with problems_shown():
                for session in self.sessions.running():
                    self.sessions.stop(session)

    @property
    def _chosen(self) -> Form:
        return self.state.forms[self._choice.value]

    def _build_form(self) -> None:
        form = self._chosen
        self._form.clear()
        self._inputs.clear()
        values = form.values({})
        with problems_shown():
            values = form.values(self.project.read_settings("training_config.json"))
        with self._form:
            main = [field for field in form.fields if field.name in form.main]
            others = [each for each in form.fields if each.name not in form.main and not each.group]
            nested = [each for each in form.fields if each.name not in form.main and each.group]
            self._build_fields(main, values)
            for title, fields in (("More options", others), ("Hyperparameters", nested)):
                if fields:
                    with ui.expansion(title).classes("w-full").props("dense"):
                        self._build_fields(fields, values)
            ui.label("The same in a terminal:").classes("text-sm opacity-70")
            with ui.row().classes("w-full items-center no-wrap"):
                self._command = ui.label().classes("log grow").props("data-command")
                copy = ui.button(icon="content_copy", on_click=self._copy)
                copy.props("flat round dense aria-label='copy the command'")
            with ui.row():
                button("Start", partial(self._start_form, queued=False), "unelevated")
                button("Add to queue", partial(self._start_form, queued=True), "flat")
                button("Demo (d)", partial(self._start, "demo", DEMO), "flat")
        if form.key == "sb3":
            self._inputs["algo"].on_value_change(self._show_hyperparameters)
            ui.timer(0.0, self._show_hyperparameters, once=True)
        self._show_command()

    def _build_fields(self, fields: list[Field], values: dict[str, Any]) -> None:
        with (
            ui.grid()
            .classes("w-full gap-x-4 gap-y-1")
            .style("grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr))")
        ):
            for field in fields:
                made = _build_input(field, values.get(field.name))
                made.on_value_change(self._show_command)
                with made:
                    ui.tooltip(field.help).classes("text-sm").style("max-width: 22rem")
                self._inputs[field.name] = made

    async def _show_hyperparameters(self) -> None:
        """Only those that the chosen algorithm has."""
        known = await asyncio.to_thread(self.state.hyperparameters)
        if self._choice.value != "sb3" or not known:
            return
        found = known.get(self._inputs["algo"].value or "ppo", {})
        for field in self._chosen.fields:
            if field.group:
                made = self._inputs[field.name]
                made.set_visibility(field.name in found)
                if field.name not in found:
                    made.value = field.default
                elif (default := found[field.name]) is not None:
                    made.props["placeholder"] = default
                    made.update()

    def _values(self) -> dict[str, Any]:
        return {name: each.value for name, each in self._inputs.items()}

    def _show_command(self) -> None:
        try:
            words = self._chosen.words(self._values(), self.project)
            self._command.text = shlex.join(["estragon", *words])
            self._command.classes(remove="text-negative")
        except UserError as error:
            self._command.text = str(error)
            self._command.classes("text-negative")

    def _copy(self) -> None:
        with problems_shown():
            if config := self._chosen.config(self._values()):
                self.project.write_training_config(config)  # which the command reads
            ui.clipboard.write(self._command.text)
            ui.notify("copied; run it in the project's folder")

    def _start_form(self, *, queued: bool) -> None:
        with problems_shown():
            form, values = self._chosen, self._values()
            words, config = form.words(values, self.project), form.config(values)
            self.state.workspace.remember(form=form.key)
            name = str(values.get("experiment_name") or form.title)
            self._start(name, words, queued=queued, config=config)

    def _start(
        self,
        name: str,
        words: list[str],
        *,
        queued: bool = False,
        config: dict[str, Any] | None = None,
    ) -> None:
        with problems_shown():
            self._follow(self.sessions.add(name, words, queued=queued, config=config))

    def _follow(self, session: Session) -> None:
        self._log.follow(session)
        self._log_title.text = session.command
        self._listed = None  # the one that is followed is marked

    def _list_sessions(self, sessions: list[tuple[Session, Status]], runs: list[Run]) -> None:
        self._list.clear()
        with self._list:
            if not sessions:
                ui.label("Nothing was started yet: fill in the form, then Start.")
            for session, status in sessions[:SHOWN_SESSIONS]:
                run = run_of(session, self.sessions.pid(session), runs)
                with ui.row().classes("w-full items-center no-wrap gap-2"):
                    self._build_session(session, status, run)

    def _build_session(self, session: Session, status: Status, run: Run | None) -> None:
        shown = session == self._log.session
        ui.badge(status, color=COLORS.get(status, "negative")).props(f"data-status={status}")
        with ui.column().classes("gap-0 grow min-w-0"):
            ui.label(session.name).classes(f"ellipsis {'font-medium' if shown else ''}")
            ui.label(session.created).classes("text-xs opacity-70")
            if status == "died":
                text = "its process was killed; resume it" if run else "its process was killed"
                ui.label(text).classes("text-xs text-negative")
        button("Log", partial(self._follow, session))
        if status in ("running", "queued"):
            button("Stop", partial(self._stop, session), "flat dense color=negative")
        elif run is not None:
            button("Resume", partial(self._resume, session, run))

    def _stop(self, session: Session) -> None:
        with problems_shown():
            self.sessions.stop(session)
            ui.notify("stopping: it saves what it has; Stop again interrupts it")

    def _resume(self, session: Session, run: Run) -> None:
        with problems_shown():
            words = run.resumed_words(session, self.project)
            name = session.name.removesuffix(" (resumed)") + " (resumed)"
            self._start(name, words, config=session.config)


def _build_input(field: Field, value: Any) -> Any:
    """The element for one option."""
    label = field.name.rstrip("_")
    if field.kind == "bool":
        return ui.switch(label, value=bool(value))
    if field.kind == "choice":
        options = list(field.choices)
        made: Any = ui.select(options, value=value, label=label, clearable=field.default is None)
    elif field.kind in ("int", "float"):
        least, most = field.span or (None, None)
        made = ui.number(label, value=value, min=least, max=most)
        made.props("clearable" if field.default is None else "")
        if field.kind == "int":
            made.props("step=1")
    else:
        text = " ".join(map(str, value)) if isinstance(value, tuple | list) else value
        made = ui.input(label, value=text or "")
    return made.classes("w-full").props(f"dense stack-label data-field={field.name}")
