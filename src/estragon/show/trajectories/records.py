"""The lines of a logged match: what each record holds, and a reader that says where one is wrong.

docs/trajectory_rendering.md describes the format. What a record may lack has a default here.
"""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from estragon.support.errors import UserError
from estragon.tag.layout import Layout, load_layout
from estragon.tag.rules import Positive, Rules, load_rules

FORMAT = 1
LONGEST_LINE = 2**20
"""Bytes; the longest records of ours have a hundredth of it."""
MOST_LINES = 500_000
"""A match of two agents over three hours has as many."""
LONGEST_COMPLAINT = 200

Name = Annotated[str, Meta(min_length=1, max_length=100)]
Tick = Annotated[int, Meta(ge=0, le=10**9)]
Metres = Annotated[float, Meta(ge=-1e6, le=1e6)]
Seconds = Annotated[float, Meta(ge=-1e12, le=1e12)]
RayType = Annotated[int, Meta(ge=0, le=2)]
"""0 nothing, 1 a wall or a box, 2 the other agent."""


@functools.cache
def own_rules() -> Rules:
    """The game's own rules, for what a log does not say."""
    return load_rules()


@functools.cache
def _own_layout() -> "LoggedLayout":
    own = load_layout(own_rules().layout, own_rules())
    return LoggedLayout(own.boxes, own.description, own.name)


class LoggedLayout(Layout, frozen=True, forbid_unknown_fields=False):
    """The boxes, as in a layout file, and the layout's name."""


class LoggedEyes(Struct, frozen=True):
    """The fan of rays."""

    rays: Annotated[int, Meta(ge=1, le=256)]
    fan_deg: Annotated[float, Meta(gt=0.0, lt=180.0)] = field(
        default_factory=lambda: own_rules().eyes.cone_deg
    )
    range_m: Positive = field(default_factory=lambda: own_rules().eyes.range_m)
    height_m: Metres = field(default_factory=lambda: own_rules().eyes.height_m)


class EpisodeStart(Struct, frozen=True, kw_only=True, tag_field="type", tag="episode_start"):
    """The first record: which match it is, and the game it is played by."""

    format: int = 0
    """0 where the log does not say."""
    episode: int = 0
    arena: int = 0
    engine: str = ""
    seed: int = 0
    rules: str = ""
    layout: LoggedLayout = field(default_factory=_own_layout)
    arena_size_m: tuple[Positive, Positive] = field(
        default_factory=lambda: (own_rules().arena.width_m, own_rules().arena.depth_m)
    )
    agent_size_m: Positive = field(default_factory=lambda: own_rules().agent.size_m)
    ticks_per_second: Annotated[int, Meta(ge=1, le=1000)] = field(
        default_factory=lambda: own_rules().physics.ticks_per_second
    )
    decision_ticks: Annotated[int, Meta(ge=1, le=1000)] = field(
        default_factory=lambda: own_rules().episode.step_tick_interval
    )
    time_limit_sec: Positive = field(default_factory=lambda: own_rules().episode.time_limit_sec)
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


class Tag(Struct, frozen=True, kw_only=True, tag_field="type", tag="tag"):
    """A tag."""

    episode: int = 0
    tick: Tick | None = None
    ts: Seconds | None = None
    attacker: Name
    target: Name


class Timeout(Struct, frozen=True, kw_only=True, tag_field="type", tag="timeout"):
    """The time is up."""

    episode: int = 0
    tick: Tick | None = None
    ts: Seconds | None = None


class PhysicsAnomaly(Struct, frozen=True, kw_only=True, tag_field="type", tag="physics_anomaly"):
    """An agent is where none can be; never seen in a game that keeps to its rules."""

    episode: int = 0
    tick: Tick | None = None
    ts: Seconds | None = None
    agent: Name
    what: str = ""


class EpisodeEnd(Struct, frozen=True, kw_only=True, tag_field="type", tag="episode_end"):
    """The last record."""

    episode: int = 0
    tick: Tick | None = None
    ts: Seconds | None = None
    winner: Name | None = None
    terminal_reason: Literal["tag", "timeout"] | None = None


Record = EpisodeStart | Step | Tag | Timeout | PhysicsAnomaly | EpisodeEnd

_DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def read_records(path: Path) -> Iterator[tuple[int, Record]]:
    """The records of a file with the numbers of their lines."""
    try:
        if not path.is_file():
            raise UserError(f"cannot read {path}: no such file")
        with path.open("rb") as stream:
            for number in range(1, MOST_LINES + 1):
                line = stream.readline(LONGEST_LINE + 1)
                if not line:
                    return
                if line.strip():
                    yield number, _decode(path, number, line)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    raise UserError(f"{path}: more than {MOST_LINES} lines: too long for one match")


def wrong(path: Path, number: int, what: str) -> UserError:
    """What to say of a line."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in what[:LONGEST_COMPLAINT])
    return UserError(f"{path}: line {number}: {shown}")


def _decode(path: Path, number: int, line: bytes) -> Record:
    if len(line) > LONGEST_LINE:
        raise wrong(path, number, f"longer than {LONGEST_LINE} bytes: not a record of a match")
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise wrong(path, number, _with_key(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if re.search(rb"\b(NaN|nan|Infinity|inf)\b", line):
            raise wrong(path, number, "a number that is not finite") from error
        if not line.endswith(b"\n"):
            raise wrong(path, number, "truncated in the middle of a record") from error
        raise wrong(path, number, f"not a JSON object: {error}") from error


def _with_key(message: str) -> str:
    """Turn msgspec's "… - at `$.pos[0]`" into "pos[0]: …"."""
    text, _, place = message.partition(" - at `$")
    key = place.rstrip("`").lstrip(".")
    text = text.replace("`", "'")
    return f"{key}: {text[:1].lower()}{text[1:]}" if key else text
