"""The test games with the addon in them, imported once."""

from pathlib import Path

import pytest

from tests.godot.addon.cast import Stage
from tests.godot.addon.peer import games_of_this_run, staged


@pytest.fixture(scope="session")
def counter(tmp_path_factory: pytest.TempPathFactory, godot: Path) -> Path:
    return staged("counter", games_of_this_run(tmp_path_factory))


@pytest.fixture(scope="session")
def cast_project(tmp_path_factory: pytest.TempPathFactory, godot: Path) -> Path:
    return staged("cast", games_of_this_run(tmp_path_factory))


@pytest.fixture
def stage(cast_project: Path, tmp_path: Path) -> Stage:
    return Stage(cast_project, tmp_path)
