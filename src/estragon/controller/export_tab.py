"""Export: any run or checkpoint as a verified ONNX file for games."""

import asyncio
from pathlib import Path

from nicegui import ui

from estragon.controller.page import Page, card, empty_state, problems_shown
from estragon.controller.project import Project
from estragon.controller.runs import TAG_BACKENDS, Run
from estragon.controller.sessions import Session, read_log
from estragon.support.errors import UserError
from estragon.tag.policy_files import TRAINED

SETTINGS = "export_config.json"
OPSETS = list(range(9, 18))
MOST_FILES = 100
SKIPPED = {".godot", "addons", "node_modules"}


class ExportTab:
    """Runs to files for games; `can_shrink`: there are commands that make them smaller."""

    def __init__(self, page: Page, *, can_shrink: bool) -> None:
        self._page, self._can_shrink = page, can_shrink
        self._runs: list[Run] = []
        self._files: list[Path] = []
        self._session: Session | None = None
        self._offset: int | None = None

    def build(self) -> None:
        """Create its elements."""
        project = self._page.project
        if project is None:
            empty_state("No project", "Create or open one in Home.")
            return
        settings = {}
        with problems_shown():
            settings = project.read_settings(SETTINGS)
        opset = settings.get("opset")
        with ui.row().classes("w-full items-start"):
            with ui.column().classes("grow basis-96"), card("Export a policy as ONNX"):
                self._empty = ui.label("No run yet: train one first, in Train.")
                self._run = ui.select({}, label="Run", on_change=self._list_models)
                self._model = ui.select({}, label="Model or checkpoint")
                self._output = ui.input("Output", value=str(settings.get("output") or "policies"))
                self._opset = ui.select(
                    OPSETS, value=opset if opset in OPSETS else 13, label="ONNX operator set"
                )
                self._verify = ui.switch("check that the file acts like the model", value=True)
                self._quantize = ui.switch("quantize to int8, too", value=False)
                self._student = ui.input("Hidden layers of a distilled network", value="32x32")
                for each in (self._run, self._model, self._output, self._opset, self._student):
                    each.classes("w-full").props("dense")
                with ui.row():
                    ui.button("Export", on_click=self._export).props("unelevated")
                    distill = ui.button("Distill", on_click=self._distill).props("flat")
                for shrinking in (self._quantize, self._student, distill):
                    shrinking.set_visibility(self._can_shrink)
                self._status = ui.label().props("data-export-status")
                self._log = ui.log(max_lines=100).classes("w-full h-40 log")
            with ui.column().classes("grow basis-80"), card("ONNX files of this project"):
                self._list = ui.column().classes("w-full gap-1")

    async def refresh(self) -> None:
        """Look for runs and files, and follow an export."""
        if (project := self._page.project) is None or not hasattr(self, "_run"):
            return
        runs = await asyncio.to_thread(self._page.state.runs, project)
        self._runs = [each for each in runs if each.backend != "demo" and each.models()]
        titles = {each.id: f"{each.title} · {each.backend}" for each in self._runs}
        self._empty.set_visibility(not titles)
        if titles != self._run.options:
            kept = self._run.value if self._run.value in titles else next(iter(titles), None)
            self._run.set_options(titles, value=kept)
            self._list_models()
        files = await asyncio.to_thread(_onnx_files, project)
        if files != self._files or not self._list.default_slot.children:
            self._files = files
            self._list_files(project)
        if self._session is not None:
            sessions = self._page.state.sessions(project)
            lines, self._offset = read_log(sessions.log(self._session), self._offset)
            for line in lines:
                self._log.push(line)
            status = sessions.status(self._session)
            self._status.text = f"{self._session.name}: {status}"
            if status != "running":
                self._session = None

    def key(self, name: str) -> None:
        """None of its own."""

    def _chosen(self) -> Run:
        for each in self._runs:
            if each.id == self._run.value:
                return each
        raise UserError("choose a run first")

    def _list_models(self) -> None:
        project = self._page.project
        found = [each for each in self._runs if each.id == self._run.value]
        models = (
            [_relative(path, project) for path in found[0].models()] if found and project else []
        )
        self._model.set_options(models, value=models[0] if models else None)

    def _export(self) -> None:
        if (project := self._page.project) is None:
            return
        with problems_shown():
            chosen, output = self._chosen(), (self._output.value or "").strip()
            project.confine(output)
            model = project.confine(self._model.value or "")
            project.write_settings(SETTINGS, {"output": output, "opset": self._opset.value})
            words = export_words(
                chosen, model, project, output, self._opset.value, verify=bool(self._verify.value)
            )
            words += ["--quantize=int8"] if self._quantize.value else []
            self._follow(project, "export", words)

    def _distill(self) -> None:
        if (project := self._page.project) is None:
            return
        with problems_shown():
            chosen, output = self._chosen(), (self._output.value or "").strip()
            project.confine(output)
            teachers = [_relative(project.confine(self._model.value or ""), project)]
            if chosen.backend in TAG_BACKENDS:
                teachers = [path.as_posix() for path in TRAINED.values()]
            words = ["distill", *teachers, f"--student={self._student.value}", f"--out={output}"]
            self._follow(project, "distill", words)

    def _follow(self, project: Project, name: str, words: list[str]) -> None:
        self._log.clear()
        self._offset = None
        self._session = self._page.state.sessions(project).add(name, words)

    def _list_files(self, project: Project) -> None:
        self._list.clear()
        with self._list:
            if not self._files:
                ui.label("None yet.")
            for path in self._files:
                name = _relative(path, project)
                with ui.row().classes("w-full items-center no-wrap"):
                    ui.label(f"{name} · {path.stat().st_size / 1e3:,.0f} kB").classes("grow")
                    ui.button("Download", on_click=lambda p=path: ui.download.file(p)).props(
                        "flat dense"
                    )
                    ui.button("Compare", on_click=lambda n=name: self._compare(n)).props(
                        "flat dense"
                    ).tooltip("the same inputs in Godot and onnxruntime")

    def _compare(self, name: str) -> None:
        if (project := self._page.project) is not None:
            with problems_shown():
                self._follow(project, "compare", ["onnx", "compare", name])


def export_words(
    chosen: Run, model: Path, project: Project, output: str, opset: int, *, verify: bool
) -> list[str]:
    """The command that exports a model of a run into a folder of the project."""
    name = _relative(model, project)
    if chosen.backend in TAG_BACKENDS:
        return ["export", "tag", f"--run={model}", f"--out={output}"]
    if chosen.backend == "rllib":
        return ["convert", "rllib", name, f"--output-dir={output}", f"--opset={opset}"]
    stem = model.stem if model.stem != "model" else model.parent.name
    words = ["convert", "sb3", name, f"--output={output}/{stem}.onnx", f"--opset={opset}"]
    return words if verify else [*words, "--no-verify"]


def _onnx_files(project: Project) -> list[Path]:
    found = [
        path
        for path in project.inside(project.path.rglob("*.onnx"))
        if not SKIPPED & set(path.relative_to(project.path).parts)
    ]
    return sorted(found)[:MOST_FILES]


def _relative(path: Path, project: Project | None) -> str:
    return path.relative_to(project.path).as_posix() if project else str(path)
