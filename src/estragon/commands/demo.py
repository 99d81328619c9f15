"""`estragon demo`: the output of a training run with made-up numbers, to test what reads it."""

import dataclasses
import random
import sys
import time

from estragon.support.errors import UserError
from estragon.trainers.metrics import Counters, Episodes, iteration_metric, line_of, without_nan

STEPS, EPISODES, LENGTH = 1_000, 20, 50
POLICY = "shared_policy"


@dataclasses.dataclass(frozen=True)
class DemoCommand:
    """Print every kind of line of a training run, with made-up numbers."""

    iterations: int = 10
    """Number of iterations."""
    interval: float = 0.5
    """Seconds between them."""
    seed: int = 0
    """Seed of the numbers."""

    def run(self) -> int:
        """Print."""
        if self.iterations < 0 or not 0.0 <= self.interval < float("inf"):
            raise UserError("expected 0 or more --iterations, and an --interval in seconds")
        chance = random.Random(self.seed)
        print(f"demo: {self.iterations} iterations of made-up numbers, no game and no learning")
        print("WARNING: a line on standard error", file=sys.stderr, flush=True)
        for number in range(1, self.iterations + 1):
            time.sleep(self.interval)
            episodes = Episodes()
            for _ in range(EPISODES):
                reward = 100.0 * (1.0 - 0.8**number) + chance.gauss(0.0, 5.0)
                episodes.add(reward, LENGTH, {"goals_scored": int(reward // 10)})
            metric = iteration_metric(
                Counters(number, number * STEPS, number * STEPS, number * EPISODES),
                {POLICY: episodes},
                {POLICY: {"policy_loss": -0.01, "vf_loss": 1.0 / number, "entropy": 1.0}},
                env_steps=STEPS,
                seconds=self.interval,
                total_seconds=number * self.interval,
            )
            print(f"Episode {number * EPISODES}: reward={episodes.reward_mean:.1f}")
            print(line_of(without_nan(metric)), flush=True)
        print("demo: done", flush=True)
        return 0
