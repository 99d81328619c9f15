"""The restart budget: some failures are forgiven, a steady stream of them is not."""

import pytest

from estragon.godot.process import GodotError, RestartBudget


def test_more_restarts_than_allowed_in_the_window() -> None:
    now = 0.0
    budget = RestartBudget(2, 60.0, clock=lambda: now)
    budget.spend(GodotError("first"))
    now = 30.0
    budget.spend(GodotError("second"))
    now = 59.0
    with pytest.raises(GodotError, match="given up after 2 restarts within 60 s; third"):
        budget.spend(GodotError("third"))


def test_old_restarts_are_forgotten() -> None:
    now = 0.0
    budget = RestartBudget(2, 60.0, clock=lambda: now)
    while now < 300.0:
        budget.spend(GodotError("again"))
        now += 30.0
