"""Jobs are tested as learning is: with one torch thread in the process of the tests."""

from tests.selfplay.conftest import one_torch_thread

__all__ = ["one_torch_thread"]
