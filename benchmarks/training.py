"""How fast training goes, and how soon it is any good: ours beside Stable-Baselines3's PPO."""

import subprocess
import sys
import time
from collections.abc import Callable, Hashable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
import torch

from estragon import paths
from estragon.check.bench import Figure
from estragon.jobs.train_tag import STEPS
from estragon.learn.ladder import EVALUATION_SEED
from estragon.learn.opponents import LEAGUE, USUAL_BOTS
from estragon.learn.recipe import Recipe
from estragon.learn.threads import Threads, choose_threads
from estragon.learn.trainer import Task, Trainer
from estragon.tag.layout import load_layouts
from estragon.tag.matches import play_matches
from estragon.tag.players import Player, load_player
from estragon.tag.roles import ROLES, Role
from estragon.tag.rules import load_rules

sys.path.insert(0, str(paths.checkout()))
try:
    from benchmarks._sb3 import DefaultSb3, TunedSb3, faster_threads
finally:
    sys.path.pop(0)

AGENTS = 2
GROWTH = (256, 1024, 4096)
ROUNDS = 5
"""Figures that are compared take turns, this often; each is the median of its turns."""
SHORTEST_TURN_SEC = 0.1
"""A run too short for this has fewer rounds: a turn is never less than a whole update."""
WARM_UP = 3
STRONG = 0.7
"""The share of matches against the usual bot that a role has to win."""
MATCHES = 512
JUDGED_EVERY_SEC = 5.0
LONGEST_SEC, LONGEST_SHARE = 900.0, 90.0
"""When to give up on strength: after so long, or so many times the seconds of a figure."""

Key = TypeVar("Key", bound=Hashable)


def measure(seconds: float) -> list[Figure]:
    """All figures of training."""
    rules = load_rules()
    task = Task(rules, load_layouts(rules.layout, rules), 0, "both", LEAGUE)
    threads_before = torch.get_num_threads()
    try:
        bench = _Bench(task, choose_threads(task, Recipe()), faster_threads(Recipe()))
        cap = min(LONGEST_SEC, LONGEST_SHARE * seconds)
        return [
            *bench.beside_sb3(seconds),
            *bench.growth(seconds),
            *bench.strength(cap),
            *bench.memory(),
        ]
    finally:
        torch.set_num_threads(threads_before)
