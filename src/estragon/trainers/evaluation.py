"""How well a model plays when a game's parameters are drawn from ranges; `estragon eval game`.

The ranges of up to two parameters are divided into cells, each of which is played as often.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from estragon.support.errors import UserError
from estragon.support.parameters import Plan, Sampler, Samplers, Values
from estragon.trainers.players import OpenPlayer

MAX_AXES = 2


@dataclasses.dataclass(frozen=True)
class GridPlan(Plan):
    """A plan whose draws go through the cells in turn; within a cell they are random."""

    edges: dict[str, list[float]]
    """By parameter whose range is divided, the ends of its cells."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each parameter."""
        return tuple(len(ends) - 1 for ends in self.edges.values())

    def samplers_of(self, lesson: int, episode: int) -> Samplers:
        """Of an episode: those of the plan, but within the episode's cell."""
        samplers = dict(self.samplers[lesson])
        places = np.unravel_index(episode % math.prod(self.shape), self.shape) if self.edges else ()
        for (name, ends), place in zip(self.edges.items(), places, strict=True):
            cell = ends[int(place) : int(place) + 2]
            samplers[name] = (
                Sampler(log_uniform=cell) if samplers[name].log_uniform else Sampler(uniform=cell)
            )
        return samplers


def grid_of(plan: Plan, cells: int) -> GridPlan:
    """A plan with the ranges of its first two uniform or log_uniform parameters divided."""
    if len(plan.lessons) > 1:
        raise UserError("expected parameters without a curriculum to evaluate in")
    edges: dict[str, list[float]] = {}
    for name, sampler in plan.samplers[0].items():
        low, high = sampler.uniform or sampler.log_uniform or (0.0, 0.0)
        if low < high and len(edges) < MAX_AXES:
            spaced = np.geomspace if sampler.log_uniform else np.linspace
            edges[name] = spaced(low, high, cells + 1).tolist()
    return GridPlan(plan.lessons, plan.samplers, edges)


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
        "axes": [{"name": name, "edges": ends} for name, ends in plan.edges.items()],
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
