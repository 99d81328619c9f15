"""Records of a logged match put together into arrays, with errors that name file and line."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from estragon.show.trajectories.records import (
    FORMAT,
    EpisodeEnd,
    EpisodeStart,
    PhysicsAnomaly,
    Record,
    Step,
    Tag,
    Timeout,
    read_records,
    wrong,
)
from estragon.show.trajectories.trajectory import (
    AGENT_NAMES,
    NOBODY,
    Anomaly,
    Reason,
    Tagging,
    Trajectory,
)
from estragon.support.errors import UserError
from estragon.tag.rules import AGENTS

STANDING_MPS = 0.001
"""Slower than this, the way an agent moves does not say where it faces."""


def assemble(path: Path) -> Trajectory:
    """Read and check the log of one whole match."""
    return _Reader(path).read()


class _Reader:
    """What is known of a file while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = EpisodeStart()
        self._names: list[str] = []
        self._first_ts: float | None = None
        self._ticks: list[int] = []
        self._moments: list[tuple[Step, ...]] = []
        self._waiting: Step | None = None
        self._tags: list[Tagging] = []
        self._anomalies: list[Anomaly] = []
        self._timed_out = False

    def read(self) -> Trajectory:
        records = read_records(self._path)
        self._take_start(records)
        for number, record in records:
            match record:
                case Step():
                    self._take_step(number, record)
                case EpisodeEnd():
                    trajectory = self._take_end(number, record)
                    self._expect_nothing(records)
                    return trajectory
                case _:
                    self._take_event(number, record)
        raise UserError(f"{self._path}: truncated: no episode_end")

    def _take_start(self, records: Iterator[tuple[int, Record]]) -> None:
        number, start = next(records, (0, None))
        if start is None:
            raise UserError(f"{self._path}: empty: expected the log of a match")
        if not isinstance(start, EpisodeStart):
            raise self._wrong(number, "expected an episode_start before anything else")
        if start.format not in (0, FORMAT):
            raise self._wrong(number, f"format {start.format}; this reads format {FORMAT}")
        self._names = list(start.agents or ())
        if len(set(self._names)) != len(self._names):
            raise self._wrong(number, "agents: expected two different names")
        if start.seeker is not None and self._names and start.seeker not in self._names:
            raise self._wrong(number, f"seeker: no agent '{start.seeker}'")
        self._start = start

    def _take_step(self, number: int, step: Step) -> None:
        self._index(number, "agent", step.agent)
        self._check_rays(number, step)
        tick = self._tick(number, step.tick, step.ts)
        if self._waiting is None:
            if self._ticks and tick <= self._ticks[-1]:
                raise self._wrong(number, f"tick {tick} comes after tick {self._ticks[-1]}")
            self._ticks.append(tick)
            self._waiting = step
            return
        if step.agent == self._waiting.agent or tick != self._ticks[-1]:
            raise self._wrong(
                number,
                f"agents out of step: {step.agent} at tick {tick}, where the other agent's "
                f"record of tick {self._ticks[-1]} is due",
            )
        pair = {self._waiting.agent: self._waiting, step.agent: step}
        if self._waiting.is_it == step.is_it:
            raise self._wrong(number, f"is_it: expected one seeker at tick {tick}")
        self._moments.append(tuple(pair[name] for name in self._names))
        self._waiting = None

    def _take_event(self, number: int, record: Record) -> None:
        match record:
            case Tag():
                attacker = self._index(number, "attacker", record.attacker)
                target = self._index(number, "target", record.target)
                if attacker == target:
                    raise self._wrong(number, f"{record.target} cannot tag itself")
                tick = self._tick(number, record.tick, record.ts)
                self._tags.append(Tagging(tick, attacker, target))
            case PhysicsAnomaly():
                agent = self._index(number, "agent", record.agent)
                tick = self._tick(number, record.tick, record.ts)
                self._anomalies.append(Anomaly(tick, agent, record.what))
            case Timeout():
                self._timed_out = True
            case _:
                raise self._wrong(number, "a second episode_start: a file holds one match")

    def _take_end(self, number: int, end: EpisodeEnd) -> Trajectory:
        if self._waiting is not None:
            raise self._wrong(
                number, f"agents out of step: only {self._waiting.agent} has tick {self._ticks[-1]}"
            )
        if not self._moments:
            raise self._wrong(number, "no steps before the episode_end")
        if end.tick is not None and end.tick != self._ticks[-1]:
            raise self._wrong(
                number, f"tick: the last step is at {self._ticks[-1]}, the end at {end.tick}"
            )
        winner = NOBODY if end.winner is None else self._index(number, "winner", end.winner)
        guessed: Reason = "timeout" if self._timed_out or not self._tags else "tag"
        return self._put_together(winner, end.terminal_reason or guessed)

    def _expect_nothing(self, records: Iterator[tuple[int, Record]]) -> None:
        for number, _ in records:
            raise self._wrong(number, "more after the episode_end: a file holds one match")

    def _put_together(self, winner: int, reason: Reason) -> Trajectory:
        moments = self._moments

        def column(name: str, kind: type) -> np.ndarray:
            return np.array([[getattr(step, name) for step in pair] for pair in moments], kind)

        velocities, types = column("vel", np.float64), column("types", np.int8)
        return Trajectory(
            start=self._start,
            agents=(self._names[0], self._names[1]),
            ticks=np.array(self._ticks, np.int64),
            positions=column("pos", np.float64),
            velocities=velocities,
            forwards=_forwards(moments, velocities),
            is_seeker=column("is_it", np.bool_),
            on_floor=column("on_floor", np.bool_),
            immune=column("immune", np.bool_),
            sees=_sees(moments, types),
            ray_distances=column("dists", np.float64),
            ray_types=types,
            tags=self._tags,
            anomalies=self._anomalies,
            winner=winner,
            reason=reason,
        )

    def _check_rays(self, number: int, step: Step) -> None:
        """All steps have as many rays as the first record says, or else the first step."""
        rays = len(step.dists)
        if self._start.eyes is not None:
            rays = self._start.eyes.rays
        elif self._moments:
            rays = len(self._moments[0][0].dists)
        elif self._waiting is not None:
            rays = len(self._waiting.dists)
        for name, values in (("dists", step.dists), ("types", step.types)):
            if len(values) != rays:
                raise self._wrong(number, f"{name}: expected {rays} numbers, got {len(values)}")

    def _index(self, number: int, key: str, name: str) -> int:
        """Which agent that is; where the first record names none, the first two steps do."""
        if name not in self._names:
            if len(self._names) == AGENTS or key != "agent" or self._start.agents is not None:
                known = " or ".join(self._names) or " or ".join(AGENT_NAMES)
                raise self._wrong(number, f"{key}: expected {known}, got '{name}'")
            self._names.append(name)
        return self._names.index(name)

    def _tick(self, number: int, tick: int | None, ts: float | None) -> int:
        """A record's tick: as it says, or by its second since the first step, or the last one."""
        if tick is not None:
            return tick
        if ts is None:
            return self._ticks[-1] if self._ticks else 0
        if self._first_ts is None:
            self._first_ts = ts
        counted = round((ts - self._first_ts) * self._start.ticks_per_second)
        if counted < 0:
            raise self._wrong(number, f"ts: {ts} is before the first step")
        return counted

    def _wrong(self, number: int, what: str) -> UserError:
        return wrong(self._path, number, what)


def _forwards(moments: list[tuple[Step, ...]], velocities: np.ndarray) -> np.ndarray:
    """Where the agents face; in logs that do not say, where they move, or as before."""
    forwards = np.zeros((len(moments), AGENTS, 2))
    facing = np.array([[0.0, 1.0]] * AGENTS)
    for moment, pair in enumerate(moments):
        for agent, step in enumerate(pair):
            move = velocities[moment, agent, ::2]
            if step.forward is not None:
                facing[agent] = step.forward
            elif (pace := float(np.hypot(*move))) > STANDING_MPS:
                facing[agent] = move / pace
        forwards[moment] = facing
    return forwards


def _sees(moments: list[tuple[Step, ...]], types: np.ndarray) -> np.ndarray:
    """Who sees the other; in logs that do not say, who has it on a ray."""
    on_a_ray = (types == 2).any(axis=2)
    said = [[step.sees for step in pair] for pair in moments]
    return np.array(
        [
            [bool(seen) if answer is None else answer for answer, seen in zip(*pair, strict=True)]
            for pair in zip(said, on_a_ray, strict=True)
        ]
    )
