"""The long runs of `make prove`: resumable, with their results kept in docs/results.md.

A proof that passed is not run again until something it could depend on (the package, the game's
data, the tests) has changed; an interrupted `make prove` therefore goes on where it stopped.
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
)
HEAD = """\
# Results

What `make prove` measured; the newest run of each proof. Speed is `make bench`'s business.

| proof | result | date | commit | machine | seconds |
|---|---|---|---|---|---|
"""


class Recorder(Protocol):
    """Writes a row of docs/results.md; only what held is not run again."""

    def __call__(self, name: str, result: str, *, held: bool = True) -> None:
        """Keep a result."""
        ...


def run_folder(name: str) -> Path:
    """A folder that survives an interrupted `make prove`, until the sources change."""
    return DONE / f"{name}-{_sources()[:16]}"


@pytest.fixture
def record_result(request: pytest.FixtureRequest) -> "Recorder":
    """Call it with a proof's name and what was measured, and whether all of it held."""
    start = time.monotonic()

    def record(name: str, result: str, *, held: bool = True) -> None:
        _write_row(name, result, time.monotonic() - start)
        if held:
            DONE.mkdir(exist_ok=True)
            _stamp(request.node.nodeid).write_text(result)

    return record


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out proofs that hold already for these very sources."""
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
    if RESULTS.exists():
        lines = RESULTS.read_text().splitlines()
        rows = {line.split("|")[1].strip(): line for line in lines[6:] if line.startswith("|")}
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    cells = (name, result, date, _commit(), machine, f"{seconds:.0f}")
    rows[name] = "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
    page = HEAD + "\n".join(rows[key] for key in sorted(rows)) + "\n"
    write_whole(RESULTS, page.encode())


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "tests", "godot")
    return git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")
