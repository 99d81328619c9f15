"""Which threads to learn on, found out by trying before the run starts.

Two workers with one torch thread each meet only twice an update, so a busy neighbour costs its
share and no more; one torch call spread over threads waits for the slowest at every layer, and
would learn other bits. So torch gets one thread, and a seed means the same run on every machine
with the same processor's arithmetic.
"""

import time
from dataclasses import replace
from typing import NamedTuple

import torch

from estragon.selfplay.config import BLOCKS, PPOConfig, Task
from estragon.selfplay.trainer import Trainer
from estragon.support.parallel import available_cores

TRIAL_UPDATES = 3
WORTH_IT = 0.75
"""Another layout must take less than this share of the time."""


class Threads(NamedTuple):
    """Who works."""

    workers: int
    """Threads that play and learn side by side."""
    torch_threads: int
    """Threads inside each torch call; what is learned depends on it."""


def choose_threads(task: Task, config: PPOConfig) -> Threads:
    """The fastest layout for a few small updates of this very task."""
    cores = available_cores()
    if cores == 1:
        return Threads(1, 1)
    candidates = [Threads(min(BLOCKS, cores), 1), Threads(1, 1)]
    small = replace(config, arenas=min(config.arenas, 256), horizon=min(config.horizon, 16))
    best, shortest = candidates[0], _try(task, small, candidates[0])
    for threads in candidates[1:]:
        spent = _try(task, small, threads)
        if spent < WORTH_IT * shortest:
            best, shortest = threads, spent
    return best


def _try(task: Task, config: PPOConfig, threads: Threads) -> float:
    """The shortest of a few updates, in seconds; the first one warms up."""
    trainer = Trainer(task, config, 10**9, torch.device("cpu"), *threads)
    try:
        spent = []
        for _ in range(1 + TRIAL_UPDATES):
            start = time.perf_counter()
            trainer.update()
            spent.append(time.perf_counter() - start)
        return min(spent[1:])
    finally:
        trainer.close()
