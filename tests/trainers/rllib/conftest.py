"""One local Ray for all tests of a worker: it takes longest to start."""

import os
from collections.abc import Iterator

import pytest

from estragon.trainers.rllib.ray_session import ray_session


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """A Ray that stays; it starts processes only when a test needs them."""
    os.environ["RAY_prestart_worker_first_driver"] = "0"  # noqa: SIM112 - as Ray spells it
    with ray_session(None, 4):
        yield
