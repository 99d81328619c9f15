"""Evaluations made of numbers, for tests."""

from collections.abc import Sequence
from typing import Any

from estragon.judge.evaluation_file import FORMAT, Episode, Evaluation, Segment


def evaluation(
    rewards: Any,
    *,
    seeds: Sequence[int] | None = None,
    success: Any = None,
    lengths: Sequence[int] | None = None,
    metrics: dict[str, Any] | None = None,
    segments: Sequence[Segment] = (),
) -> Evaluation:
    """Of these episodes, with the seeds 0, 1, 2, … if no others are given."""
    episodes = [
        Episode(
            agent="0",
            number=number,
            seed=number if seeds is None else seeds[number],
            reward=float(reward),
            length=10 if lengths is None else lengths[number],
            success=None if success is None else bool(success[number]),
            metrics={name: float(values[number]) for name, values in (metrics or {}).items()},
        )
        for number, reward in enumerate(rewards)
    ]
    return Evaluation(
        mean_reward=sum(map(float, rewards)) / len(rewards),
        mean_episode_length=10.0,
        format=FORMAT,
        model="model.zip",
        game="game",
        episodes=episodes,
        segments=list(segments),
        intervals={"mean_reward": (0.0, -1.0, 1.0)},
    )


def segments(
    *,
    cpu_ms: float = 2.0,
    slowest_ms: float = 3.0,
    calibration_ms: float = 1.0,
    leak_mb: float = 0.0,
    count: int = 24,
) -> list[Segment]:
    """Equal segments of 50 steps; every other one is a little slower."""
    return [
        Segment(
            steps=50,
            step_ms=4.0,
            step_cpu_ms=cpu_ms * (1.0 + 0.02 * (number % 2)),
            slowest_step_cpu_ms=slowest_ms * (1.0 + 0.05 * (number % 3)),
            memory_mb=140.0 + leak_mb * number + 0.01 * (number % 2),
            calibration_ms=calibration_ms,
        )
        for number in range(count)
    ]
