"""A small student of a policy of tag learns from the states that it visits itself."""

import numpy as np
import pytest

from estragon.selfplay import distill as distillation
from estragon.selfplay.distill import distill
from estragon.tag.arenas import Arenas
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import load_layouts
from estragon.tag.rules import load_rules
from tests.selfplay.conftest import one_torch_thread

__all__ = ["one_torch_thread"]

RULES = load_rules()
LAYOUTS = load_layouts("colonnade", RULES)


def teacher() -> FrozenPolicy:
    policy = FrozenPolicy.untrained(RULES, "hider", 3, hidden=48)
    policy.weights[-1] = (policy.weights[-1][0] * 100.0, policy.weights[-1][1])
    return policy


def agreement(one: FrozenPolicy, other: FrozenPolicy, seen: np.ndarray) -> float:
    choices = len(one.moves)
    first, second = (policy.scores(seen)[:, :choices].argmax(axis=1) for policy in (one, other))
    return float(np.mean(first == second))


def test_it_comes_to_agree_with_its_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distillation, "ARENAS", 32)
    monkeypatch.setattr(distillation, "DECISIONS", 40)
    monkeypatch.setattr(distillation, "BATCH", 64)
    master = teacher()
    visited: list[np.ndarray] = []
    step = Arenas.step

    def watched(self: Arenas, actions: np.ndarray, **more: bool) -> object:
        found = step(self, actions, **more)
        visited.append(found.observations[~self.is_seeker].copy())
        return found

    monkeypatch.setattr(Arenas, "step", watched)
    words = {"rules": RULES, "layouts": LAYOUTS, "seed": 1}
    opponents = [Bot("chaser", RULES), Bot("random", RULES)]
    student = distill(master, (16, 12), opponents, rounds=4, **words)  # type: ignore[arg-type]
    assert [weight.shape[1] for weight, _ in student.weights] == [16, 12, len(master.moves) + 2]
    assert student.role == "hider"
    # the last round is the student's own
    own = np.concatenate(visited[-distillation.DECISIONS :])
    fresh = FrozenPolicy.untrained(RULES, "hider", 1, (16, 12))
    assert agreement(student, master, own) > 0.5
    assert agreement(student, master, own) > agreement(fresh, master, own) + 0.1
    again = distill(master, (16, 12), opponents, rounds=4, **words)  # type: ignore[arg-type]
    assert np.array_equal(again.weights[0][0], student.weights[0][0])
