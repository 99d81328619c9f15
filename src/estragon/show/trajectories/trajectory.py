"""A logged match as arrays: read from its file, and written to one; the format has its own page.

docs/trajectory_rendering.md describes it. How a match gets logged is for `log`.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from estragon.show.trajectories.records import EpisodeStart, LoggedLayout, own_rules
from estragon.support.files import write_new
from estragon.tag.rules import RAY_CHANNELS, Rules

AGENT_NAMES = ("Agent1", "Agent2")
NOBODY = -1

Reason = Literal["tag", "timeout"]


class Tagging(NamedTuple):
    """A tag: when, and which agent tagged which."""

    tick: int
    attacker: int
    target: int


class Anomaly(NamedTuple):
    """An agent where none can be."""

    tick: int
    agent: int
    what: str


class Trajectory(NamedTuple):
    """A match: one row a logged tick, the first before any decision, the last at its end."""

    start: EpisodeStart
    """Which match it is, and by what numbers it was played."""
    agents: tuple[str, str]
    """Their names; everywhere else an agent is 0 or 1."""
    ticks: np.ndarray
    """(moments,) int64: ticks since the match began."""
    positions: np.ndarray
    """(moments, agents, 3) float64: centres of the cubes, m."""
    velocities: np.ndarray
    """(moments, agents, 3) float64, m/s."""
    forwards: np.ndarray
    """(moments, agents, 2) float64: x and z of where they face."""
    is_seeker: np.ndarray
    """(moments, agents) bool: who is "it"."""
    on_floor: np.ndarray
    """(moments, agents) bool: who stands on something."""
    immune: np.ndarray
    """(moments, agents) bool: who cannot be tagged."""
    sees: np.ndarray
    """(moments, agents) bool: who sees its opponent."""
    ray_distances: np.ndarray
    """(moments, agents, rays) float64: how far each ray of the fan reaches, m."""
    ray_types: np.ndarray
    """(moments, agents, rays) int8: 0 nothing in range, 1 a wall or a box, 2 the other agent."""
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
        """When each row is, since the match began: (moments,) float64."""
        seconds: np.ndarray = self.ticks / self.start.ticks_per_second
        return seconds

    @property
    def tagged(self) -> bool:
        """Whether a tag ended the match."""
        return self.reason == "tag"

    def game_rules(self) -> Rules:
        """The game's own rules with the numbers this match was played by."""
        own, start = own_rules(), self.start
        eyes, rays = own.eyes, self.ray_distances.shape[2] or own.eyes.rays
        if start.eyes is not None:
            logged = start.eyes
            eyes = replace(
                eyes, cone_deg=logged.fan_deg, range_m=logged.range_m, height_m=logged.height_m
            )
        numbers = RAY_CHANNELS * rays
        head = [part for part in own.observation.layout if part[0] != "rays"]
        size = sum(length for _, length in head) + numbers
        width_m, depth_m = start.arena_size_m
        return replace(
            own,
            arena=replace(own.arena, width_m=width_m, depth_m=depth_m),
            physics=replace(own.physics, ticks_per_second=start.ticks_per_second),
            agent=replace(own.agent, size_m=start.agent_size_m),
            eyes=replace(eyes, rays=rays),
            observation=replace(own.observation, size=size, layout=[*head, ("rays", numbers)]),
            episode=replace(
                own.episode,
                time_limit_sec=start.time_limit_sec,
                step_tick_interval=start.decision_ticks,
            ),
            rules=start.rules if start.rules in own.rule_sets else own.rules,
        )


def read_trajectory(path: Path) -> Trajectory:
    """Read the log of one whole match; anything wrong with it is an error that says where."""
    from estragon.show.trajectories.reader import assemble  # which needs what is defined here

    return assemble(path)


def write_trajectory(trajectory: Trajectory, folder: Path, stamp: str | None = None) -> Path:
    """Write a match into a folder under a name that is free; returns the file.

    Args:
        stamp: the time in its name; now, if not given.
    """
    stamp = time_stamp() if stamp is None else stamp
    start = trajectory.start
    path = folder / f"ep_{stamp}_{start.arena:04d}_{start.episode:05d}.jsonl"
    lines = (msgspec.json.encode(record) for record in records_of(trajectory))
    return write_new(path, b"\n".join(lines) + b"\n")


def time_stamp() -> str:
    """This moment as file names have it."""
    return time.strftime("%Y%m%d-%H%M%S")


def records_of(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """The records of a match in the order of the file: what happened, then what came of it."""
    start = trajectory.start
    yield {
        **msgspec.to_builtins(start),
        "layout": {
            "name": start.layout.name,
            "boxes": msgspec.to_builtins(start.layout.boxes),
        },
    }
    events = _events(trajectory)
    for moment, tick in enumerate(trajectory.ticks.tolist()):
        while events and events[0]["tick"] <= tick:
            yield events.pop(0)
        for agent in range(len(trajectory.agents)):
            yield _step(trajectory, moment, agent)
    yield {
        **_happened(trajectory, "episode_end", int(trajectory.ticks[-1])),
        "winner": None if trajectory.winner == NOBODY else trajectory.agents[trajectory.winner],
        "terminal_reason": trajectory.reason,
    }


def _events(trajectory: Trajectory) -> list[dict[str, Any]]:
    names = trajectory.agents
    events = [
        {
            **_happened(trajectory, "tag", tag.tick),
            "attacker": names[tag.attacker],
            "target": names[tag.target],
        }
        for tag in trajectory.tags
    ]
    if trajectory.reason == "timeout":
        events.append(_happened(trajectory, "timeout", int(trajectory.ticks[-1])))
    events += [
        {
            **_happened(trajectory, "physics_anomaly", anomaly.tick),
            "agent": names[anomaly.agent],
            "what": anomaly.what,
        }
        for anomaly in trajectory.anomalies
    ]
    return sorted(events, key=lambda event: int(event["tick"]))


def _happened(trajectory: Trajectory, what: str, tick: int) -> dict[str, Any]:
    start = trajectory.start
    ts = tick / start.ticks_per_second
    return {"type": what, "episode": start.episode, "tick": tick, "ts": ts}


def _step(trajectory: Trajectory, moment: int, agent: int) -> dict[str, Any]:
    tick = int(trajectory.ticks[moment])
    at = moment, agent
    return {
        "type": "step",
        "episode": trajectory.start.episode,
        "agent": trajectory.agents[agent],
        "tick": tick,
        "ts": tick / trajectory.start.ticks_per_second,
        "pos": _numbers(trajectory.positions[at]),
        "vel": _numbers(trajectory.velocities[at]),
        "forward": _numbers(trajectory.forwards[at]),
        "is_it": bool(trajectory.is_seeker[at]),
        "on_floor": bool(trajectory.on_floor[at]),
        "immune": bool(trajectory.immune[at]),
        "sees": bool(trajectory.sees[at]),
        "dists": _numbers(trajectory.ray_distances[at]),
        "types": trajectory.ray_types[at].tolist(),
    }


def _numbers(values: np.ndarray) -> list[float]:
    """As JSON has them, exact; there is no negative zero, and what is not finite becomes null."""
    plain: list[float] = (values + 0.0).tolist()
    return plain
