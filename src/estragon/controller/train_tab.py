"""Train: a form for every trainer, the sessions and the queue, and the log of one of them."""

import asyncio
import shlex
from typing import Any

from nicegui import ui

from estragon.controller.forms import Field, Form
from estragon.controller.page import Page, card, empty_state, problems_shown
from estragon.controller.project import Project
from estragon.controller.runs import Run
from estragon.controller.sessions import Session, read_log
from estragon.support.errors import UserError
from estragon.support.files import write_whole

DEMO = ["demo", "--iterations=20"]
MOST_LINES = 400
SHOWN_SESSIONS = 12
COLORS = {"running": "primary", "queued": "grey", "finished": "positive", "stopped": "warning"}
RLLIB_FILE = "rllib_config.yaml"


class TrainTab:
    """Start, follow, stop and resume."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._inputs: dict[str, Any] = {}
        self._shown: Session | None = None
        self._offset: int | None = None
        self._listed: list[tuple[str, str]] = []

    def build(self) -> None:
        """Create its elements."""
        project = self._page.project
        if project is None:
            empty_state("No project", "Create or open one in Home.")
            return
        forms = self._page.state.forms
        chosen = self._page.state.workspace.settings().get("form")
        with ui.row().classes("w-full items-start"):
            with ui.column().classes("grow basis-96"), card("New run"):
                self._choice = ui.toggle(
                    {key: form.title for key, form in forms.items()},
                    value=chosen if chosen in forms else next(iter(forms)),
                    on_change=lambda: self._build_form(project),
                )
                self._choice.props("no-caps unelevated").classes("flex-wrap")
                self._form = ui.column().classes("w-full gap-2")
            with ui.column().classes("grow basis-96"):
                with card("Sessions"):
                    self._list = ui.column().classes("w-full gap-1")
                with card("Log"):
                    self._log_title = ui.label().classes("text-sm opacity-70")
                    self._log = ui.log(max_lines=MOST_LINES).classes("w-full h-80 log")
        self._build_form(project)
        self._list_sessions(project)

    async def refresh(self) -> None:
        """List the sessions again when something changed, and follow the log."""
        if (project := self._page.project) is None or not hasattr(self, "_list"):
            return
        sessions = self._page.state.sessions(project)
        found = await asyncio.to_thread(
            lambda: [(s.id, sessions.status(s)) for s in sessions.all()]
        )
        if found != self._listed:
            self._list_sessions(project)
        if self._shown is not None:
            path = sessions.log(self._shown)
            lines, self._offset = await asyncio.to_thread(read_log, path, self._offset)
            for line in lines[-MOST_LINES:]:
                self._log.push(line)

    def key(self, name: str) -> None:
        """`d` runs the demo, `s` starts, `x` stops."""
        if name == "d":
            self._demo()
        elif name == "s":
            self._start(queued=False)
        elif name == "x" and (project := self._page.project) is not None:
            with problems_shown():
                for session in self._page.state.sessions(project).running():
                    self._page.state.sessions(project).stop(session)

    @property
    def _chosen(self) -> Form:
        return self._page.state.forms[self._choice.value]

    def _build_form(self, project: Project) -> None:
        form = self._chosen
        self._form.clear()
        self._inputs.clear()
        values = form.values({})
        with problems_shown():
            values = form.values(project.read_settings("training_config.json"))
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
                ui.button(icon="content_copy", on_click=self._copy).props(
                    "flat round dense aria-label='copy the command'"
                )
            with ui.row():
                start = ui.button("Start", on_click=lambda: self._start(queued=False))
                start.props("unelevated")
                ui.button("Add to queue", on_click=lambda: self._start(queued=True)).props("flat")
                ui.button("Demo (d)", on_click=self._demo).props("flat")
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
        known = await asyncio.to_thread(self._page.state.hyperparameters)
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
        project = self._page.project
        if project is None:
            return
        try:
            words = self._chosen.words(self._values(), project)
            self._command.text = shlex.join(["estragon", *words])
            self._command.classes(remove="text-negative")
        except UserError as error:
            self._command.text = str(error)
            self._command.classes("text-negative")

    def _copy(self) -> None:
        ui.clipboard.write(self._command.text)
        ui.notify("copied; run it in the project's folder")

    def _start(self, *, queued: bool) -> None:
        project = self._page.project
        if project is None:
            return
        with problems_shown():
            form, values = self._chosen, self._values()
            words = form.words(values, project)
            self._page.state.workspace.remember(form=form.key)
            if config := form.config(values):
                project.write_settings("training_config.json", config)
            if form.key == "rllib":
                _write_rllib_file(project)
            name = str(values.get("experiment_name") or form.title)
            session = self._page.state.sessions(project).add(name, words, queued=queued)
            self._follow(project, session)

    def _demo(self) -> None:
        if (project := self._page.project) is not None:
            with problems_shown():
                session = self._page.state.sessions(project).add("demo", DEMO)
                self._follow(project, session)

    def _follow(self, project: Project, session: Session) -> None:
        self._shown, self._offset = session, None
        self._log.clear()
        self._log_title.text = session.command
        self._list_sessions(project)

    def _list_sessions(self, project: Project) -> None:
        sessions = self._page.state.sessions(project)
        self._list.clear()
        with self._list, problems_shown():
            everything = sessions.all()
            self._listed = [(each.id, sessions.status(each)) for each in everything]
            if not everything:
                ui.label("Nothing was started yet: fill in the form, then Start.")
            if self._shown is None and everything:
                self._follow(project, everything[0])
                return
            runs = self._page.state.runs(project)
            by_pid = {each.about.get("pid"): each for each in runs}
            by_id = {each.id: each for each in runs}
            for session in everything[:SHOWN_SESSIONS]:
                named = [by_id[word] for word in session.words if word in by_id]
                found = named[0] if named else by_pid.get(sessions.pid(session))
                self._build_session(project, session, found)

    def _build_session(self, project: Project, session: Session, run: Run | None) -> None:
        sessions = self._page.state.sessions(project)
        status = sessions.status(session)
        shown = self._shown is not None and self._shown.id == session.id
        with ui.row().classes("w-full items-center no-wrap gap-2"):
            ui.badge(status, color=COLORS.get(status, "negative")).props(f"data-status={status}")
            with ui.column().classes("gap-0 grow min-w-0"):
                ui.label(session.name).classes(f"ellipsis {'font-medium' if shown else ''}")
                ui.label(session.created).classes("text-xs opacity-70")
                if status == "died":
                    text = "its process was killed; resume it" if run else "its process was killed"
                    ui.label(text).classes("text-xs text-negative")
            ui.button("Log", on_click=lambda: self._follow(project, session)).props("flat dense")
            if status in ("running", "queued"):

                def stop() -> None:
                    with problems_shown():
                        sessions.stop(session)
                        ui.notify("stopping: it saves what it has; Stop again interrupts it")

                ui.button("Stop", on_click=stop).props("flat dense color=negative")
            elif run is not None and status in ("stopped", "died", "failed", "finished"):
                ui.button("Resume", on_click=lambda: self._resume(project, session, run)).props(
                    "flat dense"
                )

    def _resume(self, project: Project, session: Session, run: Run) -> None:
        with problems_shown():
            words = [*_without_resume(session.words), *run.resume_words(project)]
            name = session.name.removesuffix(" (resumed)") + " (resumed)"
            self._follow(project, self._page.state.sessions(project).add(name, words))


def _without_resume(words: list[str]) -> list[str]:
    """The command without the options that say what to resume."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("--resume_model_path", "--restore", "--run-id"):
            skip = True
        elif word != "--resume" and not word.startswith("--timesteps="):
            kept.append(word)
    return kept


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


def _write_rllib_file(project: Project) -> None:
    """The file for RLlib's own settings; one that exists is the user's."""
    path = project.folder / RLLIB_FILE
    if not path.exists():
        text = (
            "# Settings of RLlib that the controller's form does not have; see docs/rllib.md.\n"
            "env: godot\nenv_config:\n  env_path: .\n"
        )
        write_whole(path, text.encode())
