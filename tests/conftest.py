"""Fixtures that every test may use."""

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run: a fuzz test that fails, fails for everybody.
# Machines may be busy: how long it takes says nothing about what is tested.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")

pytest_plugins = ["tests.prove"]

LONGEST_FIRST = (
    "test_docs.py",
    "test_live.py",
    "test_real_godot.py",
    "test_train_tag.py",
    "test_project.py",
    "test_bench.py",
    "test_install.py",
    "test_film.py",
    "test_lost_games.py",
)
"""Files that take a minute or more: begun last, one would go on when all others are done."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; all others stay in their order."""
    ranks = {name: rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))
