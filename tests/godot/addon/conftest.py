"""The counter game with the addon in it, imported once."""

from pathlib import Path

import pytest

from tests.godot.addon.peer import staged


@pytest.fixture(scope="session")
def counter(tmp_path_factory: pytest.TempPathFactory, godot: Path) -> Path:
    return staged("counter", tmp_path_factory.mktemp("a game"))
