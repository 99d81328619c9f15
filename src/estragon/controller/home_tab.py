"""Home: projects, the check of this machine, and the probe of a game."""

import asyncio
import shutil
import subprocess
import sys
from typing import Any

from nicegui import ui

from estragon.controller.page import Page, card, problems_shown
from estragon.controller.project import EXAMPLES, Project, checked_name
from estragon.controller.sessions import Session
from estragon.godot.doctor import examine
from estragon.support.errors import UserError
from estragon.support.files import read_json
from estragon.trainers.controller import slug

PROBE_FILE = "probe.json"
CHECK_TIMEOUT_SEC = 120.0
CHECK = "from estragon.trainers.packages import check; check()"


class HomeTab:
    """Projects, checks, disk and runs."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._probing: Session | None = None
        self._checking = False

    def build(self) -> None:
        """Create its elements."""
        with ui.row().classes("w-full items-start"):
            with ui.column().classes("grow basis-80"):
                self._build_projects()
                self._build_new()
            with ui.column().classes("grow basis-96"):
                self._build_probe()
                self._build_check()

    async def refresh(self) -> None:
        """Follow a probe that runs, and count."""
        project = self._page.project
        if project is None:
            return
        runs = await asyncio.to_thread(self._page.state.runs, project)
        going = sum(each.status == "running" for each in runs)
        self._facts.text = (
            f"{len(runs)} runs, {going} running · {project.free_gb():.0f} GB free on its disk"
        )
        if self._probing is not None:
            sessions = self._page.state.sessions(project)
            status = sessions.status(self._probing)
            if status != "running":
                self._probing = None
                self._spinner.set_visibility(False)
                self._show_probe(project, failed=status != "finished")

    def key(self, name: str) -> None:
        """`p` checks."""
        if name == "p":
            ui.timer(0.0, self._check, once=True)

    def _build_projects(self) -> None:
        workspace = self._page.state.workspace
        with card("Projects"):
            self._facts = ui.label().classes("text-sm opacity-80")
            projects = workspace.projects()
            if not projects:
                ui.label("No project yet. Create one from an example game, or open your own.")
            current = self._page.project
            for project in projects:
                self._build_project(project, current=project == current)

    def _build_project(self, project: Project, *, current: bool) -> None:
        workspace = self._page.state.workspace
        problem = ""
        try:
            name = project.file.name
        except UserError as error:
            name, problem = project.path.name, str(error)
        with ui.row().classes("w-full items-center no-wrap gap-2"):
            ui.icon("folder_open" if current else "folder").classes("text-xl")
            with ui.column().classes("gap-0 grow min-w-0"):
                ui.label(name).classes("font-medium ellipsis")
                ui.label(str(project.path)).classes("text-xs opacity-70 break-all")
                if problem:
                    ui.label(problem).classes("text-negative text-sm").props("role=alert")
            if not current and not problem:
                ui.button("Use", on_click=lambda: self._use(project)).props("flat dense")

            def forget() -> None:
                with problems_shown():
                    workspace.forget(project)
                self._page.rebuild()

            ui.button("Forget", on_click=forget).props("flat dense color=grey")

    def _build_new(self) -> None:
        root = self._page.state.workspace.root
        with card("New project from an example game"):
            name = ui.input("Name", value="My first game").classes("w-full")
            example = ui.select(EXAMPLES, value="marble", label="Game").classes("w-full")
            folder = ui.input("Folder", placeholder=f"in {root}; by default its name").classes(
                "w-full"
            )
            folder.props("stack-label")

            def create() -> None:
                with problems_shown():
                    text = folder.value or slug(checked_name(name.value or ""))
                    path = self._page.state.workspace.confine(text)
                    self._use(Project.create(path, name.value, example.value))

            ui.button("Create", on_click=create).props("unelevated")
        with card("Open the folder of your game"):
            opened = ui.input("Folder", placeholder=f"in {root}").classes("w-full")
            opened.props("stack-label")

            def open_folder() -> None:
                with problems_shown():
                    path = self._page.state.workspace.confine(opened.value or "")
                    self._use(Project.open(path))

            ui.button("Open", on_click=open_folder).props("unelevated")

    def _use(self, project: Project) -> None:
        with problems_shown():
            self._page.state.workspace.use(project)
            self._page.rebuild()

    def _build_probe(self) -> None:
        with card("Probe: is the game ready to be learned?"):
            project = self._page.project
            if project is None:
                ui.label("Choose a project first.")
                return
            scene = ui.input("Scene (optional)", placeholder="the game's main scene")
            scene.classes("w-full").props("stack-label")
            with ui.row().classes("items-center"):
                ui.button("Probe", on_click=lambda: self._probe(scene.value or "")).props(
                    "unelevated"
                )
                self._spinner = ui.spinner()
                self._spinner.set_visibility(False)
            self._findings = ui.column().classes("w-full gap-2")
            self._show_probe(project, failed=False)

    def _probe(self, scene: str) -> None:
        project = self._page.project
        if project is None:
            return
        with problems_shown():
            if scene and (not scene.startswith("res://") or ".." in scene):
                raise UserError(f"{scene!r}: expected a scene such as res://main.tscn")
            words = ["godot", "probe", ".", "--seconds=3", f"--json=.rlcontroller/{PROBE_FILE}"]
            words += [f"--scene={scene}"] if scene else []
            self._probing = self._page.state.sessions(project).add("probe", words)
            self._spinner.set_visibility(True)

    def _show_probe(self, project: Project, *, failed: bool) -> None:
        self._findings.clear()
        try:
            found = read_json(project.folder / PROBE_FILE, dict[str, Any])
        except UserError:
            with self._findings:
                text = "The probe failed; Train shows its log." if failed else "Not probed yet."
                ui.label(text)
            return
        with self._findings:
            speed = found.get("agent_steps_per_s")
            facts = {
                "agents": found.get("agents"),
                "agent-steps/s": None if speed is None else f"{speed:,.0f}",
                "episodes": found.get("episodes"),
                "mean return": _short(found.get("episode_return_mean")),
            }
            with ui.row().classes("gap-6"):
                for name, value in facts.items():
                    with ui.column().classes("gap-0"):
                        ui.label("–" if value is None else str(value)).classes("text-lg")
                        ui.label(name).classes("text-xs opacity-70")
            for space in found.get("spaces", []):
                ui.label(f"{space.get('policy')} {space.get('summary')}").classes("text-sm")
            for text in [found["error"]] if found.get("error") else []:
                _finding("error", "negative", text)
            for text in found.get("warnings", []):
                _finding("warning", "warning", text)
            if not found.get("warnings") and not found.get("error"):
                _finding("check_circle", "positive", "Nothing suspicious: you can train.")

    def _build_check(self) -> None:
        with card("This machine"):
            ui.button("Check Python and Godot (p)", on_click=self._check).props("unelevated")
            self._checks = ui.column().classes("w-full gap-1")

    async def _check(self) -> None:
        if self._checking:
            return
        self._checking = True
        self._checks.clear()
        with self._checks:
            ui.spinner()
        packages = await asyncio.to_thread(_packages)
        findings = await asyncio.to_thread(lambda: list(examine()))
        self._checking = False
        self._checks.clear()
        with self._checks:
            for name, there in packages.items():
                mark = ("check_circle", "positive") if there else ("error", "negative")
                _finding(*mark, name.replace("_", " "))
            for each in findings:
                bad = "negative" if each.needed else "warning"
                mark = ("check_circle", "positive") if each.good else ("error", bad)
                _finding(*mark, each.text)
            free = shutil.disk_usage(self._page.state.workspace.folder).free / 1e9
            _finding("storage", "primary", f"{free:.0f} GB free")


def _packages() -> dict[str, bool]:
    import json

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHECK],
        capture_output=True,
        timeout=CHECK_TIMEOUT_SEC,
        check=False,
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {"the check of the packages failed": False}
    return {name: value for name, value in found.items() if isinstance(value, bool)}


def _finding(icon: str, color: str, text: str) -> None:
    with ui.row().classes("w-full items-start no-wrap gap-2"):
        ui.icon(icon, color=color).classes("text-lg")
        ui.label(text).classes("text-sm").style("overflow-wrap: anywhere")


def _short(value: Any) -> str | None:
    return f"{value:.3g}" if isinstance(value, int | float) else None
