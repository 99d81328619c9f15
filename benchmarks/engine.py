"""How fast the embedded engine plays: agent-steps a second, and how they grow with arenas."""

import json
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from estragon.judge.bench import Figure
from estragon.support import paths
from estragon.support.parallel import available_cores
from estragon.tag.arenas import Arenas
from estragon.tag.bots import BOTS, Bot

HEADLINE = 4096
GROWTH = (64, 256, 1024, 4096, 8192)
AGENTS = 2
ROUNDS = 5
"""Figures that are compared take turns, this often; each is the median of its turns."""


def measure(seconds: float) -> list[Figure]:
    """All figures of the engine."""
    cores = available_cores()
    runs = {count: _stepper(count, cores) for count in GROWTH}
    rates = _take_turns({count: (run, count * AGENTS) for count, run in runs.items()}, seconds)
    note = f"36 rays, {cores} threads"
    figures = [_rate("engine_agent_steps_per_s", rates[HEADLINE], HEADLINE, note)]
    figures += [
        _rate(f"engine_agent_steps_per_s_{count}", rates[count], count, "") for count in GROWTH
    ]
    smallest, largest = GROWTH[0], GROWTH[-1]
    growth = rates[largest] / rates[smallest]
    figures.append(
        Figure("engine_growth_64_to_8192", growth, "×", largest, AGENTS, 3, "rate over rate")
    )
    return figures + _against_others(seconds) + _bots(seconds)


def _against_others(seconds: float) -> list[Figure]:
    """The engine beside one thread of itself and beside plain Python."""
    sides: dict[str, tuple[Callable[[], object], int]] = {
        "all": (_stepper(HEADLINE, available_cores()), HEADLINE * AGENTS),
        "one": (_stepper(HEADLINE, 1), HEADLINE * AGENTS),
        "plain": (_plain_python(), AGENTS),
    }
    rates = _take_turns(sides, seconds)
    return [
        _rate(
            "engine_one_thread_agent_steps_per_s", rates["one"], HEADLINE, "the same on 1 thread"
        ),
        Figure("engine_over_one_thread", rates["all"] / rates["one"], "×", HEADLINE, AGENTS, 3, ""),
        _rate("plain_python_agent_steps_per_s", rates["plain"], 1, "the tests' reference engine"),
        Figure(
            "engine_over_plain_python",
            rates["all"] / rates["plain"],
            "×",
            HEADLINE,
            AGENTS,
            3,
            "the same game, bit for bit",
        ),
    ]


def _bots(seconds: float) -> list[Figure]:
    arenas = Arenas(HEADLINE)
    observations = arenas.reset().reshape(HEADLINE * AGENTS, -1)
    bots = {name: Bot(name, arenas.rules) for name in BOTS}
    sides = {
        name: ((lambda bot=bot: bot.act(observations)), HEADLINE * AGENTS)
        for name, bot in bots.items()
    }
    rates = _take_turns(sides, seconds)
    return [_rate(f"bot_{name}_actions_per_s", rates[name], HEADLINE, "") for name in BOTS]


def _stepper(count: int, threads: int) -> Callable[[], object]:
    """A function that plays one decision in `count` arenas that are well under way."""
    arenas = Arenas(count, threads=threads)
    arenas.reset()
    actions = np.random.default_rng(0).uniform(-1, 1, (32, count, AGENTS, 3)).astype(np.float32)
    turn = 0

    def step() -> None:
        nonlocal turn
        arenas.step(actions[turn % len(actions)])
        turn += 1

    for _ in range(60):
        step()
    return step


def _plain_python() -> Callable[[], object]:
    """The reference engine of the tests, one decision with senses."""
    sys.path.insert(0, str(paths.checkout()))
    try:
        from tests.tag.reference import ReferenceMatch
    finally:
        sys.path.pop(0)
    rules = json.loads(paths.rules_file().read_text())
    layout = json.loads((paths.layouts_folder() / f"{rules['layout']}.json").read_text())
    match = ReferenceMatch(rules, [layout], seed=0, arena=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (32, AGENTS, 3)).tolist()
    episode = turn = 0

    def step() -> None:
        nonlocal episode, turn
        if match.decide(actions[turn % len(actions)])[0]:
            episode += 1
            match.begin(episode)
        match.sense()
        turn += 1

    match.begin(0)
    return step


def _take_turns(
    sides: dict[str, tuple[Callable[[], object], int]]
    | dict[int, tuple[Callable[[], object], int]],
    seconds: float,
) -> dict:
    """Units a second of each side, measured in alternation so that noise meets all alike."""
    rates = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, (run, units) in sides.items():
            calls, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < seconds / ROUNDS:
                run()
                calls += 1
            rates[name].append(calls * units / spent)
    return {name: median(values) for name, values in rates.items()}


def _rate(name: str, value: float, arenas: int, note: str) -> Figure:
    return Figure(name, value, "agent-steps/s", arenas, AGENTS, 3, note)
