"""A logged match: the records of its JSONL file, and the same match as arrays.

docs/trajectory_rendering.md describes the format. `trajectory_reader` reads a file,
`trajectory_log` writes one while a match is played.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import msgspec
import numpy as np
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from estragon.support.files import write_new
from estragon.tag.layout import Layout, load_layout
from estragon.tag.rules import RAY_CHANNELS, Positive, Rules, load_rules

FORMAT = 1
AGENT_NAMES = ("Agent1", "Agent2")
NOBODY = -1

Reason = Literal["tag", "timeout"]
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Tick = Annotated[int, Meta(ge=0, le=10**9)]
Count = Annotated[int, Meta(ge=1, le=1000)]
Metres = Annotated[float, Meta(ge=-1e6, le=1e6)]
Seconds = Annotated[float, Meta(ge=-1e12, le=1e12)]
RayType = Annotated[int, Meta(ge=0, le=2)]
"""0 nothing, 1 a wall or a box, 2 the other agent."""


_RULES = load_rules()
"""For values that a log does not state."""


class LoggedLayout(Layout, frozen=True, forbid_unknown_fields=False):
    """The boxes, as in a layout file, and the layout's name."""

    @classmethod
    def of(cls, layout: Layout) -> Self:
        """What is logged of a layout."""
        return cls(layout.boxes, layout.description, layout.name)


class LoggedEyes(Struct, frozen=True):
    """The fan of rays."""

    rays: Annotated[int, Meta(ge=1, le=256)]
    fan_deg: Annotated[float, Meta(gt=0.0, lt=180.0)] = _RULES.eyes.cone_deg
    range_m: Positive = _RULES.eyes.range_m
    height_m: Metres = _RULES.eyes.height_m


class EpisodeStart(Struct, frozen=True, kw_only=True, tag_field="type", tag="episode_start"):
    """The first record: which match it is, and the settings of the game."""

    format: int = 0
    """0 where the log does not say."""
    episode: int = 0
    arena: int = 0
    engine: str = ""
    seed: int = 0
    rules: str = ""
    layout: LoggedLayout = field(
        default_factory=lambda: LoggedLayout.of(load_layout(_RULES.layout, _RULES))
    )
    arena_size_m: tuple[Positive, Positive] = (_RULES.arena.width_m, _RULES.arena.depth_m)
    agent_size_m: Positive = _RULES.agent.size_m
    ticks_per_second: Count = _RULES.physics.ticks_per_second
    decision_ticks: Count = _RULES.episode.step_tick_interval
    time_limit_sec: Positive = _RULES.episode.time_limit_sec
    eyes: LoggedEyes | None = None
    agents: tuple[Name, Name] | None = None
    seeker: Name | None = None
    players: dict[str, str] = {}
    ts: Seconds = 0.0


class Step(Struct, frozen=True, kw_only=True, tag_field="type", tag="step"):
    """One agent at one tick."""

    episode: int = 0
    agent: Name
    tick: Tick | None = None
    ts: Seconds
    pos: tuple[Metres, Metres, Metres]
    vel: tuple[Metres, Metres, Metres]
    forward: tuple[Metres, Metres] | None = None
    is_it: bool
    on_floor: bool = True
    immune: bool = False
    sees: bool | None = None
    dists: Annotated[list[Metres], Meta(max_length=256)]
    types: Annotated[list[RayType], Meta(max_length=256)]


class _Event(Struct, frozen=True, kw_only=True, tag_field="type"):
    episode: int = 0
    tick: Tick | None = None
    ts: Seconds | None = None


class Tag(_Event, frozen=True, kw_only=True, tag="tag"):
    """A tag."""

    attacker: Name
    target: Name


class Timeout(_Event, frozen=True, kw_only=True, tag="timeout"):
    """The time limit was reached."""


class PhysicsAnomaly(_Event, frozen=True, kw_only=True, tag="physics_anomaly"):
    """An agent is at an impossible place; never seen in a game that follows its rules."""

    agent: Name
    what: str = ""


class EpisodeEnd(_Event, frozen=True, kw_only=True, tag="episode_end"):
    """The last record."""

    winner: Name | None = None
    terminal_reason: Reason | None = None


Record = EpisodeStart | Step | Tag | Timeout | PhysicsAnomaly | EpisodeEnd


class Tagging(NamedTuple):
    """A tag: when, and which agent tagged which."""

    tick: int
    attacker: int
    target: int


class Anomaly(NamedTuple):
    """An agent at an impossible place."""

    tick: int
    agent: int
    what: str


class Trajectory(NamedTuple):
    """A match: one row per logged tick, the first before any decision, the last at its end."""

    start: EpisodeStart
    agents: tuple[str, str]
    """Their names; everywhere else an agent is 0 or 1."""
    ticks: np.ndarray
    """(rows,) int64: ticks since the match began."""
    positions: np.ndarray
    """(rows, agents, 3) float64: centres of the cubes, m."""
    velocities: np.ndarray
    """(rows, agents, 3) float64, m/s."""
    forwards: np.ndarray
    """(rows, agents, 2) float64: facing, x and z."""
    is_seeker: np.ndarray
    """(rows, agents) bool."""
    on_floor: np.ndarray
    """(rows, agents) bool: who stands on something."""
    immune: np.ndarray
    """(rows, agents) bool: who cannot be tagged."""
    sees: np.ndarray
    """(rows, agents) bool: who sees its opponent."""
    ray_distances: np.ndarray
    """(rows, agents, rays) float64: length of each ray of the fan, m."""
    ray_types: np.ndarray
    """(rows, agents, rays) int8: 0 nothing in range, 1 a wall or a box, 2 the other agent."""
    tags: list[Tagging]
    anomalies: list[Anomaly]
    winner: int
    """The agent that won, NOBODY for a draw."""
    reason: Reason
    """What ended the match."""

    @property
    def layout(self) -> LoggedLayout:
        """The boxes."""
        return self.start.layout

    @property
    def seconds(self) -> np.ndarray:
        """The time of each row since the match began: (rows,) float64."""
        seconds: np.ndarray = self.ticks / self.start.ticks_per_second
        return seconds

    @property
    def tagged(self) -> bool:
        """Whether a tag ended the match."""
        return self.reason == "tag"

    def tag_place(self, tag: Tagging) -> np.ndarray:
        """Midway between the two agents at a tag: (2,) x and z, m."""
        row = min(int(np.searchsorted(self.ticks, tag.tick)), len(self.ticks) - 1)
        place: np.ndarray = self.positions[row, :, ::2].mean(axis=0)
        return place

    def summary(self) -> str:
        """How the match went, in one line."""
        seconds = float(self.seconds[-1])
        if self.tagged:
            _, attacker, target = self.tags[-1]
            return f"{self.agents[attacker]} tags {self.agents[target]} after {seconds:.2f} s"
        if count := len(self.tags):
            return f"{count} {'tag' if count == 1 else 'tags'} in {seconds:g} s"
        return f"nobody is tagged in {seconds:g} s"

    def game_rules(self) -> Rules:
        """The game's rules with the settings of this match."""
        rules, start = _RULES, self.start
        rays = self.ray_distances.shape[2] or rules.eyes.rays
        eyes = replace(rules.eyes, rays=rays)
        if (logged := start.eyes) is not None:
            eyes = replace(
                eyes, cone_deg=logged.fan_deg, range_m=logged.range_m, height_m=logged.height_m
            )
        parts = [part for part in rules.observation.layout if part[0] != "rays"]
        parts.append(("rays", RAY_CHANNELS * rays))
        size = sum(length for _, length in parts)
        width_m, depth_m = start.arena_size_m
        return replace(
            rules,
            arena=replace(rules.arena, width_m=width_m, depth_m=depth_m),
            physics=replace(rules.physics, ticks_per_second=start.ticks_per_second),
            agent=replace(rules.agent, size_m=start.agent_size_m),
            eyes=eyes,
            observation=replace(rules.observation, size=size, layout=parts),
            episode=replace(
                rules.episode,
                time_limit_sec=start.time_limit_sec,
                step_tick_interval=start.decision_ticks,
            ),
            rules=start.rules if start.rules in rules.rule_sets else rules.rules,
        )


def write_trajectory(trajectory: Trajectory, folder: Path, stamp: str | None = None) -> Path:
    """Write a match into a folder under a free name, with the time `stamp`; returns the file."""
    start = trajectory.start
    stamp = stamp or time.strftime("%Y%m%d-%H%M%S")
    path = folder / f"ep_{stamp}_{start.arena:04d}_{start.episode:05d}.jsonl"
    return write_new(path, encode_trajectory(trajectory))


def encode_trajectory(trajectory: Trajectory) -> bytes:
    """The bytes of a match's file: the start, steps and events by tick, the end."""
    start = trajectory.start
    layout = {"name": start.layout.name, "boxes": msgspec.to_builtins(start.layout.boxes)}
    lines = [msgspec.json.encode({**msgspec.to_builtins(start), "layout": layout})]
    lines += [msgspec.json.encode(record) for record in _records_after_start(trajectory)]
    return b"\n".join(lines) + b"\n"


def _records_after_start(trajectory: Trajectory) -> Iterator[Record]:
    """The other records in the order of the file: events come before the steps of their tick."""
    names, last = trajectory.agents, int(trajectory.ticks[-1])

    def at(tick: int) -> dict[str, Any]:
        ts = tick / trajectory.start.ticks_per_second
        return {"episode": trajectory.start.episode, "tick": tick, "ts": ts}

    events: list[tuple[int, Record]] = [
        (tag.tick, Tag(attacker=names[tag.attacker], target=names[tag.target], **at(tag.tick)))
        for tag in trajectory.tags
    ]
    if trajectory.reason == "timeout":
        events.append((last, Timeout(**at(last))))
    events += [
        (tick, PhysicsAnomaly(agent=names[agent], what=what, **at(tick)))
        for tick, agent, what in trajectory.anomalies
    ]
    events.sort(key=lambda event: event[0])
    for row, tick in enumerate(trajectory.ticks.tolist()):
        while events and events[0][0] <= tick:
            yield events.pop(0)[1]
        for agent, name in enumerate(names):
            yield Step(
                agent=name,
                pos=_numbers(trajectory.positions[row, agent]),
                vel=_numbers(trajectory.velocities[row, agent]),
                forward=_numbers(trajectory.forwards[row, agent]),
                is_it=bool(trajectory.is_seeker[row, agent]),
                on_floor=bool(trajectory.on_floor[row, agent]),
                immune=bool(trajectory.immune[row, agent]),
                sees=bool(trajectory.sees[row, agent]),
                dists=_numbers(trajectory.ray_distances[row, agent]),
                types=trajectory.ray_types[row, agent].tolist(),
                **at(tick),
            )
    winner = None if trajectory.winner == NOBODY else names[trajectory.winner]
    yield EpisodeEnd(winner=winner, terminal_reason=trajectory.reason, **at(last))


def _numbers(values: np.ndarray) -> Any:
    """Exact, without negative zero; msgspec writes what is not finite as null."""
    return (values + 0.0).tolist()
