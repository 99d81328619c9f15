"""A process that trains a few updates and prints its peak resident memory in MB; not on Windows.

Usage: python _train_a_little.py UPDATES WORKERS TORCH_THREADS
"""

import resource
import sys
from contextlib import closing
from pathlib import Path

import torch

from estragon.commands.train_tag import STEPS
from estragon.selfplay.config import PPOConfig, Task
from estragon.selfplay.trainer import Threads, embedded_trainer
from estragon.tag.layout import load_layouts
from estragon.tag.rules import load_rules


def main(updates: int, workers: int, torch_threads: int) -> None:
    """Train and tell."""
    rules = load_rules()
    task = Task(rules, load_layouts(rules.layout, rules), 0, "both", "league")
    device = torch.device("cpu")
    with closing(
        embedded_trainer(task, PPOConfig(), STEPS, device, Threads(workers, torch_threads))
    ) as trainer:
        for _ in range(updates):
            trainer.update()
    print(peak_memory_mb())


def peak_memory_mb() -> float:
    """The most that was resident at a time."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux `ru_maxrss` begins with what the parent had when it started this process.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # macOS counts bytes


main(*map(int, sys.argv[1:]))
