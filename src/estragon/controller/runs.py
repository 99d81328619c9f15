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
from estragon.tag.rules import ROLES

TAG_BACKENDS = ("tag", "live")
RESUME = {
    "train sb3": "--resume_model_path",
    "train rllib": "--restore",
    "train spacetime": "--resume",
    "train scene": "--resume",
}
"""Command → the option that resumes a model."""
STEPS = "--timesteps="


@dataclasses.dataclass(frozen=True)
class Run:
    """One training run."""

    id: str
    name: str
    backend: str
    """sb3, rllib, tag, live, or demo."""
    status: str
    """running, finished, stopped, interrupted, failed, or died."""
    metrics: Path
    folder: Path
    about: dict[str, Any]
    """Its record or metadata."""
    saved: tuple[Path, ...] = ()
    """Checkpoints that are not in its folder."""

    @property
    def title(self) -> str:
        """For lists."""
        return f"{self.name} · {self.id[:15]}"

    def models(self) -> list[Path]:
        """What can be exported or resumed, the latest first."""
        if self.backend in TAG_BACKENDS:
            return [self.folder, *sorted(self.folder.glob("checkpoints/*.npz"), reverse=True)]
        pattern = "checkpoint_*" if self.backend == "rllib" else "*.zip"
        inner = [*self.folder.glob(pattern), *self.folder.glob(f"checkpoints/{pattern}")]
        found = [path for path in dict.fromkeys([*inner, *self.saved]) if path.exists()]
        found = [path for path in found if path.is_dir() == (self.backend == "rllib")]
        # Of files of the same moment, the final model comes first.
        return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)

    def teachers(self, model: Path) -> list[Path]:
        """What a network is distilled from: the model; of a tag run, its latest policies."""
        if self.backend not in TAG_BACKENDS or model.is_file():
            return [model]
        latest = [max(model.glob(f"checkpoints/{role}_*.npz"), default=None) for role in ROLES]
        if not (found := [path for path in latest if path is not None]):
            raise UserError(f"{self.name} has saved no policy yet; let it train for longer")
        return found

    def resumed_words(self, session: Session, project: Project) -> list[str]:
        """The command of a session that trains what is left of this run, or as much again."""
        verb = " ".join(session.words[:2])
        flag = RESUME.get(verb, "--run-id")
        words = [w for w in session.words if w != "--resume" and not w.startswith(f"{flag}=")]
        if self.backend in TAG_BACKENDS:
            return [*words, "--resume", f"{flag}={self.id}"]
        if verb not in RESUME:
            raise UserError(f"{session.name} cannot be resumed")
        if not (models := self.models()):
            raise UserError(f"{self.name} has saved nothing to resume yet; start a new run")
        words.append(f"{flag}={models[0].relative_to(project.path).as_posix()}")
        if flag == "--resume":
            return words  # these commands count the steps of all runs
        steps = int((self.about.get("options") or {}).get("timesteps") or 0)
        done = int((self.about.get("last") or {}).get("timesteps_total") or 0)
        left = steps - done if 0 < done < steps else steps
        words = [word for word in words if not word.startswith(STEPS)]
        return [*words, f"{STEPS}{left}"] if left else words


def list_runs(project: Project, sessions: Sessions) -> list[Run]:
    """All runs, the latest first; a damaged record is left out of the list."""
    everything = sessions.all()
    living = {sessions.pid(each): each for each in everything if sessions.status(each) == "running"}
    found = [_from_record(project, each, living) for each in project.folder.glob("runs/*.json")]
    logs = project.path / LOGS / "runs"
    found += [_from_tag(path.parent, living) for path in logs.glob("*/*/metadata.json")]
    found += [
        Run(each.id, each.name, "demo", sessions.status(each), sessions.log(each),
            sessions.folder(each), {})
        for each in everything if each.words[:1] == ["demo"]
    ]  # fmt: skip
    runs = [run for run in found if run is not None]
    return sorted(runs, key=lambda run: run.id[:15], reverse=True)


def run_of(session: Session, pid: int | None, runs: list[Run]) -> Run | None:
    """The run that a session trains, or trained; None if it has none."""
    for run in runs:
        if f"--run-id={run.id}" in session.words or (pid and run.about.get("pid") == pid):
            return run
    return None


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
    folder, saved = path.parent, []
    try:
        folder = project.confine(str(about.get("folder", "")))
        saved = [project.confine(str(each)) for each in about.get("checkpoints") or ()]
    except UserError:
        pass
    return Run(
        id=path.stem,
        name=str(about.get("name", path.stem)),
        backend=str(about.get("backend", "")),
        status=status,
        metrics=path.with_suffix(".metrics.jsonl"),
        folder=folder,
        about=about,
        saved=tuple(saved),
    )


def _from_tag(folder: Path, living: dict[int | None, Session]) -> Run | None:
    try:
        about = read_json(folder / "metadata.json", dict[str, Any])
    except UserError:
        return None
    approach = folder.parent.name
    resumed = any(f"--run-id={folder.name}" in session.words for session in living.values())
    if resumed or _lives(about.get("pid"), living):
        status = "running"
    else:
        status = "finished" if (folder / "summary.json").exists() else "stopped"
    return Run(
        id=folder.name,
        name=approach,
        backend="live" if approach.endswith("live") else "tag",
        status=status,
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
        return b"python" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (ProcessLookupError, PermissionError):
        return False  # or another user's: the number was given to another process
    except OSError:
        return True  # not Linux
