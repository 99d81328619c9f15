"""Which files of a project do not load, and whether the game can be played without them."""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from estragon.godot.process import GodotError, GodotProcess
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import write_whole

SCRIPT = paths.PACKAGE / "godot" / "project_check.gd"
MARK = "estragon-check "
SCENE_VARIABLE = "ESTRAGON_CHECK_SCENE"
TIMEOUT_SEC = 60.0
NAMED = 5
MODEL = "PackedScene"
PLACEHOLDERS = ".godot/estragon-placeholders"
NOT_COPIED = ("estragon*", "*.log", "editor", "shader_cache")
EMPTY = '[gd_resource type="{kind}" format=3]\n\n[resource]\n'
CONTENT = {
    MODEL: '[gd_scene format=3]\n\n[node name="Placeholder" type="Node3D"]\n',
    "ImageTexture": (
        '[gd_resource type="ImageTexture" format=3]\n\n[sub_resource type="Image" id="1"]\n'
        'data = {"data": PackedByteArray(255, 255, 255, 255), "format": "RGBA8", "height": 1, '
        '"mipmaps": false, "width": 1}\n\n[resource]\nimage = SubResource("1")\n'
    ),
}


class Failure(msgspec.Struct, frozen=True):
    """A file that does not load."""

    file: str
    by: str
    """The first file that refers to it."""
    required: bool
    """Whether the scene or an autoload cannot be complete without it."""
    exists: bool
    placeholder: str
    """The class of a placeholder for it; empty if the game cannot be played without it."""
    references: list[str]


class Verdict(msgspec.Struct, frozen=True):
    """The files that do not load, by how much that matters."""

    essential: list[Failure]
    decoration: list[Failure]
    needs_placeholders: bool
    """Without them Godot rejects a scene or a script, or leaves out a node."""

    def files(self) -> list[str]:
        """The missing decoration, by name."""
        return [each.file.removeprefix("res://") for each in self.decoration]


def judge(failures: Iterable[Failure]) -> Verdict:
    """Separate causes from the failures that follow from them."""
    failed = {each.file: each for each in failures}
    failed_references = {
        name: [other for other in each.references if other in failed and other != name]
        for name, each in failed.items()
    }
    referrers: dict[str, list[str]] = {}
    for name, others in failed_references.items():
        for other in others:
            referrers.setdefault(other, []).append(name)
    causes = {name for name in failed if not failed_references[name]}
    causes |= failed.keys() - _reach(causes, referrers)  # cycles: each refers to another
    needed = _reach({name for name in failed if failed[name].required}, failed_references)
    essential = [
        each for name, each in failed.items() if name in causes & needed and not each.placeholder
    ]
    decoration = [each for name, each in failed.items() if name in causes and each.placeholder]
    has_consequences = len(causes) < len(failed)
    has_models = any(each.placeholder == MODEL for each in decoration)
    return Verdict(essential, decoration, bool(decoration) and (has_consequences or has_models))


def check(project: Path, scene: str | None, godot: Path, timeout_sec: float) -> Verdict | None:
    """Have Godot load the scene without playing it; None if it reports nothing."""
    with GodotProcess(
        ["--headless", "--path", project, "--script", SCRIPT],
        folder=project / ".godot",
        name="check",
        godot=godot,
        env={**os.environ, SCENE_VARIABLE: scene or ""},
    ) as process:
        with contextlib.suppress(GodotError):  # it hangs, but the game may not
            process.wait(f"the check of {project}", min(timeout_sec, TIMEOUT_SEC))
        for line in process.lines():
            if line.startswith(MARK):
                found = msgspec.json.decode(line.removeprefix(MARK), type=list[Failure])
                return judge(found)
    return None


def cannot_be_played(project: Path, failure: Failure, log: Path) -> GodotError:
    """The error for a file that the game cannot be played without."""
    if not failure.exists:
        problem = "does not exist"
    elif failure.file.endswith(".cs"):
        problem = "is C#, which needs Godot .NET (set GODOT_BIN to it)"
    else:
        problem = "does not compile" if failure.file.endswith(".gd") else "does not load"
    if failure.exists and (reason := _reason(log, failure.file)):
        problem += f": {reason}"
    return GodotError(
        f"{project} cannot be played: {failure.file}, needed by {failure.by}, {problem}; "
        f"the whole log is {log}"
    )


def placeholder_copy(project: Path) -> Path:
    """Where a project with placeholders is played: never in the user's own folder."""
    name = hashlib.sha256(str(project).encode()).hexdigest()[:16]
    return paths.home() / "projects" / f"{name}-placeholders"


def write_placeholders(project: Path, decoration: Iterable[Failure]) -> Path:
    """Update the copy and put placeholders in it; returns the copy."""
    target = placeholder_copy(project)
    remaps = {f"{each.file.removeprefix('res://')}.remap": each for each in decoration}
    for name in set(project_files(target)) - remaps.keys() - set(project_files(project)):
        (target / name).unlink(missing_ok=True)
    copy_changed(project, target)
    try:
        shutil.copytree(
            project / ".godot",
            target / ".godot",
            ignore=shutil.ignore_patterns(*NOT_COPIED),
            dirs_exist_ok=True,
        )
    except (OSError, shutil.Error) as error:
        raise UserError(f"cannot copy {project} to {target}: {error}") from error
    for name, each in remaps.items():
        kind = each.placeholder
        placeholder = f"{PLACEHOLDERS}/{kind}.{'tscn' if kind == MODEL else 'tres'}"
        write_whole(target / placeholder, CONTENT.get(kind, EMPTY.format(kind=kind)).encode())
        # As in exported games, Godot loads what this names instead of the missing file.
        write_whole(target / name, f'[remap]\n\npath="res://{placeholder}"\n'.encode())
    return target


def copy_changed(project: Path, target: Path) -> None:
    """Copy every file of a project whose size or time differs from its copy."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in project_files(project):
            source, copy = project / name, target / name
            new, old = source.stat(), copy.stat() if copy.exists() else None
            if old and (old.st_size, old.st_mtime_ns) == (new.st_size, new.st_mtime_ns):
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)  # not its mode: the copy must be writable
            os.utime(copy, ns=(new.st_atime_ns, new.st_mtime_ns))
    except OSError as error:
        raise UserError(f"cannot copy {project} to {target}: {error}") from error


def project_files(project: Path) -> list[str]:
    """All files that Godot reads: none whose name, or whose folder's, begins with a dot."""
    found: list[str] = []
    for folder, folders, names in os.walk(project):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths_here = [Path(folder) / name for name in names if not name.startswith(".")]
        found += [path.relative_to(project).as_posix() for path in paths_here if path.is_file()]
    return sorted(found)


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more."""
    more = f", +{len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _reach(start: set[str], edges: dict[str, list[str]]) -> set[str]:
    found, ahead = set(start), list(start)
    while ahead:
        new = set(edges.get(ahead.pop(), ())) - found
        found |= new
        ahead += new
    return found


def _reason(log: Path, file: str) -> str:
    """The error Godot printed about a file, else about any script."""
    text = log.read_text(errors="replace")
    said = re.findall(r"^SCRIPT ERROR: (.*)\n\s+at: .*\((.*)\)$", text, re.MULTILINE)
    of_resources = re.findall(r"^ERROR: (res://.+?:\d+) - (Parse Error.*)$", text, re.MULTILINE)
    said += [(what, where) for where, what in of_resources]
    best = [each for each in said if each[1].startswith(file)] or said
    return " at ".join(best[0]) if best else ""
