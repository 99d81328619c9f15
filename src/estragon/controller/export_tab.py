"""Export: any run or checkpoint as a verified ONNX file for games, quantized or distilled."""

import asyncio
from functools import partial
from pathlib import Path

from nicegui import ui

from estragon.controller.project import Project
from estragon.controller.runs import TAG_BACKENDS, Run
from estragon.controller.tab import SessionLog, Tab, button, card, problems_shown
from estragon.support.errors import UserError

SETTINGS = "export_config.json"
OPSETS = list(range(9, 18))
MOST_FILES = 100
SKIPPED = {".godot", "addons", "node_modules"}


class ExportTab(Tab):
    """Runs to files for games."""

    def build(self) -> None:
        """Create its elements."""
        self._runs: dict[str, Run] = {}
        self._files: list[Path] | None = None
        settings = {}
        with problems_shown():
            settings = self.project.read_settings(SETTINGS)
        opset = settings.get("opset")
        with ui.row().classes("w-full items-start"):
            with ui.column().classes("grow basis-96"), card("Export a policy as ONNX"):
                self._empty = ui.label("No run yet: train one first, in Train.")
                self._run = ui.select({}, label="Run", on_change=self._list_models)
                self._model = ui.select([], label="Model or checkpoint")
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
                    button("Export", self._export, "unelevated")
                    button("Distill", self._distill, "flat")
                self._status = ui.label()
                self._log = SessionLog(self.sessions, "h-40")
            with ui.column().classes("grow basis-80"), card("ONNX files of this project"):
                self._list = ui.column().classes("w-full gap-1")

    async def refresh(self) -> None:
        """Look for runs and files, and follow an export."""
        runs = await asyncio.to_thread(self.state.runs, self.project)
        self._runs = {each.id: each for each in runs if each.backend != "demo" and each.models()}
        titles = {name: f"{each.title} · {each.backend}" for name, each in self._runs.items()}
        self._empty.set_visibility(not titles)
        if titles != self._run.options:
            kept = self._run.value if self._run.value in titles else next(iter(titles), None)
            self._run.set_options(titles, value=kept)
        self._list_models()
        files = await asyncio.to_thread(_onnx_files, self.project)
        if files != self._files:
            self._files = files
            self._list_files(files)
        await self._log.refresh()
        if self._log.session is not None:
            status = self.sessions.status(self._log.session)
            self._status.text = f"{self._log.session.name}: {status}"

    def _list_models(self) -> None:
        run = self._runs.get(self._run.value or "")
        models = [self._relative(path) for path in run.models()] if run else []
        if models != self._model.options:
            kept = self._model.value if self._model.value in models else next(iter(models), None)
            self._model.set_options(models, value=kept)

    def _chosen(self) -> tuple[Run, Path, str]:
        """The run, its model, and the folder to write to, which are remembered."""
        run = self._runs.get(self._run.value or "")
        if run is None or not self._model.value:
            raise UserError("choose a run first")
        output = (self._output.value or "").strip() or "."
        self.project.confine(output)
        self.project.write_settings(SETTINGS, {"output": output, "opset": self._opset.value})
        return run, self.project.confine(self._model.value), output

    def _export(self) -> None:
        with problems_shown():
            run, model, output = self._chosen()
            words = export_words(run, model, self.project, output, self._opset.value)
            words += [] if self._verify.value else ["--no-verify"]
            words += ["--quantize=int8"] if self._quantize.value else []
            self._start("export", words)

    def _distill(self) -> None:
        with problems_shown():
            run, model, output = self._chosen()
            teachers = [self._relative(path) for path in run.teachers(model)]
            student = f"--student={(self._student.value or '').strip()}"
            self._start("distill", ["distill", *teachers, student, f"--out={output}"])

    def _start(self, name: str, words: list[str]) -> None:
        with problems_shown():
            self._log.follow(self.sessions.add(name, words))

    def _list_files(self, files: list[Path]) -> None:
        self._list.clear()
        with self._list:
            if not files:
                ui.label("None yet.")
            for path in files:
                name = self._relative(path)
                with ui.row().classes("w-full items-center no-wrap"):
                    ui.label(f"{name} · {path.stat().st_size / 1e3:,.0f} kB").classes("grow")
                    button("Download", partial(ui.download.file, path))
                    compare = partial(self._start, "compare", ["onnx", "compare", name])
                    button("Compare", compare).tooltip("the same inputs in Godot and onnxruntime")

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.project.path).as_posix()


def export_words(run: Run, model: Path, project: Project, output: str, opset: int) -> list[str]:
    """The command that exports a model of a run into a folder of the project."""
    name = model.relative_to(project.path).as_posix()
    if run.backend in TAG_BACKENDS:
        named = f"--run={name}" if model.is_dir() else name
        return ["export", "tag", named, f"--out={output}"]
    if run.backend == "rllib":
        return ["export", "rllib", name, f"--output-dir={output}", f"--opset={opset}"]
    stem = model.stem if model.stem != "model" else model.parent.name
    return ["export", "sb3", name, f"--output={output}/{stem}.onnx", f"--opset={opset}"]


def _onnx_files(project: Project) -> list[Path]:
    found = [
        path
        for path in project.inside(project.path.rglob("*.onnx"))
        if not SKIPPED & set(path.relative_to(project.path).parts)
    ]
    return sorted(found)[:MOST_FILES]
