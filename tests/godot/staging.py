"""Small projects, fake programs and patient looks, for the tests of Godot."""

import os
import time
from collections.abc import Callable
from pathlib import Path

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
