"""Both engines, started once."""

from collections.abc import Iterator

import pytest

from estragon.onnx.engines import GodotRuntime, OnnxRuntime


@pytest.fixture(scope="session")
def godot_engine() -> Iterator[GodotRuntime]:
    """One Godot process for all models."""
    with GodotRuntime() as engine:
        yield engine


@pytest.fixture(scope="session")
def runtime() -> OnnxRuntime:
    return OnnxRuntime()
