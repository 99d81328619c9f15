"""A Godot project made ready to run: imported once, again only when it or Godot changed."""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from estragon import paths
from estragon.errors import UserError
from estragon.files import write_whole
from estragon.godot.find import require_godot
from estragon.godot.process import GodotProcess
from estragon.godot.supervised import GodotError
from estragon.godot.user_folders import private_user_folders
from estragon.godot.version import check_version
from estragon.locks import locked
from estragon.progress import Progress

IMPORT_TIMEOUT_SEC = 300.0
INSTALLED = {"site-packages", "dist-packages"}
WRITTEN_BY_GODOT = (".import", ".uid")
FAILED_TO_LOAD = re.compile(
    r"SCRIPT ERROR: |ERROR: (Failed to load script|Failed to create an autoload|Failed loading)"
)
SAID_AT_MOST = 6


def import_project(
    project: Path, *, godot: Path | None = None, timeout_sec: float = IMPORT_TIMEOUT_SEC
) -> Path:
    """Import a project where that is due; returns the folder to give to `--path`.

    That is the project itself, or a copy where its own folder is not for us to write in.
    """
    if not (project / "project.godot").is_file():
        raise UserError(f"{project} is not a Godot project: it has no project.godot")
    godot = require_godot() if godot is None else godot
    project = project.resolve()
    if not _may_write(project):
        project = _copy(project, timeout_sec)
    stamp = project / ".godot" / "estragon-import"
    with locked(project / ".godot" / "estragon.lock", timeout_sec=timeout_sec):
        version = check_version(godot).text
        before = _digests(project)
        if not _is_stamped(stamp, _key(before, version)):
            Progress().say(f"importing {project} into Godot, once")
            _import(project, godot, timeout_sec)
            after = _digests(project)
            # Godot adds files of its own; whatever else changed meanwhile is for the next time.
            if all(after.get(name) == before[name] for name in before if not _is_sidecar(name)):
                write_whole(stamp, _key(after, version).encode())
    return project


def _import(project: Path, godot: Path, timeout_sec: float) -> None:
    lines = _run_import(project, godot, timeout_sec)
    if any(FAILED_TO_LOAD.match(line) for line in lines):
        # The first time, Godot loads things before the classes and images they need are known.
        lines = _run_import(project, godot, timeout_sec)
        if any(FAILED_TO_LOAD.match(line) for line in lines):
            raise _does_not_import(project, lines)
    if broken := _broken_assets(project):
        raise _does_not_import(project, [f"ERROR: cannot import {name}" for name in broken])


def _run_import(project: Path, godot: Path, timeout_sec: float) -> list[str]:
    with GodotProcess(
        ["--headless", "--path", project, "--import"],
        folder=project / ".godot",
        name="import",
        godot=godot,
        env=private_user_folders(dict(os.environ)),  # it is the editor, which saves its settings
    ) as process:
        status = process.wait(f"the import of {project}", timeout_sec)
        if status < 0:
            raise process.error(f"{process.how_it_ended()} during the import of {project}")
        if status > 0:
            raise _does_not_import(project, process.lines())
        return process.lines()


def _does_not_import(project: Path, lines: list[str]) -> GodotError:
    telling = [
        line.strip() for line in lines if re.match(r"(SCRIPT )?ERROR: |\s+at: .*res://", line)
    ]
    reason = " | ".join(telling[:SAID_AT_MOST]) or " | ".join(lines[-SAID_AT_MOST:]) or "no reason"
    log = project / ".godot" / "import.log"
    return GodotError(f"{project} does not import: {reason}; the whole log is {log}")


def _broken_assets(project: Path) -> list[str]:
    """What Godot marked as not importable; it says so in its log the first time only."""
    return [
        name.removesuffix(".import")
        for name in _files(project)
        if name.endswith(".import") and b"\nvalid=false" in (project / name).read_bytes()
    ]


def _is_stamped(stamp: Path, key: str) -> bool:
    try:
        return stamp.read_text() == key
    except OSError:
        return False


def _is_sidecar(name: str) -> bool:
    return name.endswith(WRITTEN_BY_GODOT)


def _digests(project: Path) -> dict[str, str]:
    """A checksum of every file's content, by path."""
    found: dict[str, str] = {}
    for name in _files(project):
        with contextlib.suppress(FileNotFoundError), (project / name).open("rb") as stream:
            found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def _files(project: Path) -> list[str]:
    """All files that Godot looks at: none whose name, or whose folder's, begins with a dot."""
    found: list[str] = []
    for folder, folders, names in os.walk(project):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths_here = [Path(folder) / name for name in names if not name.startswith(".")]
        found += [path.relative_to(project).as_posix() for path in paths_here if path.is_file()]
    return sorted(found)


def _key(digests: dict[str, str], version: str) -> str:
    text = "\n".join([version, *(f"{name} {digest}" for name, digest in sorted(digests.items()))])
    return hashlib.sha256(text.encode()).hexdigest()


def _may_write(project: Path) -> bool:
    if INSTALLED & set(project.parts):
        return False  # Godot's files would outlive the package
    try:
        (project / ".godot").mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=project), tempfile.TemporaryFile(dir=project / ".godot"):
            return True
    except OSError:
        return False


def _copy(project: Path, timeout_sec: float) -> Path:
    name = _key(_digests(project), "")[:16]
    target = paths.home() / "projects" / name
    with locked(target.with_suffix(".lock"), timeout_sec=timeout_sec):
        if not target.is_dir():
            unfinished = target.with_suffix(".unfinished")
            try:
                shutil.rmtree(unfinished, ignore_errors=True)
                shutil.copytree(project, unfinished, ignore=shutil.ignore_patterns(".*"))
                for path in (unfinished, *unfinished.rglob("*")):
                    path.chmod(0o755 if path.is_dir() else 0o644)
                unfinished.replace(target)
            except (OSError, shutil.Error) as error:
                raise UserError(f"cannot copy {project} to {target}: {error}") from error
    return target
