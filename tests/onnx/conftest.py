"""Both engines, started once."""

from collections.abc import Iterator

import pytest

from estragon.onnx.engines import Godot, Runtime


@pytest.fixture(scope="session")
def godot_engine() -> Iterator[Godot]:
    """One Godot process for all models."""
    with Godot() as engine:
        yield engine


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    return Runtime()
