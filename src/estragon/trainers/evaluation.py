"""How well a model plays when a game's parameters are drawn from ranges; `estragon eval game`.

The ranges of up to two parameters are divided into cells, each of which is played as often.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from estragon.support.errors import UserError
from estragon.support.parameters import Plan, Sampler, Values
from estragon.trainers.players import OpenPlayer

MAX_AXES = 2


@dataclasses.dataclass(frozen=True)
class Axis:
    """A parameter whose range is divided into cells, evenly or on a logarithmic scale."""

    name: str
    low: float
    high: float
    log: bool

    def at(self, share: float) -> float:
        """The value at a share of the range, 0 to 1."""
        if self.log:
            return math.exp(math.log(self.low) + share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    def share_of(self, value: float) -> float:
        """The inverse of `at`."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclasses.dataclass(frozen=True)
class GridPlan(Plan):
    """A plan whose draws go through the cells in turn; within a cell they are random."""

    axes: tuple[Axis, ...] = ()
    cells: int = 1
    """Per axis."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return (self.cells,) * len(self.axes)

    def draw(self, lesson: int, seed: int, episode: int) -> Values:
        """The values of an episode."""
        values = super().draw(lesson, seed, episode)
        place = np.unravel_index(episode % math.prod(self.shape), self.shape) if self.axes else ()
        for axis, cell in zip(self.axes, place, strict=True):
            within = axis.share_of(float(values[axis.name]))
            values[axis.name] = axis.at((int(cell) + within) / self.cells)
        return values


def grid_of(plan: Plan, cells: int) -> GridPlan:
    """A plan with the ranges of its first two uniform or log_uniform parameters divided."""
    if len(plan.lessons) > 1:
        raise UserError("expected parameters without a curriculum to evaluate in")
    axes = [found for name, each in plan.samplers[0].items() if (found := _axis(name, each))]
    return GridPlan(plan.lessons, plan.samplers, tuple(axes[:MAX_AXES]), cells)


def _axis(name: str, sampler: Sampler) -> Axis | None:
    for ends, log in ((sampler.uniform, False), (sampler.log_uniform, True)):
        if isinstance(ends, list) and ends[0] < ends[1]:
            return Axis(name, ends[0], ends[1], log)
    return None


def evaluate(
    player: OpenPlayer,
    plan: GridPlan,
    episodes: int,
    *,
    success_key: str,
    max_steps: int,
    report: Callable[[float, float], None],
) -> dict[str, Any]:
    """Play the first `episodes` draws, rounded up to as many in every cell.

    All of them count, however long they last: stopping at a number of episodes would favour short
    ones.

    Returns:
        Means over all, and over each cell in nested lists: `return`, and `success_rate` if the
        game's infos have the key.
    """
    count = math.prod(plan.shape)
    wanted = -(-episodes // count) * count
    numbers = {_key(player.feed.draw(number)): number for number in range(wanted)}
    returns, successes = np.full(wanted, np.nan), np.full(wanted, np.nan)
    steps = played = 0
    # Without parameters that vary, episodes cannot be told apart: the first ones count.
    alike = len(numbers) < wanted
    while played < wanted and steps < max_steps:
        for reward, _, info in player.step():
            number = played if alike else numbers.pop(_key(info.get("parameters", {})), None)
            if number is None or number >= wanted or "game_lost" in info:
                continue
            played += 1
            returns[number] = reward
            if success_key in info:
                successes[number] = float(bool(info[success_key]))
        steps += player.num_agents
        report(played, wanted)
    if not played:
        raise UserError(f"no episode ended within {max_steps:,} steps (--max-steps)")
    result: dict[str, Any] = {
        "episodes": played,
        "axes": [
            {"name": axis.name, "edges": [axis.at(n / plan.cells) for n in range(plan.cells + 1)]}
            for axis in plan.axes
        ],
        "return": float(np.nanmean(returns)),
        "return_std": float(np.nanstd(returns)),
        "cells": {"return": _by_cell(returns, plan.shape)},
    }
    if np.isfinite(successes).any():
        result["success_rate"] = float(np.nanmean(successes))
        result["cells"]["success_rate"] = _by_cell(successes, plan.shape)
    return result


def _by_cell(values: np.ndarray, shape: tuple[int, ...]) -> Any:
    """The mean of every cell; None where nothing was played."""
    rows = values.reshape(-1, *shape)
    played = np.isfinite(rows).sum(axis=0)
    means = np.asarray(np.nansum(rows, axis=0) / np.maximum(played, 1)).astype(object)
    means[played == 0] = None
    return means.tolist()


def _key(values: Values) -> tuple[tuple[str, str], ...]:
    """What tells draws apart."""
    return tuple(
        (name, value if isinstance(value, str) else f"{value:.9g}")
        for name, value in sorted(values.items())
    )
