"""Parameter files for the counter game, and what was played with them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from estragon.support.parameters import Plan
from estragon.trainers.curriculum import RunCurriculum

LIGHT = {
    "name": "light",
    "parameters": {"gravity": {"uniform": [1, 5]}},
    "until": {"success_rate": 0.8, "key": "won", "window": 20, "min_episodes": 10},
}
HEAVY = {"name": "heavy", "parameters": {"gravity": {"uniform": [11, 20]}}}
PLAN: dict[str, Any] = {"parameters": {"map": "large"}, "curriculum": [LIGHT, HEAVY]}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"parameters": {"gravty": 1}}, "no such parameter; it has gravity, map"),
    "range": ({"parameters": {"gravity": {"uniform": [1, 21]}}}, "expected 0 to 20, got 1 to 21"),
    "unreachable": ({"curriculum": [HEAVY, LIGHT]}, "light is never reached"),
    "no such key": (
        {"curriculum": [LIGHT | {"until": {"success_rate": 0.8}}, HEAVY]},
        "lesson light: until success_rate: the game's info has no 'success'; it has won",
    ),
}
"""What is refused before the training, and why."""


def write(path: Path, sections: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(sections))
    return str(path)


def played(monkeypatch: pytest.MonkeyPatch, parameter: str = "gravity") -> list[tuple[int, float]]:
    """Lesson and gravity, or another parameter, of every episode that ends from now on."""
    found: list[tuple[int, float]] = []
    add = RunCurriculum.add

    def watched(self: RunCurriculum, reward: float, info: Any, **more: Any) -> bool:
        found.append((more["lesson"], info["parameters"][parameter]))
        return add(self, reward, info, **more)

    monkeypatch.setattr(RunCurriculum, "add", watched)
    return found


def draw(seed: int, lesson: int, number: int, sections: dict[str, Any] = PLAN) -> float:
    """The gravity of a draw, as it is sent."""
    return float(f"{Plan.parse(sections).draw(lesson, seed, number)['gravity']:.12g}")
