"""Fixtures that every test may use."""

from hypothesis import settings

# The same examples in every run: a fuzz test that fails, fails for everybody.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")

pytest_plugins = ["tests.prove"]
