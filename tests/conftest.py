"""Fixtures that every test may use."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from estragon.godot.display import has_display, require_xvfb
from estragon.godot.find import require_godot

if TYPE_CHECKING:
    from estragon.onnx.compare import GodotRuntime, OnnxRuntime

# The same examples in every run: a fuzz test that fails, fails for everybody.
# Machines may be busy: how long it takes says nothing about what is tested.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")

pytest_plugins = ["pytester", "tests.prove", "tests.quick"]

LONGEST_FIRST = (
    "test_docs.py",
    "test_algorithms.py",
    "test_train_tag.py",
    "test_godot_client.py",
    "test_live.py",
    "test_session.py",
    "test_godot_suite.py",
    "test_real_godot.py",
)
"""Files that take longest: begun last, one would go on when all others are done."""
TOGETHER = "tests/trainers/rllib/"
"""The files of this folder run in one process: each would start a Ray of its own."""


class ByFile(LoadFileScheduling):
    """Gives a file to one process, and a folder whose files share much."""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER if nodeid.startswith(TOGETHER) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile | None:
    """How `make test` spreads the tests over processes."""
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; all others stay in their order."""
    ranks = {name: rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


@pytest.fixture(scope="session")
def godot() -> Path:
    """The Godot of this machine, installed if there is none."""
    return require_godot()


@pytest.fixture(scope="session")
def godot_runtime(godot: Path) -> "Iterator[GodotRuntime]":
    """One Godot process that runs the ONNX models of all tests."""
    from estragon.onnx.compare import GodotRuntime

    with GodotRuntime() as engine:
        yield engine


@pytest.fixture(scope="session")
def onnx_runtime() -> "OnnxRuntime":
    """The other engine of ONNX models."""
    from estragon.onnx.compare import OnnxRuntime

    return OnnxRuntime()


@pytest.fixture(scope="session")
def drawing() -> None:
    """Pictures can be drawn; Xvfb is installed if there is neither a display nor one."""
    if not has_display():
        require_xvfb()


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which there is no Godot: an empty home, and none on the PATH."""
    monkeypatch.delenv("GODOT_BIN", raising=False)
    without = [
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not any(shutil.which(name, path=folder) for name in ("godot", "godot4"))
    ]
    monkeypatch.setenv("PATH", os.pathsep.join(without))
    home = tmp_path / "a home"
    monkeypatch.setenv("ESTRAGON_HOME", str(home))
    return home
