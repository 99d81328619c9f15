"""A debug bundle: logs, metrics, policies and machine data in one folder, without secrets."""

import contextlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from estragon import __version__
from estragon.godot.find import search_godot
from estragon.godot.user_data import own_folders
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import write_new
from estragon.support.runs import LOGS, latest_run

RUN_FILES = ("metrics.csv", "metadata.json", "strength.csv", "cross_play.json", "summary.json")
POLICIES = ("policy", "policy_seeker", "policy_hider")
LARGEST_TEXT, LARGEST_LOG, LARGEST_POLICY = 4 * 2**20, 2**18, 16 * 2**20
LARGEST_CHART, LARGEST_VIDEO = 4 * 2**20, 32 * 2**20
"""Bytes; of longer text the end is kept, larger binary files are left out."""
ALL_CHARTS, ALL_VIDEOS = 16 * 2**20, 64 * 2**20
"""Bytes of all files of a kind; the newest are kept."""
NEWEST_LOGS, NEWEST_TRAJECTORIES = 8, 5
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
"""Prefixes of the environment variables that configure Estragon."""
GIT_TIMEOUT_SEC = 20.0
SECRET_NAME = re.compile(r"token|key|secret|passw|credential|authorization", re.IGNORECASE)
"""Names of things that hold a secret."""
HIDDEN = "[redacted]"
SHORTEST_SECRET = 8
"""Shorter values are not searched for in text: they would match everywhere."""
ASSIGNED = re.compile(
    r"""((?:token|key|secret|passw|credential|authorization)[\w.-]{0,40}["']?\s{0,9}"""
    r"""(?:[:=]|\bis\b)\s{0,9}["']?(?:(?:bearer|basic)\s{1,9})?)([^\s"',;&<>]+)""",
    re.IGNORECASE,
)
"""`API_TOKEN=…`, `"password": "…"`, `Authorization: Bearer …`, `the token is …`."""
BEARER = re.compile(r"(\bbearer\s{1,9})([\w.~+/=-]{8,})", re.IGNORECASE)
IN_ADDRESS = re.compile(r"(://[^\s/:@]{0,99}:)([^\s/@]{1,999})(?=@)")
"""`https://name:…@host`."""


class Redactor:
    """Removes secrets from text: those of an environment, and what looks like one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        values = {value for name, value in environment.items() if SECRET_NAME.search(name)}
        self._values = sorted((v for v in values if len(v) >= SHORTEST_SECRET), key=len)[::-1]

    def clean(self, text: str) -> str:
        """The text without secrets."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        for pattern in (ASSIGNED, BEARER, IN_ADDRESS):
            text = pattern.sub(rf"\g<1>{HIDDEN}", text)
        return text

    def variable(self, name: str, value: str) -> str:
        """An environment variable with its secrets removed."""
        return f"{name}={HIDDEN if SECRET_NAME.search(name) else self.clean(value)}"


class Bundle:
    """A folder that is being filled; created with its first file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.redactor = Redactor(os.environ)
        self.written: list[Path] = []
        self.missing: list[str] = []
        """One line per file that could not be included, and why."""

    def add_text(self, source: Path, name: str, most: int = LARGEST_TEXT) -> None:
        """Add a text file without secrets; of a long one, its first line and its end."""

        def read() -> bytes:
            text, left_out = _ends_of(source, most)
            if left_out:
                self.missing.append(f"cut: {source}: {left_out} bytes after its first line")
            return self.redactor.clean(text).encode()

        self._add(source, name, read)

    def add_binary(self, source: Path, name: str, most: int) -> int:
        """Add a file unchanged if it has at most `most` bytes; returns the bytes added."""

        def read() -> bytes:
            if (size := source.stat().st_size) > most:
                raise UserError(f"{size / 2**20:.1f} MB, at most {most / 2**20:.4g} MB fit")
            return source.read_bytes()

        return self._add(source, name, read)

    def _add(self, source: Path, name: str, read: Callable[[], bytes]) -> int:
        if source.absolute().is_relative_to(self.folder.absolute()):
            return 0  # it is in the bundle already
        try:
            if source.is_file():
                self.written.append(write_new(self.folder / name, data := read()))
                return len(data)
            self.missing.append(f"not found: {source}")
        except (OSError, UserError) as error:
            self.missing.append(f"left out: {source}: {error}")
        return 0


def collect(folder: Path, extra_logs: dict[str, Path | None], root: Path = Path()) -> Bundle:
    """Fill a folder with what is found under `root`; `metadata.txt`, written last, lists it."""
    bundle = Bundle(folder)
    run = root / LOGS  # without latest_run.txt, the newest metrics
    with contextlib.suppress(UserError):
        run = latest_run(root)
    for name in RUN_FILES:
        bundle.add_text(run / name, f"run/{name}")
    for policy in POLICIES:
        for suffix in (".npz", ".pt"):
            name = f"{policy}{suffix}"
            bundle.add_binary(root / "trainer" / name, f"policies/{name}", LARGEST_POLICY)
    for what, log in extra_logs.items():
        if log is not None:
            bundle.add_text(log, f"logs/{what}.log", LARGEST_LOG)
    _add_newest(bundle, _logs_near(folder, root), NEWEST_LOGS, "logs", LARGEST_LOG)
    matches = paths.trajectories_folder().glob("*.jsonl")
    _add_newest(bundle, matches, NEWEST_TRAJECTORIES, "trajectories", LARGEST_TEXT)
    _add_pictures(bundle, root)
    _write_metadata(bundle, run)
    return bundle


def _add_newest(bundle: Bundle, files: Iterable[Path], most: int, kind: str, size: int) -> None:
    newest = _newest_first(files)
    for path in newest[:most]:
        bundle.add_text(path, f"{kind}/{path.name}", size)
    if not newest:
        bundle.missing.append(f"not found: any {kind}")


def _add_pictures(bundle: Bundle, root: Path) -> None:
    """Charts, films of training, and videos of frames and matches."""
    data = paths.data_root()
    videos = [*data.glob("*.mp4"), *paths.trajectories_folder().glob("*.mp4")]
    kinds = {
        "charts": ((root / "charts").glob("*.png"), LARGEST_CHART, ALL_CHARTS),
        "films": (root.glob("learn_progress-*.mp4"), LARGEST_VIDEO, ALL_VIDEOS),
        "encodes": (videos, LARGEST_VIDEO, ALL_VIDEOS),
    }
    for kind, (found, each, together) in kinds.items():
        files, left = _newest_first(found), together
        for path in files:
            left -= bundle.add_binary(path, f"{kind}/{path.name}", min(each, left))
        if not files:
            bundle.missing.append(f"not found: any {kind}")


def _logs_near(folder: Path, root: Path) -> list[Path]:
    """Logs of training, and those the game keeps in `user://`."""
    logs = [*(root / LOGS).rglob("*.log"), *(root / "debug").glob("*/*.log")]
    for game in own_folders():
        logs += (game / "logs").glob("*.log")
    return [log for log in logs if not log.absolute().is_relative_to(folder.absolute())]


def _write_metadata(bundle: Bundle, run: Path) -> None:
    lines = [*report_machine(bundle.redactor), f"run: {run}", "files:"]
    lines += [f"  {path.relative_to(bundle.folder)}" for path in bundle.written]
    lines += bundle.missing
    data = ("\n".join(lines) + "\n").encode(errors="backslashreplace")
    bundle.written.append(write_new(bundle.folder / "metadata.txt", data))


def _newest_first(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=lambda path: (_changed(path), path), reverse=True)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _ends_of(source: Path, most: int) -> tuple[str, int]:
    """The text of a file, and how many bytes are cut from the middle of a long one.

    Its first line, which may name columns, and its end are kept.
    """
    size = source.stat().st_size
    with source.open("rb") as stream:
        first = stream.readline(most // 2)
        if size > most:
            stream.seek(size - most // 2)
            stream.readline()  # most likely half a line
        left_out = stream.tell() - len(first)
        text = first + stream.read(most)
    return text.decode(errors="replace"), left_out


def report_machine(redactor: Redactor) -> list[str]:
    """One fact per line; nothing missing is an error."""
    settings = [
        f"  {redactor.variable(name, value)}"
        for name, value in sorted(os.environ.items())
        if name.startswith(SETTINGS)
    ]
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
        *(settings or ["  none that configures estragon"]),
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
    """The commit this runs from, and how many files differ from it."""
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
    return f"{search.found.version} ({search.found.origin}) {search.found.path}"
