"""The test games with the addon in them, imported once."""

from pathlib import Path

import pytest

from tests.godot.addon.cast import Stage
from tests.godot.addon.peer import staged


@pytest.fixture(scope="session")
def counter(godot: Path) -> Path:
    return staged("counter")


@pytest.fixture(scope="session")
def cast_project(godot: Path) -> Path:
    return staged("cast")


@pytest.fixture
def stage(cast_project: Path, tmp_path: Path) -> Stage:
    return Stage(cast_project, tmp_path)
