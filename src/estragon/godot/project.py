"""Godot projects made ready to run: imported once, and again only when they or Godot changed."""

import contextlib
import dataclasses
import hashlib
import os
import re
import signal
import tempfile
from pathlib import Path

import msgspec

from estragon.godot import project_check
from estragon.godot.find import check_version, require_godot
from estragon.godot.process import GodotError, GodotProcess, private_user_folders
from estragon.godot.project_check import Verdict, listed, placeholder_copy, project_files
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import locked, write_whole
from estragon.support.progress import Progress

IMPORT_TIMEOUT_SEC = 300.0
STRICT_VARIABLE = "ESTRAGON_STRICT_IMPORT"
INSTALLED = {"site-packages", "dist-packages"}
WRITTEN_BY_GODOT = (".import", ".uid")
FAILED_TO_LOAD = re.compile(
    r"SCRIPT ERROR: |ERROR: (Failed to load script|Failed to create an autoload|Failed loading)"
)
NO_SETTINGS = re.compile(r"ERROR: (Error parsing|Couldn't load file) '.*project\.godot'")
SAID_AT_MOST = 6
OF_GODOT_4 = 5
"""The config_version of its projects."""
CRASHES = {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGILL, -signal.SIGFPE}


@dataclasses.dataclass(frozen=True)
class ReadyProject:
    """A project that can be played."""

    folder: Path
    """For `--path`: the project itself, or a copy where its folder is read-only or installed."""
    missing: tuple[str, ...] = ()
    """Decoration that the game is played without."""
    unused: tuple[str, ...] = ()
    """Files that cannot be imported, and that the scene does not refer to."""
    has_placeholders: bool = False
    """Whether the folder is a copy in which placeholders replace what is missing."""

    @property
    def warnings(self) -> list[str]:
        """At most one line for the user."""
        found: list[str] = []
        if self.missing:
            found.append(f"cannot load {listed(self.missing)}; the game is played without them")
        if self.has_placeholders:
            found.append(f"placeholders replace them in a copy of the project, {self.folder}")
        if self.unused:
            found.append(f"cannot import {listed(self.unused)}, which the scene does not refer to")
        return ["; ".join(found)] if found else []


class _Stamp(msgspec.Struct):
    """What is stored about an import."""

    key: str
    complaints: list[str] = []
    """Godot's errors about the whole project."""
    scenes: dict[str, Verdict] = {}
    """By the scene's name, empty for the main scene."""


def import_project(
    project: Path, *, godot: Path | None = None, timeout_sec: float = IMPORT_TIMEOUT_SEC
) -> Path:
    """Import a project if necessary; returns the folder for `--path`."""
    return ready_project(project, godot=godot, timeout_sec=timeout_sec).folder


def ready_project(
    project: Path,
    scene: str | None = None,
    *,
    godot: Path | None = None,
    timeout_sec: float = IMPORT_TIMEOUT_SEC,
    strict: bool = False,
) -> ReadyProject:
    """Import a project if necessary, and check that a scene (default: the main one) can be played.

    `timeout_sec` is for each start of Godot; `strict` rejects anything broken, as with
    ESTRAGON_STRICT_IMPORT=1.
    """
    _check_is_project(project)
    godot = require_godot() if godot is None else godot
    project = project.resolve()
    if not _may_write(project):
        project = _copy(project, timeout_sec)
    stamp_file = project / ".godot" / "estragon-import"
    with locked(project / ".godot" / "estragon.lock", timeout_sec=timeout_sec):
        version = check_version(godot)
        before = _digests(project)
        stamp = _read_stamp(stamp_file, _key(before, version))
        is_lasting = True
        if stamp is None:
            Progress().say(f"importing {project} into Godot, once")
            complaints = _import(project, godot, timeout_sec)
            after = _digests(project)
            stamp = _Stamp(_key(after, version), complaints)
            # Godot adds files of its own; if others changed meanwhile, import again next time.
            is_lasting = all(
                after.get(name) == digest
                for name, digest in before.items()
                if not name.endswith(WRITTEN_BY_GODOT)
            )
        verdict = stamp.scenes.get(scene or "")
        is_new = verdict is None or (
            verdict.needs_placeholders and not placeholder_copy(project).is_dir()
        )
        if verdict is None or is_new:
            verdict = _judge(project, scene, stamp, godot, timeout_sec)
            stamp.scenes[scene or ""] = verdict
            if is_lasting:
                write_whole(stamp_file, msgspec.json.encode(stamp))
    missing = tuple(verdict.files())
    unused = tuple(name for name in _broken_assets(project) if name not in missing)
    broken = [f"ERROR: cannot load {name}" for name in missing + unused] + stamp.complaints
    if broken and (strict or os.environ.get(STRICT_VARIABLE, "0") not in ("", "0")):
        raise _does_not_import(project, broken)
    folder = placeholder_copy(project) if verdict.needs_placeholders else project
    ready = ReadyProject(folder, missing, unused, verdict.needs_placeholders)
    if is_new:
        for warning in ready.warnings:
            Progress().say(f"warning: {warning} (--strict-import rejects it)")
    return ready


def _check_is_project(project: Path) -> None:
    try:
        text = (project / "project.godot").read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise UserError(f"{project} is not a Godot project: it has no project.godot") from None
    version = re.search(r"^config_version=(\d+)\s*$", text, re.MULTILINE)
    if version and int(version[1]) < OF_GODOT_4:
        raise UserError(
            f"{project} is a project of Godot 3 (config_version={version[1]}); open a copy of it "
            "in Godot 4 to convert it"
        )


def _import(project: Path, godot: Path, timeout_sec: float) -> list[str]:
    """Import; returns Godot's errors."""
    status, lines = _run_import(project, godot, timeout_sec)
    if any(NO_SETTINGS.match(line) for line in lines):
        raise _does_not_import(project, _error_lines(lines))
    if status or any(FAILED_TO_LOAD.match(line) for line in lines):
        # The first time, Godot loads things before the classes and images they need are known.
        status, lines = _run_import(project, godot, timeout_sec)
    is_bad = status != 0 or any(FAILED_TO_LOAD.match(line) for line in lines)
    return _error_lines(lines) or [f"exit code {status}"] if is_bad else []


def _run_import(project: Path, godot: Path, timeout_sec: float) -> tuple[int, list[str]]:
    words: list[str | Path] = ["--headless", "--path", project, "--import"]
    if any(name.endswith(".blend") for name in project_files(project)):
        words += [
            "--script",
            project_check.SCRIPT,
        ]  # without Blender, nothing at all would be imported
    with GodotProcess(
        words,
        folder=project / ".godot",
        name="import",
        godot=godot,
        env=private_user_folders(dict(os.environ)),  # it is the editor, which saves its settings
    ) as process:
        status = process.wait(f"the import of {project}", timeout_sec)
        if status < 0 and status not in CRASHES:
            raise process.error(f"{process.how_it_ended()} during the import of {project}")
        return status, process.lines()


def _judge(
    project: Path, scene: str | None, stamp: _Stamp, godot: Path, timeout_sec: float
) -> Verdict:
    """Check that the scene can be played, with placeholders if necessary; else raise."""
    verdict = project_check.check(project, scene, godot, timeout_sec)
    if verdict is None:
        if stamp.complaints:
            raise _does_not_import(project, stamp.complaints)
        return Verdict([], [], needs_placeholders=False)
    played, again = project, verdict
    if verdict.needs_placeholders and not verdict.essential:
        known = [each for other in stamp.scenes.values() for each in other.decoration]
        played = project_check.write_placeholders(project, [*known, *verdict.decoration])
        again = project_check.check(played, scene, godot, timeout_sec) or verdict
    if again.essential:
        raise project_check.cannot_be_played(
            project, again.essential[0], played / ".godot" / "check.log"
        )
    return verdict


def _does_not_import(project: Path, lines: list[str]) -> GodotError:
    log = project / ".godot" / "import.log"
    return GodotError(
        f"{project} does not import: {' | '.join(lines[:SAID_AT_MOST])}; the whole log is {log}"
    )


def _error_lines(lines: list[str]) -> list[str]:
    pattern = re.compile(r"(SCRIPT )?ERROR: |\s+at: .*res://")
    errors = [line.strip() for line in lines if pattern.match(line)]
    return errors[:SAID_AT_MOST] or [line for line in lines if line][-SAID_AT_MOST:]


def _broken_assets(project: Path) -> list[str]:
    """Files Godot marked as not importable; its log names them the first time only."""
    return [
        name.removesuffix(".import")
        for name in project_files(project)
        if name.endswith(".import") and b"\nvalid=false" in (project / name).read_bytes()
    ]


def _read_stamp(file: Path, key: str) -> _Stamp | None:
    try:
        stamp = msgspec.json.decode(file.read_bytes(), type=_Stamp)
    except (OSError, msgspec.DecodeError):
        return None
    return stamp if stamp.key == key else None


def _digests(project: Path) -> dict[str, str]:
    """A checksum of every file's content, by path."""
    found: dict[str, str] = {}
    for name in project_files(project):
        with contextlib.suppress(FileNotFoundError), (project / name).open("rb") as stream:
            found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


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
    target = paths.home() / "projects" / _key(_digests(project), "")[:16]
    with locked(target.with_suffix(".lock"), timeout_sec=timeout_sec):
        project_check.copy_changed(project, target)
    return target
