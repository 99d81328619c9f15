"""The file of an evaluation: every episode, means with intervals, performance, and provenance.

Needs numpy alone, so that a verdict needs neither a trainer nor a game.
"""

from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
import numpy as np

from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json

FORMAT = "estragon evaluation 1"
REWARD, SUCCESS, LENGTH = "mean_reward", "success_rate", "mean_episode_length"
MEANS = (REWARD, SUCCESS, LENGTH)
CRASHES = "game_crashes"
STEP_CPU, SLOWEST_STEP, STEP = "step_cpu_ms", "slowest_step_ratio", "step_ms"
TIMES = {
    STEP_CPU: "processor time of the game per step",
    SLOWEST_STEP: "slowest step of a segment over its mean step",
    STEP: "time per step: game, wire and policy",
}
"""Metrics of segments that depend on the machine, the ratio less than the others."""
MEMORY_GROWTH = "memory_growth_mb"
Number = Annotated[float, msgspec.Meta(ge=-1e100, le=1e100)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Episode(msgspec.Struct, forbid_unknown_fields=True):
    """One episode of one agent."""

    agent: str
    number: Count
    """Of this agent, from 0."""
    seed: int | None
    """What the game drew the episode from; None if it does not say."""
    reward: Number
    length: Count
    """In steps of the agent."""
    success: bool | None
    """None if the game does not say."""
    metrics: dict[str, Number] = {}
    """The game's own numbers at the end."""
    parameters: dict[str, float | str] = {}
    """What was set in the game."""


class Segment(msgspec.Struct, forbid_unknown_fields=True):
    """Performance over some consecutive steps of all agents."""

    steps: Annotated[int, msgspec.Meta(ge=1)]
    step_ms: Number
    step_cpu_ms: Number | None = None
    slowest_step_cpu_ms: Number | None = None
    memory_mb: Number | None = None
    """Of all games, at the end."""
    calibration_ms: Number | None = None
    """Processor time of a fixed piece of work, measured meanwhile."""

    @property
    def slowest_step_ratio(self) -> float | None:
        """The slowest step relative to the mean: whatever else the machine does slows both."""
        if not self.step_cpu_ms or self.slowest_step_cpu_ms is None:
            return None
        return self.slowest_step_cpu_ms / self.step_cpu_ms


class Build(msgspec.Struct, forbid_unknown_fields=True):
    """Which game was played."""

    commit: str = ""
    """Of the git repository that the game is in."""
    changed: bool = False
    """Whether files of the game differ from that commit."""
    digest: str = ""
    """Of all files of the game."""


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """Why a file is the baseline."""

    reason: str
    date: str
    commit: str
    command: str
    machine: str


class Evaluation(msgspec.Struct, forbid_unknown_fields=False):
    """What `estragon judge evaluate` writes; other keys are ignored."""

    mean_reward: Number
    mean_episode_length: Number | None = None
    success_rate: Number | None = None
    format: str = ""
    model: str = ""
    model_digest: str = ""
    opponent: str = ""
    game: str = ""
    scene: str = ""
    arguments: dict[str, Any] = {}
    parameters: Any = None
    """The parameter file's contents."""
    seed: int = 0
    complete: bool = True
    """Whether all episodes ended within the limit of steps."""
    game_crashes: Count = 0
    build: Build = msgspec.field(default_factory=Build)
    episodes: list[Episode] = []
    segments: list[Segment] = []
    reported: dict[str, Number] = {}
    """What a game with the HTTP API says about its performance at the end."""
    intervals: dict[str, tuple[Number, Number, Number]] = {}
    """By metric, mean and the ends of its 95% interval."""
    versions: dict[str, str] = {}
    machine: str = ""
    date: str = ""
    command: str = ""
    baseline: list[Change] = []
    """Of a baseline, why it is one, the latest change first."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; also one with means only, without episodes."""
        found = read_json(path, cls)
        if found.format not in ("", FORMAT):
            raise UserError(f"{path.name}: expected '{FORMAT}', got '{found.format}'")
        if found.format and not found.episodes:
            raise UserError(f"{path.name} has no episodes")
        return found

    def write(self, path: Path) -> None:
        """Write it."""
        write_json(path, msgspec.to_builtins(self))

    def samples(self) -> dict[str, np.ndarray]:
        """By metric, one number per episode that has it."""
        if not self.episodes:
            return {}
        found = {
            REWARD: np.array([each.reward for each in self.episodes]),
            LENGTH: np.array([each.length for each in self.episodes], float),
        }
        known = [each.success for each in self.episodes if each.success is not None]
        if known:
            found[SUCCESS] = np.array(known, float)
        for name in sorted({name for each in self.episodes for name in each.metrics}):
            values = [each.metrics[name] for each in self.episodes if name in each.metrics]
            found.setdefault(name, np.array(values))
        return found

    def metric_names(self) -> list[str]:
        """The metrics of its episodes, or those with a mean if there are none."""
        known = [name for name in MEANS if getattr(self, name) is not None]
        return list(self.samples()) or known

    def keys(self) -> list[str]:
        """By episode, what the same episode of another evaluation has as well.

        The game's own seed if it is known; else its place in the order.
        """
        return [
            f"{each.agent}/{each.number}/{self.seed}" if each.seed is None else f"{each.seed}"
            for each in self.episodes
        ]

    def is_same_game(self, other: "Evaluation") -> bool:
        """Whether episodes with the same seed are played with the same settings."""
        return (self.scene, self.arguments, self.opponent, self.parameters) == (
            other.scene,
            other.arguments,
            other.opponent,
            other.parameters,
        )

    def segment_values(self, name: str) -> np.ndarray:
        """A metric of the segments, without the first, in which the game warms up."""
        values = [getattr(each, name) for each in self.segments[1:]]
        return np.array([value for value in values if value is not None], float)

    def memory_growth(self) -> np.ndarray:
        """By segment, MB per 1,000 steps; without the first third, in which caches fill."""
        kept = [each for each in self.segments if each.memory_mb is not None]
        kept = kept[len(kept) // 3 :]
        memory = np.array([each.memory_mb for each in kept], float)
        steps = np.array([each.steps for each in kept[1:]], float)
        return 1e3 * np.diff(memory) / steps if len(kept) > 1 else np.zeros(0)
