"""What a bug report has to say about the machine: versions, platform, Godot, settings."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

from estragon import __version__
from estragon.godot.find import search_godot
from estragon.judge.redact import Redactor
from estragon.support import paths
from estragon.support.errors import UserError

PACKAGES = (
    "numpy",
    "numba",
    "torch",
    "gymnasium",
    "pettingzoo",
    "websockets",
    "msgspec",
    "matplotlib",
    "pillow",
    "imageio-ffmpeg",
    "stable-baselines3",
    "ray",
    "onnx",
    "onnxruntime",
)
SETTINGS = ("AI_", "ESTRAGON_", "SELF_PLAY_", "GODOT_")
"""Environment variables that begin so steer the product."""
GIT_TIMEOUT_SEC = 20.0


def report_machine(redactor: Redactor) -> list[str]:
    """One finding a line; nothing that is missing is an error."""
    return [
        f"collected: {time.strftime('%Y-%m-%dT%H:%M:%S%z')}",
        f"estragon: {__version__} in {paths.PACKAGE}",
        f"git: {_revision(paths.PACKAGE)}",
        f"folder: {Path.cwd()}",
        f"python: {sys.version.split()[0]} ({platform.python_implementation()}) {sys.executable}",
        f"platform: {platform.platform()}, {platform.machine()}",
        f"cores: {os.cpu_count()}",
        f"free disk: {shutil.disk_usage('.').free // 10**6} MB",
        f"packages: {', '.join(_packages())}",
        f"godot: {_godot()}",
        "environment:",
        *(_environment(redactor) or ["  none that steers estragon"]),
    ]


def _packages() -> list[str]:
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return found


def _revision(folder: Path) -> str:
    """The commit this runs from, and whether files differ from it."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = len(_git(folder, "status", "--porcelain").splitlines())
    except (OSError, subprocess.SubprocessError):
        return "not a checkout"
    return f"{commit}, {changed} files changed since"


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=GIT_TIMEOUT_SEC,
    )
    return done.stdout.strip()


def _godot() -> str:
    try:
        search = search_godot()
    except UserError as error:
        return str(error)
    if search.found is None:
        return "; ".join(["none", *search.skipped])
    return f"{search.found.version.text} ({search.found.origin}) {search.found.path}"


def _environment(redactor: Redactor) -> list[str]:
    return [
        f"  {redactor.variable(name, value)}"
        for name, value in sorted(os.environ.items())
        if name.startswith(SETTINGS)
    ]
