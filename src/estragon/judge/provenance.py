"""What an evaluation was made from: the build of the game, the model, versions, the machine."""

import hashlib
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from estragon import __version__
from estragon.judge.evaluation_file import Build
from estragon.support.errors import UserError

PACKAGES = ("numpy", "torch", "stable-baselines3", "ray", "onnxruntime")
NOT_OF_THE_BUILD = {".godot", ".git", ".venv", "__pycache__"}
GIT_TIMEOUT_SEC = 20.0


def build_of(game: Path | None) -> Build:
    """Of a project folder or an exported game; empty for a game that runs in the editor."""
    if game is None or not game.exists():
        return Build()
    folder = game if game.is_dir() else game.parent
    commit = _git(folder, "rev-parse", "HEAD")
    changed = bool(commit and _git(folder, "status", "--porcelain", "--", str(game.absolute())))
    return Build(commit, changed, digest_of(game))


def commit_of(folder: Path) -> str:
    """The git commit of a folder, with a + if files differ from it; empty without git."""
    commit = _git(folder, "rev-parse", "HEAD")
    changed = commit and _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}+" if changed else commit


def digest_of(path: Path) -> str:
    """A digest of a file, or of all files in a folder and their names."""
    digest = hashlib.sha256()
    try:
        for file in _files(path):
            digest.update(file.relative_to(path).as_posix().encode() + b"\0")
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    return digest.hexdigest()[:16]


def versions(godot: str = "") -> dict[str, str]:
    """Of Python, of what plays the model, and of Godot."""
    found = {"estragon": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | ({"godot": godot} if godot else {})


def machine() -> str:
    """A short description of this machine; no name of a host or a user."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def command() -> str:
    """The command line of this process."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def now() -> str:
    """The time, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in NOT_OF_THE_BUILD)
        yield from (Path(folder, name) for name in sorted(names))


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=GIT_TIMEOUT_SEC,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
