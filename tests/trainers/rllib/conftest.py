"""One local Ray for all tests of a worker: it takes longest to start."""

from collections.abc import Iterator

import pytest

from estragon.trainers.rllib.ray_session import ray_session


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """A Ray that stays."""
    with ray_session(None, 4):
        yield
