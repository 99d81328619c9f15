"""The runs of a project, whoever started them: what they are, their files and their state."""

import dataclasses
import os
from pathlib import Path
from typing import Any

from estragon.controller.project import Project
from estragon.controller.sessions import Session, Sessions
from estragon.support.errors import UserError
from estragon.support.files import read_json
from estragon.support.runs import LOGS

TAG_BACKENDS = ("tag", "live")


@dataclasses.dataclass(frozen=True)
class Run:
    """One training run."""

    id: str
    name: str
    backend: str
    """sb3, rllib, tag, live, or demo."""
    status: str
    """running, finished, stopped, interrupted, failed, or died."""
    started: str
    metrics: Path
    folder: Path
    about: dict[str, Any]
    """Its record or metadata."""

    @property
    def title(self) -> str:
        """For lists."""
        return f"{self.name} · {self.id[:15]}"

    def models(self) -> list[Path]:
        """What can be exported or resumed, the latest first."""
        if self.backend in TAG_BACKENDS:
            return [self.folder]
        pattern = "checkpoint_*" if self.backend == "rllib" else "*.zip"
        found = [*self.folder.glob(pattern), *self.folder.glob(f"checkpoints/{pattern}")]
        found = [path for path in found if path.is_dir() == (self.backend == "rllib")]
        return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)

    def resume_words(self, project: Project) -> list[str]:
        """The options that resume it: for what is left of its steps, or as many again."""
        if self.backend == "tag":
            return ["--resume", "--run-id", self.id]
        if self.backend == "live":
            return ["--resume"]
        if not (models := self.models()):
            raise UserError(f"{self.name} has saved nothing to resume yet; start a new run")
        flag = {"sb3": "--resume_model_path", "rllib": "--restore"}.get(self.backend)
        if flag is None:
            raise UserError(f"{self.backend} runs cannot be resumed here")
        steps = int((self.about.get("options") or {}).get("timesteps") or 0)
        done = int((self.about.get("last") or {}).get("timesteps_total") or 0)
        left = steps - done if 0 < done < steps else steps
        words = [flag, models[0].relative_to(project.path).as_posix()]
        return [*words, f"--timesteps={left}"] if left else words


def list_runs(project: Project, sessions: Sessions) -> list[Run]:
    """All runs, the latest first; a damaged record is left out of the list."""
    all_sessions = sessions.all()
    living = {
        sessions.pid(each): each for each in all_sessions if sessions.status(each) == "running"
    }
    found = [_from_record(project, path, living) for path in _sorted(project.folder / "runs")]
    logs = project.path / LOGS / "runs"
    tag = [_from_tag(path.parent, living) for path in logs.glob("*/*/metadata.json")]
    demos = [
        Run(each.id, each.name, "demo", sessions.status(each), each.created, sessions.log(each),
            sessions.folder(each), {})
        for each in all_sessions if each.words[:1] == ["demo"]
    ]  # fmt: skip
    runs = [run for run in [*found, *tag, *demos] if run is not None]
    return sorted(runs, key=lambda run: run.id[:15], reverse=True)


def _sorted(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def _from_record(project: Project, path: Path, living: dict[int | None, Session]) -> Run | None:
    try:
        about = read_json(path, dict[str, Any])
    except UserError:
        return None
    if not about:
        return None  # just being written
    status = str(about.get("status", ""))
    if status == "running" and not _lives(about.get("pid"), living):
        status = "died"
    try:
        folder = project.confine(str(about.get("folder", "")))
    except UserError:
        folder = path.parent
    return Run(
        id=path.stem,
        name=str(about.get("name", path.stem)),
        backend=str(about.get("backend", "")),
        status=status,
        started=str(about.get("started", "")),
        metrics=path.with_suffix(".metrics.jsonl"),
        folder=folder,
        about=about,
    )


def _from_tag(folder: Path, living: dict[int | None, Session]) -> Run | None:
    try:
        about = read_json(folder / "metadata.json", dict[str, Any])
    except UserError:
        return None
    approach = folder.parent.name
    resumed = any(folder.name in session.words for session in living.values())
    if resumed or _lives(about.get("pid"), living):
        status = "running"
    else:
        status = "finished" if (folder / "summary.json").exists() else "stopped"
    return Run(
        id=folder.name,
        name=approach,
        backend="live" if approach.endswith("live") else "tag",
        status=status,
        started=str(about.get("started", "")),
        metrics=folder / "metrics.csv",
        folder=folder,
        about=about,
    )


def _lives(pid: object, living: dict[int | None, Session]) -> bool:
    """Whether a process lives that says it is the run's; it may have been started elsewhere."""
    if not isinstance(pid, int) or pid < 1:
        return False
    if pid in living:
        return True
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # another user's: the number was given anew
    return _is_python(pid)


def _is_python(pid: int) -> bool:
    try:
        return b"python" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True
