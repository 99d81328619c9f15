"""Cells: every one is played as often, evenly within it, whatever the scale."""

import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from estragon.support.errors import UserError
from estragon.support.parameters import Plan
from estragon.trainers.evaluation import evaluate, grid_of
from estragon.trainers.metrics import EndedEpisode
from estragon.trainers.players import OpenPlayer

SECTIONS = {
    "parameters": {
        "map": "large",
        "wind": {"normal": [0, 1]},
        "friction": {"uniform": [0.0, 1.0]},
        "radius": {"log_uniform": [0.1, 10.0]},
        "force": {"uniform": [3.0, 4.0]},
    }
}


def test_draws_go_through_the_cells_in_turn() -> None:
    plan = grid_of(Plan.parse(SECTIONS), 4)
    assert list(plan.edges) == ["friction", "radius"]
    drawn = [plan.draw(0, 5, n) for n in range(160)]
    cells = Counter(
        (int(4 * float(v["friction"])), int(2 * math.log10(10 * float(v["radius"])))) for v in drawn
    )
    assert set(cells.values()) == {10}
    assert len(cells) == 16
    assert len({v["force"] for v in drawn}) == 160
    assert drawn == [plan.draw(0, 5, n) for n in range(160)]


class Feed:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def draw(self, number: int) -> dict[str, Any]:
        return self._plan.draw(0, 0, number)


def games_with(feed: Any) -> Any:
    return SimpleNamespace(parameter_feed=feed)


def test_long_episodes_count_as_well() -> None:
    """A player whose episodes with friction end late, when many others have ended twice."""
    plan = grid_of(Plan.parse({"parameters": {"friction": {"uniform": [0.0, 1.0]}}}), 2)
    feed: Any = Feed(plan)
    waiting = sorted(range(40), key=lambda n: (feed.draw(n)["friction"] > 0.5, n))

    def step() -> list[EndedEpisode]:
        values = feed.draw(waiting.pop(0))
        return [(values["friction"], 3, {"parameters": values})]

    result = evaluate(
        OpenPlayer(1, step, games_with(feed)),
        plan,
        19,
        success_key="success",
        max_steps=1000,
        report=lambda *_: None,
    )
    assert result["episodes"] == 20
    low, high = result["cells"]["return"]
    assert 0.0 < low < 0.5 < high < 1.0
    assert "success_rate" not in result


def test_constants_alone_make_one_cell() -> None:
    plan = grid_of(Plan.parse({"parameters": {"wind": 0.5}}), 5)
    feed: Any = Feed(plan)
    info = {"parameters": {"wind": 0.5}, "success": True}
    player = OpenPlayer(1, lambda: [(2.0, 3, info)], games_with(feed))
    result = evaluate(player, plan, 4, success_key="success", max_steps=100, report=lambda *_: None)
    assert result["episodes"] == 4
    assert result["cells"] == {"return": 2.0, "success_rate": 1.0}


def test_a_curriculum_is_refused() -> None:
    lessons = [{"name": "a", "until": {"reward": 1}}, {"name": "b"}]
    with pytest.raises(UserError, match="without a curriculum"):
        grid_of(Plan.parse({"curriculum": lessons}), 5)
