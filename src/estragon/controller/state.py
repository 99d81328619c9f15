"""What all open pages share: the projects' sessions, the metrics read so far, the forms."""

import functools
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from estragon import __version__
from estragon.controller.project import Project, Workspace
from estragon.controller.runs import Run, list_runs
from estragon.controller.series import MetricsFile
from estragon.controller.sessions import Sessions
from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json

if TYPE_CHECKING:
    from estragon.controller.forms import Form

OPEN_FILES = 32
ASK_TIMEOUT_SEC = 120.0
ALGORITHMS = "from estragon.trainers.sb3.algorithms import print_hyperparameters as show; show()"


class State:
    """The controller without its page."""

    def __init__(self, workspace: Workspace, make_forms: Callable[[], "Iterable[Form]"]) -> None:
        self.workspace = workspace
        self._make_forms = make_forms
        self.problem = ""
        """Why the queue does not go on, for people."""
        self._sessions: dict[Path, Sessions] = {}
        self._files: OrderedDict[Path, MetricsFile] = OrderedDict()
        self._hyperparameters: dict[str, dict[str, Any]] | None = None

    @functools.cached_property
    def forms(self) -> "dict[str, Form]":
        """The trainers by key."""
        return {form.key: form for form in self._make_forms()}

    def sessions(self, project: Project) -> Sessions:
        """The sessions of a project; the same object for all pages."""
        return self._sessions.setdefault(project.path, Sessions(project))

    def runs(self, project: Project) -> list[Run]:
        """The runs of a project."""
        return list_runs(project, self.sessions(project))

    def metrics(self, run: Run) -> MetricsFile:
        """The numbers of a run; what was read is kept for a while."""
        found = self._files.pop(run.metrics, None) or MetricsFile(run.metrics)
        self._files[run.metrics] = found
        while len(self._files) > OPEN_FILES:
            self._files.popitem(last=False)
        return found

    def tick(self) -> None:
        """Go on with the queues and stops of all projects."""
        problems = []
        for project in self.workspace.projects():
            if not project.folder.is_dir():
                continue
            try:
                self.sessions(project).tick()
            except UserError as error:
                problems.append(str(error))
        self.problem = "; ".join(problems)

    def hyperparameters(self) -> dict[str, dict[str, Any]]:
        """By algorithm of SB3, those that it has, with defaults; another process loads SB3."""
        if self._hyperparameters is None:
            path = self.workspace.folder / f"sb3-{__version__}.json"
            try:
                self._hyperparameters = read_json(path, dict[str, dict[str, Any]])
            except UserError:
                self._hyperparameters = ask_python(ALGORITHMS)
                if self._hyperparameters:
                    write_json(path, self._hyperparameters)
        return self._hyperparameters


def ask_python(code: str) -> dict[str, Any]:
    """The JSON that code prints in another process, which may load much; empty if it fails."""
    words = [sys.executable, "-W", "ignore", "-c", code]
    try:
        done = subprocess.run(words, capture_output=True, timeout=ASK_TIMEOUT_SEC, check=False)
        return msgspec.json.decode(done.stdout, type=dict[str, Any])
    except (msgspec.DecodeError, subprocess.TimeoutExpired):
        return {}
