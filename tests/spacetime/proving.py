"""What the long runs of SpaceTime share: a training in a process of its own, judged afterwards."""

import dataclasses
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from estragon.trainers.metrics import Episodes
from tests.prove import run_folder


@dataclasses.dataclass
class Trained:
    """A training that is over."""

    folder: Path
    said: str
    seconds: float

    @property
    def steps(self) -> int:
        return int(re.findall(r"iteration \d+: ([\d,]+) steps", self.said)[-1].replace(",", ""))

    @property
    def how_long(self) -> str:
        return f"{self.steps:,} steps in {self.seconds / 60:.1f} minutes"

    def reached(self, success: float) -> int | None:
        """Steps until an evaluation had this share of successes."""
        for steps, share in re.findall(
            r"evaluation at ([\d,]+) steps:.*? success ([\d.]+)", self.said
        ):
            if float(share) >= success:
                return int(steps.replace(",", ""))
        return None


def train_once(name: str, words: list[str], minutes: float, output: str = "--output") -> Trained:
    """`estragon train WORDS --output FOLDER`, stopped after so long; done before, read again."""
    folder = run_folder(name)
    log = folder / "said.txt"
    if not log.exists():
        folder.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-m", "estragon", "train", *words, output, str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=60 * minutes)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                said, _ = process.communicate(timeout=600)
        assert process.returncode in (0, 130), said
        log.write_text(f"{time.monotonic() - start}\n{said}")
    seconds, _, said = log.read_text().partition("\n")
    return Trained(folder, said, float(seconds))


def started(config: Path, folder: Path, *words: str) -> subprocess.Popen[str]:
    """`estragon train spacetime`, to be watched; what it prints is in said.txt of the folder."""
    command = [sys.executable, "-m", "estragon", "train", "spacetime", "--config", str(config)]
    with (folder / "said.txt").open("w") as log:
        return subprocess.Popen(
            [*command, "--output", str(folder), *words],
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )


def mean(found: Episodes, key: str) -> float:
    return float(np.mean(found.custom[key]))


def share(found: Episodes) -> str:
    """The share of successes, with its 95% interval (Wilson)."""
    n, z = len(found), 1.96
    p = mean(found, "success")
    middle, half = p + z * z / 2 / n, z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return f"{p:.1%} ({low:.0%} to {high:.0%})"
