"""The long runs of `make prove`: resumable, with their results in docs/results.md.

A proof that passed is not repeated until something it could depend on (the package, the game's
data, the tests) has changed, so an interrupted `make prove` resumes where it stopped.
"""

import hashlib
import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest

from estragon.support.files import write_whole

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results.md"
DONE = ROOT / ".prove"
SOURCES = (
    ("src", "*.py"),
    ("tests", "*.py"),
    ("godot/tag", "*.json"),
    ("godot/tag", "*.gd"),
    ("godot/addons", "*.gd"),
    ("godot/spacetime", "*.gd"),
    ("godot/rl_training", "*.gd"),
    ("godot/examples", "*.gd"),
    ("godot/examples", "*.yaml"),
)
HEAD = """\
# Results

The latest run of each proof of `make prove`. [Speed](#speed) is measured by `make bench`.

| proof | result | date | commit | machine | seconds |
|---|---|---|---|---|---|
"""
SPEED = "\n## Speed\n"
"""The section after the table, written by hand from `make bench`."""


class Recorder(Protocol):
    """Writes a row of docs/results.md; a result that did not hold is measured again."""

    def __call__(self, name: str, result: str, *, held: bool = True) -> None:
        """Record a result."""
        ...


def run_folder(name: str) -> Path:
    """A folder that survives an interrupted `make prove`, until the sources change."""
    return DONE / f"{name}-{_sources()[:16]}"


@pytest.fixture
def record_result(request: pytest.FixtureRequest) -> "Recorder":
    """Call with a proof's name, what was measured, and whether all of it held."""
    start = time.monotonic()

    def record(name: str, result: str, *, held: bool = True) -> None:
        _write_row(name, result, time.monotonic() - start)
        if held:
            DONE.mkdir(exist_ok=True)
            _stamp(request.node.nodeid).write_text(result)

    return record


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect proofs that passed with these sources."""
    if config.getoption("-m") != "prove":
        return
    done = [item for item in items if _stamp(item.nodeid).exists()]
    if done:
        config.hook.pytest_deselected(items=done)
        items[:] = [item for item in items if item not in done]


def _stamp(nodeid: str) -> Path:
    return DONE / hashlib.sha256(f"{_sources()} {nodeid}".encode()).hexdigest()[:32]


def _sources() -> str:
    digest = hashlib.sha256()
    for folder, pattern in SOURCES:
        for path in sorted((ROOT / folder).rglob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _write_row(name: str, result: str, seconds: float) -> None:
    rows = {}
    speed = ""
    if RESULTS.exists():
        table, heading, speed = RESULTS.read_text().partition(SPEED)
        speed = heading + speed
        lines = table.splitlines()[6:]
        rows = {line.split("|")[1].strip(): line for line in lines if line.startswith("|")}
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    cells = (name, result, date, _commit(), machine, f"{seconds:.0f}")
    rows[name] = "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
    page = HEAD + "\n".join(rows[key] for key in sorted(rows)) + "\n" + speed
    write_whole(RESULTS, page.encode())


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "tests", "godot")
    return git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")
