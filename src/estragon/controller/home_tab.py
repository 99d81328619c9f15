"""Home: projects, the check of this machine, and the probe of a game."""

import asyncio
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from estragon.controller.project import EXAMPLES, Project, checked_name
from estragon.controller.sessions import Session
from estragon.controller.state import ask_python
from estragon.controller.tab import Tab, button, card, problems_shown
from estragon.godot.doctor import examine
from estragon.support.errors import UserError
from estragon.support.files import read_json
from estragon.trainers.controller import slug

PROBE_FILE = "probe.json"
CHECK = "from estragon.trainers.packages import check; check()"
GOOD, BAD, WARNING = ("check_circle", "positive"), ("error", "negative"), ("warning", "warning")


class HomeTab(Tab):
    """Projects, checks, disk and runs."""

    def build(self) -> None:
        """Create its elements."""
        self._probing: Session | None = None
        self._checking = False
        with ui.row().classes("w-full items-start"):
            with ui.column().classes("grow basis-80"):
                with card("Projects"):
                    self._build_projects()
                self._build_new()
            with ui.column().classes("grow basis-96"):
                with card("Probe: is the game ready to be learned?"):
                    self._build_probe()
                with card("This machine"):
                    button("Check Python and Godot (p)", self._check, "unelevated")
                    self._checks = ui.column().classes("w-full gap-1")

    async def refresh(self) -> None:
        """Follow a probe that runs, and count."""
        if self.page.project is None:
            return
        runs = await asyncio.to_thread(self.state.runs, self.project)
        going = sum(each.status == "running" for each in runs)
        free = shutil.disk_usage(self.project.path).free / 1e9
        self._facts.text = f"{len(runs)} runs, {going} running · {free:.0f} GB free on its disk"
        if self._probing is not None:
            status = self.sessions.status(self._probing)
            if status != "running":
                self._probing = None
                self._spinner.set_visibility(False)
                self._show_probe(failed=status != "finished")

    def key(self, name: str) -> None:
        """`p` checks."""
        if name == "p":
            ui.timer(0.0, self._check, once=True)

    def _build_projects(self) -> None:
        self._facts = ui.label().classes("text-sm opacity-80")
        projects = self.state.workspace.projects()
        if not projects:
            ui.label("No project yet. Create one from an example game, or open your own.")
        for project in projects:
            current = project == self.page.project
            problem = ""
            try:
                _ = project.file
            except UserError as error:
                problem = str(error)
            with ui.row().classes("w-full items-center no-wrap gap-2"):
                ui.icon("folder_open" if current else "folder").classes("text-xl")
                with ui.column().classes("gap-0 grow min-w-0"):
                    ui.label(project.name).classes("font-medium ellipsis")
                    ui.label(str(project.path)).classes("text-xs opacity-70 break-all")
                    if problem:
                        ui.label(problem).classes("text-negative text-sm").props("role=alert")
                if not current and not problem:
                    button("Use", lambda each=project: self._use(lambda: each))
                forget = partial(self._forget, project)
                button("Forget", forget, "flat dense color=grey")

    def _build_new(self) -> None:
        workspace = self.state.workspace
        with card("New project from an example game"):
            name = ui.input("Name", value="My first game").classes("w-full")
            example = ui.select(EXAMPLES, value="marble", label="Game").classes("w-full")
            folder = ui.input("Folder", placeholder=f"in {workspace.root}; by default its name")
            folder.classes("w-full").props("stack-label")

            def create() -> Project:
                path = workspace.confine(folder.value or slug(checked_name(name.value or "")))
                return Project.create(path, name.value, example.value)

            button("Create", lambda: self._use(create), "unelevated")
        with card("Open the folder of your game"):
            opened = ui.input("Folder", placeholder=f"in {workspace.root}").classes("w-full")
            opened.props("stack-label")

            def find() -> Project:
                return Project.open(workspace.confine(opened.value or ""))

            button("Open", lambda: self._use(find), "unelevated")

    def _use(self, find: Callable[[], Project]) -> None:
        with problems_shown():
            self.page.use(self.state.workspace.use(find()))

    def _forget(self, project: Project) -> None:
        with problems_shown():
            self.state.workspace.forget(project)
            self.page.use(None if project == self.page.project else self.page.project)

    def _build_probe(self) -> None:
        if self.page.project is None:
            ui.label("Choose a project first.")
            return
        scene = ui.input("Scene (optional)", placeholder="the game's main scene")
        scene.classes("w-full").props("stack-label")
        with ui.row().classes("items-center"):
            button("Probe", lambda: self._probe(scene.value or ""), "unelevated")
            self._spinner = ui.spinner()
            self._spinner.set_visibility(False)
        self._findings = ui.column().classes("w-full gap-2")
        self._show_probe(failed=False)

    def _probe(self, scene: str) -> None:
        with problems_shown():
            if scene and (not scene.startswith("res://") or ".." in scene):
                raise UserError(f"{scene!r}: expected a scene such as res://main.tscn")
            words = ["godot", "probe", ".", "--seconds=3", f"--json=.rlcontroller/{PROBE_FILE}"]
            words += [f"--scene={scene}"] if scene else []
            self._probing = self.sessions.add("probe", words)
            self._spinner.set_visibility(True)

    def _show_probe(self, *, failed: bool) -> None:
        self._findings.clear()
        with self._findings:
            try:
                found = read_json(self.project.folder / PROBE_FILE, dict[str, Any])
            except UserError:
                text = "The probe failed; Train shows its log." if failed else "Not probed yet."
                ui.label(text)
                return
            facts = {
                "agents": found.get("agents"),
                "agent-steps/s": _short(found.get("agent_steps_per_s"), ",.0f"),
                "episodes": found.get("episodes"),
                "mean return": _short(found.get("episode_return_mean"), ".3g"),
            }
            with ui.row().classes("gap-6"):
                for name, value in facts.items():
                    with ui.column().classes("gap-0"):
                        ui.label("–" if value is None else str(value)).classes("text-lg")
                        ui.label(name).classes("text-xs opacity-70")
            for space in found.get("spaces", []):
                ui.label(f"{space.get('policy')} {space.get('summary')}").classes("text-sm")
            errors = [found["error"]] if found.get("error") else []
            warnings = found.get("warnings") or []
            for mark, texts in ((BAD, errors), (WARNING, warnings)):
                for text in texts:
                    _finding(*mark, text)
            if not errors and not warnings:
                _finding(*GOOD, "Nothing suspicious: you can train.")

    async def _check(self) -> None:
        if self._checking:
            return
        self._checking = True
        self._checks.clear()
        with self._checks:
            ui.spinner()
        packages = await asyncio.to_thread(ask_python, CHECK) or {"check of the packages": False}
        findings = await asyncio.to_thread(lambda: list(examine()))
        self._checking = False
        self._checks.clear()
        with self._checks:
            for name, there in packages.items():
                if isinstance(there, bool):
                    _finding(*(GOOD if there else BAD), name.replace("_", " "))
            for each in findings:
                _finding(*(GOOD if each.good else BAD if each.needed else WARNING), each.text)


def _finding(icon: str, color: str, text: str) -> None:
    with ui.row().classes("w-full items-start no-wrap gap-2"):
        ui.icon(icon, color=color).classes("text-lg")
        ui.label(text).classes("text-sm").style("overflow-wrap: anywhere")


def _short(value: Any, form: str) -> str | None:
    return format(value, form) if isinstance(value, int | float) else None
