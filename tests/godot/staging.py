"""Small projects, fake programs and patient looks, for the tests of Godot."""

import hashlib
import inspect
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from estragon.godot.find import check_version, require_godot
from estragon.godot.project import WRITTEN_BY_GODOT, import_project
from estragon.support.files import locked, write_whole

KEPT = Path(__file__).resolve().parents[2] / "build" / "test games"
"""With a space, as people have them."""

ENDLESS = """\
extends Node

func _ready() -> void:
	print("ready in the arena")
"""


def write_project(folder: Path, script: str = ENDLESS, settings: str = "") -> Path:
    """A project whose main scene is one node with this script."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "project.godot").write_text(
        'config_version=5\n\n[application]\n\nconfig/name="Staged"\n'
        f'run/main_scene="res://main.tscn"\n\n{settings}'
    )
    (folder / "main.tscn").write_text(
        '[gd_scene load_steps=2 format=3]\n\n[ext_resource type="Script" path="res://main.gd" '
        'id="1"]\n\n[node name="Main" type="Node"]\nscript = ExtResource("1")\n'
    )
    (folder / "main.gd").write_text(script)
    return folder


def kept_project(name: str, project: Path) -> Path:
    """An imported copy that outlives the run: starting Godot's editor takes seconds.

    It is imported again only when the project, or Godot, is another than last time.
    """
    kept = KEPT / name
    with locked(KEPT / f"{name}.lock", timeout_sec=300.0):
        files = _files(project)
        for file in _files(kept) - files:
            if file.suffix not in WRITTEN_BY_GODOT or file.with_suffix("") not in files:
                (kept / file).unlink()
        for file in files:
            copy, content = kept / file, (project / file).read_bytes()
            if not copy.is_file() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                write_whole(copy, content)
        return import_project(kept)


def kept_files(name: str, make: Callable[[Path], object], *sources: Path) -> Path:
    """A folder that `make` fills, for example with an exported game; it outlives the run.

    It is filled again only when a source (a file or a project), Godot, or the file that `make` is
    in has changed.
    """
    code = inspect.getsourcefile(make)
    assert code is not None
    digest = hashlib.sha256(check_version(require_godot()).encode())
    for source in (Path(code), *sources):
        for file in sorted(_files(source)) if source.is_dir() else [Path()]:
            content = hashlib.sha256((source / file).read_bytes()).hexdigest()
            digest.update(f"{source.name}/{file.as_posix()} {content}\n".encode())
    folder, stamp = KEPT / name, KEPT / f"{name}.sha256"
    with locked(KEPT / f"{name}.lock", timeout_sec=300.0):
        if not stamp.is_file() or stamp.read_text() != digest.hexdigest():
            stamp.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            make(folder)
            write_whole(stamp, digest.hexdigest().encode())
    return folder


def _files(project: Path) -> set[Path]:
    found = {path.relative_to(project) for path in project.rglob("*") if path.is_file()}
    return {path for path in found if path.parts[0] != ".godot"}


def write_program(path: Path, body: str) -> Path:
    """A shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def write_fake_godot(path: Path, version: str) -> Path:
    """A program that only knows its version; old Godots answer with status 255."""
    return write_program(path, f"echo {version}; exit 255")


def alive(pid: int) -> bool:
    """Whether a process exists; one that is dead but not yet reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return not Path("/proc/self").exists()


def until(seen: Callable[[], object], timeout_sec: float, what: str) -> None:
    """Look until it is so, or fail."""
    deadline = time.monotonic() + timeout_sec
    while not seen():
        assert time.monotonic() < deadline, f"not within {timeout_sec} s: {what}"
        time.sleep(0.02)
