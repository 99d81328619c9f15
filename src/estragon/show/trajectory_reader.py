"""Reads the JSONL file of one match, with errors that name the file and the line."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from estragon.show.trajectory import (
    AGENT_NAMES,
    FORMAT,
    NOBODY,
    Anomaly,
    EpisodeEnd,
    EpisodeStart,
    PhysicsAnomaly,
    Reason,
    Record,
    Step,
    Tag,
    Tagging,
    Timeout,
    Trajectory,
)
from estragon.support.errors import UserError
from estragon.tag.rules import AGENTS

MAX_LINE_BYTES = 2**20
"""Our longest records have a hundredth of it."""
MAX_LINES = 500_000
"""A match of two agents over three hours."""
MAX_MESSAGE = 200
STANDING_MPS = 0.001
"""Below this speed, the velocity does not say where an agent faces."""

_DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def read_trajectory(path: Path) -> Trajectory:
    """Read and check the log of one whole match."""
    return _Reader(path).read()


class _Reader:
    """The state of a file that is being read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = EpisodeStart()
        self._names: list[str] = []
        self._first_ts: float | None = None
        self._ticks: list[int] = []
        self._rows: list[tuple[Step, ...]] = []
        self._pending: Step | None = None
        """The first agent's step of a tick whose second is still to come."""
        self._tags: list[Tagging] = []
        self._anomalies: list[Anomaly] = []
        self._timed_out = False

    def read(self) -> Trajectory:
        records = self._records()
        self._read_start(records)
        for number, record in records:
            match record:
                case Step():
                    self._read_step(number, record)
                case Tag():
                    self._read_tag(number, record)
                case PhysicsAnomaly():
                    agent = self._index(number, "agent", record.agent)
                    tick = self._tick(number, record.tick, record.ts)
                    self._anomalies.append(Anomaly(tick, agent, record.what))
                case Timeout():
                    self._timed_out = True
                case EpisodeEnd():
                    trajectory = self._read_end(number, record)
                    for after, _ in records:
                        raise self._error(
                            after, "more after the episode_end: a file holds one match"
                        )
                    return trajectory
                case _:
                    raise self._error(number, "a second episode_start: a file holds one match")
        raise UserError(f"{self._path}: truncated: no episode_end")

    def _records(self) -> Iterator[tuple[int, Record]]:
        """The records with their line numbers."""
        path = self._path
        if not path.is_file():
            raise UserError(f"cannot read {path}: no such file")
        try:
            with path.open("rb") as stream:
                for number in range(1, MAX_LINES + 1):
                    line = stream.readline(MAX_LINE_BYTES + 1)
                    if not line:
                        return
                    if line.strip():
                        yield number, self._decode(number, line)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from error
        raise UserError(f"{path}: more than {MAX_LINES} lines: too long for one match")

    def _decode(self, number: int, line: bytes) -> Record:
        if len(line) > MAX_LINE_BYTES:
            raise self._error(
                number, f"longer than {MAX_LINE_BYTES} bytes: not a record of a match"
            )
        try:
            return _DECODER.decode(line)
        except msgspec.ValidationError as error:
            # msgspec says "Expected … - at `$.pos[0]`"
            text, _, place = str(error).replace("`", "'").partition(" - at '$")
            key = place.rstrip("'").lstrip(".")
            message = f"{key}: {text[:1].lower()}{text[1:]}" if key else text
            raise self._error(number, message) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if re.search(rb"\b(NaN|nan|Infinity|inf)\b", line):
                raise self._error(number, "a number that is not finite") from error
            if not line.endswith(b"\n"):
                raise self._error(number, "truncated in the middle of a record") from error
            raise self._error(number, f"not a JSON object: {error}") from error

    def _read_start(self, records: Iterator[tuple[int, Record]]) -> None:
        number, start = next(records, (0, None))
        if start is None:
            raise UserError(f"{self._path}: empty: expected the log of a match")
        if not isinstance(start, EpisodeStart):
            raise self._error(number, "expected an episode_start before anything else")
        if start.format not in (0, FORMAT):
            raise self._error(number, f"format {start.format}; this reads format {FORMAT}")
        self._names = list(start.agents or ())
        if len(set(self._names)) != len(self._names):
            raise self._error(number, "agents: expected two different names")
        if start.seeker is not None and self._names and start.seeker not in self._names:
            raise self._error(number, f"seeker: no agent '{start.seeker}'")
        self._start = start

    def _read_step(self, number: int, step: Step) -> None:
        self._index(number, "agent", step.agent)
        self._check_rays(number, step)
        tick = self._tick(number, step.tick, step.ts)
        if self._pending is None:
            if self._ticks and tick <= self._ticks[-1]:
                raise self._error(number, f"tick {tick} comes after tick {self._ticks[-1]}")
            self._ticks.append(tick)
            self._pending = step
            return
        if step.agent == self._pending.agent or tick != self._ticks[-1]:
            raise self._error(
                number,
                f"agents out of step: {step.agent} at tick {tick}, where the other agent's "
                f"record of tick {self._ticks[-1]} is due",
            )
        if self._pending.is_it == step.is_it:
            raise self._error(number, f"is_it: expected one seeker at tick {tick}")
        pair = {self._pending.agent: self._pending, step.agent: step}
        self._rows.append(tuple(pair[name] for name in self._names))
        self._pending = None

    def _check_rays(self, number: int, step: Step) -> None:
        """All steps have as many rays as the start says, or else the first step."""
        first = self._rows[0][0] if self._rows else self._pending or step
        rays = len(first.dists) if self._start.eyes is None else self._start.eyes.rays
        for name, values in (("dists", step.dists), ("types", step.types)):
            if len(values) != rays:
                raise self._error(number, f"{name}: expected {rays} numbers, got {len(values)}")

    def _read_tag(self, number: int, tag: Tag) -> None:
        attacker = self._index(number, "attacker", tag.attacker)
        target = self._index(number, "target", tag.target)
        if attacker == target:
            raise self._error(number, f"{tag.target} cannot tag itself")
        self._tags.append(Tagging(self._tick(number, tag.tick, tag.ts), attacker, target))

    def _read_end(self, number: int, end: EpisodeEnd) -> Trajectory:
        if self._pending is not None:
            raise self._error(
                number, f"agents out of step: only {self._pending.agent} has tick {self._ticks[-1]}"
            )
        if not self._rows:
            raise self._error(number, "no steps before the episode_end")
        if end.tick is not None and end.tick != self._ticks[-1]:
            raise self._error(
                number, f"tick: the last step is at {self._ticks[-1]}, the end at {end.tick}"
            )
        rows = self._rows

        def column(name: str, kind: type) -> np.ndarray:
            return np.array([[getattr(step, name) for step in pair] for pair in rows], kind)

        guessed: Reason = "timeout" if self._timed_out or not self._tags else "tag"
        velocities, types = column("vel", np.float64), column("types", np.int8)
        sees, on_a_ray = column("sees", object), (types == 2).any(axis=2)
        return Trajectory(
            start=self._start,
            agents=(self._names[0], self._names[1]),
            ticks=np.array(self._ticks, np.int64),
            positions=column("pos", np.float64),
            velocities=velocities,
            forwards=_forwards(rows, velocities),
            is_seeker=column("is_it", np.bool_),
            on_floor=column("on_floor", np.bool_),
            immune=column("immune", np.bool_),
            sees=np.where(sees == None, on_a_ray, sees).astype(np.bool_),  # noqa: E711
            ray_distances=column("dists", np.float64),
            ray_types=types,
            tags=self._tags,
            anomalies=self._anomalies,
            winner=NOBODY if end.winner is None else self._index(number, "winner", end.winner),
            reason=end.terminal_reason or guessed,
        )

    def _index(self, number: int, key: str, name: str) -> int:
        """The agent's index; where the start names no agents, the first two steps do."""
        if name not in self._names:
            if len(self._names) == AGENTS or key != "agent" or self._start.agents is not None:
                known = " or ".join(self._names or AGENT_NAMES)
                raise self._error(number, f"{key}: expected {known}, got '{name}'")
            self._names.append(name)
        return self._names.index(name)

    def _tick(self, number: int, tick: int | None, ts: float | None) -> int:
        """A record's tick: as stated, or from its time since the first step, or the last one."""
        if tick is not None:
            return tick
        if ts is None:
            return self._ticks[-1] if self._ticks else 0
        if self._first_ts is None:
            self._first_ts = ts
        counted = round((ts - self._first_ts) * self._start.ticks_per_second)
        if counted < 0:
            raise self._error(number, f"ts: {ts} is before the first step")
        return counted

    def _error(self, number: int, what: str) -> UserError:
        shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in what[:MAX_MESSAGE])
        return UserError(f"{self._path}: line {number}: {shown}")


def _forwards(rows: list[tuple[Step, ...]], velocities: np.ndarray) -> np.ndarray:
    """Where the agents face; in logs that do not say, where they move, or as before."""
    forwards = np.zeros((len(rows), AGENTS, 2))
    facing = np.array([[0.0, 1.0]] * AGENTS)
    for row, pair in enumerate(rows):
        for agent, step in enumerate(pair):
            move = velocities[row, agent, ::2]
            if step.forward is not None:
                facing[agent] = step.forward
            elif (speed := float(np.hypot(*move))) > STANDING_MPS:
                facing[agent] = move / speed
        forwards[row] = facing
    return forwards
