"""The wire of live play: limits, JSON messages and binary frames; docs/ws_protocol.md defines it.

JSON is read leniently: unknown fields are ignored, and 7.0 is a seq too. What is checked more
closely than its type, such as an observation, stays raw until it is used.
"""

import math
import struct
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct

from estragon.tag.rules import ACTION_SIZE, AGENTS, TERMS, Role

PORT = 8765
PROTOCOL = 1
LARGEST_MESSAGE = 16 * 2**20
"""Bytes."""
MOST_ARENAS = 1024
LARGEST_OBSERVATION = 4096
MOST_SIZES = 16
"""Different observation sizes of a server."""
MOST_AGENTS = 2048
"""In an `act_batch`, and of a connection."""
LONGEST_NAME = 128
MOST_TRANSITIONS = 4096
BAD_MESSAGES_IN_A_ROW = 100


@dataclass(frozen=True)
class Limits:
    """The limits of a server that a test makes tighter."""

    connections: int = 64
    open_sec: float = 10.0
    """For the opening handshake."""
    send_sec: float = 20.0
    """For a client to take an answer."""
    ping_every_sec: float = 20.0
    ping_sec: float = 60.0
    """For a client to answer a ping."""
    close_sec: float = 2.0
    """For a client to answer that the connection is closed."""


class Hello(Struct, frozen=True, tag="hello", tag_field="type"):
    """The handshake of a client."""

    protocol: int
    observation_size: int
    observation_version: int = 0
    action_size: int = 3
    encoding: str = "json"
    arenas: int = 1
    tick_rate: int = 60
    step_tick_interval: int = 3
    seed: int = 0
    rules: str = "seek"
    rewards: str = "default"
    training: bool = True
    controlled: tuple[bool, bool] = (True, True)
    client: str = ""


class Outcome(NamedTuple):
    """The outcome of a decision, one row per arena."""

    rewards: np.ndarray
    """(arenas, 2) float32."""
    terms: np.ndarray
    """(arenas, 2, terms) float64: the same, term by term."""
    distances: np.ndarray
    """(arenas,) float64."""
    ticks: np.ndarray
    """(arenas,) int32."""
    ends: np.ndarray
    """(arenas,) int8: 0 going on, 1 tagged, 2 timed out."""
    winners: np.ndarray
    """(arenas,) int8."""
    last: np.ndarray
    """(episodes that ended, 2, size) float32: what was seen last in them."""


class Decision(NamedTuple):
    """The request of all arenas of a client at once."""

    seq: int
    outcome: Outcome | None
    """Of the decision before."""
    seekers: np.ndarray
    """(arenas,) int8: who is "it"."""
    observations: np.ndarray
    """(arenas, 2, size) float32."""


class ActionRequest(NamedTuple):
    """The request of one agent of a client that speaks JSON."""

    client: int
    agent: str
    seq: int | None
    observation: np.ndarray
    """(size,) float32, finite."""


class Experience(NamedTuple):
    """The outcome of one decision of such an agent."""

    client: int
    agent: str
    seq: int | None
    observation: np.ndarray | None
    """None where `seq` identifies it."""
    action: np.ndarray | None
    """(3,) float32."""
    reward: float
    next_observation: np.ndarray | None
    done: bool
    role: Role | None
    info: dict[str, Any]


Seq: TypeAlias = Annotated[int, Meta(ge=0, lt=2**53)]
LARGEST_NUMBER = float(np.finfo(np.float32).max)
NOTHING = Raw(b"null")
UNREADABLE = (msgspec.MsgspecError, RecursionError)


class InvalidMessageError(Exception):
    """An invalid message; the text says why."""


class BadHelloError(Exception):
    """A `hello` that cannot be read."""


class Act(Struct, frozen=True, tag="act", tag_field="type"):
    """The request of one agent."""

    obs: Raw = NOTHING
    seq: Seq | None = None


class ActBatch(Struct, frozen=True, tag="act_batch", tag_field="type"):
    """The request of several agents."""

    obs: Annotated[dict[str, Raw], Meta(max_length=MOST_AGENTS)]
    seq: Seq | None = None


class Transition(Struct, frozen=True, tag="transition", tag_field="type"):
    """The outcome of one decision."""

    reward: float
    obs: Raw = NOTHING
    action: Raw = NOTHING
    next_obs: Raw = NOTHING
    done: bool = False
    info: dict[str, Any] = {}
    seq: Seq | None = None


class TransitionBatch(Struct, frozen=True, tag="transition_batch", tag_field="type"):
    """Several of them, each decoded on its own: a bad one does not spoil the others."""

    transitions: Annotated[list[Raw], Meta(max_length=MOST_TRANSITIONS)]


class Unknown(Struct, frozen=True):
    """A message of an unknown type."""

    type: str


Message: TypeAlias = Hello | Act | ActBatch | Transition | TransitionBatch | Unknown

_KNOWN = msgspec.json.Decoder(Hello | Act | ActBatch | Transition | TransitionBatch, strict=False)
_TYPE = msgspec.json.Decoder(Unknown)
_TRANSITION = msgspec.json.Decoder(Transition, strict=False)
_VECTOR = msgspec.json.Decoder(list[float])
_TYPES = {"hello", "act", "act_batch", "transition", "transition_batch"}


def read_message(text: str) -> Message:
    """Decode a message; raises BadMessageError or BadHelloError."""
    try:
        known: Message = _KNOWN.decode(text)
    except UNREADABLE as error:
        return _read_unknown(text, str(error))
    return known


def read_transition(raw: Raw) -> Transition:
    """One transition of a batch; raises ValueError where it is invalid."""
    try:
        return _TRANSITION.decode(raw)
    except UNREADABLE as error:
        raise ValueError(str(error)) from error


def read_vector(raw: Raw, largest: int = LARGEST_OBSERVATION) -> np.ndarray:
    """A list of finite numbers, (numbers,) float32; raises ValueError where it is not one."""
    try:
        numbers = _VECTOR.decode(raw)
    except UNREADABLE as error:
        raise ValueError(str(error)) from error
    if not 1 <= len(numbers) <= largest:
        raise ValueError(f"{len(numbers)} numbers; expected 1 to {largest}")
    if min(numbers) < -LARGEST_NUMBER or max(numbers) > LARGEST_NUMBER:  # JSON has no NaN
        raise ValueError("holds a number that is not finite")
    return np.array(numbers, dtype=np.float32)


def write_actions(
    actions: dict[str, list[float]], info: dict[str, str], seq: int | None, *, single: bool
) -> str:
    """The answer to an `act` or an `act_batch`."""
    message: dict[str, Any] = (
        {"type": "action", "action": next(iter(actions.values()))}
        if single
        else {"type": "action_batch", "actions": actions}
    )
    message["info"] = info
    if seq is not None:
        message["seq"] = seq
    return write_message(message)


def write_echo(text: str) -> str:
    """The answer to a message of an unknown type."""
    return f'{{"type":"echo","recv":{text}}}'


def write_error(what: str) -> str:
    """The answer to a bad message."""
    return write_message({"type": "error", "error": what})


def write_message(message: dict[str, Any]) -> str:
    """A message as JSON."""
    return msgspec.json.encode(message).decode()


def _read_unknown(text: str, complaint: str) -> Unknown:
    try:
        unknown = _TYPE.decode(text)
    except UNREADABLE as error:
        raise InvalidMessageError(f"expected a JSON object with a type: {error}") from error
    if unknown.type == "hello":
        raise BadHelloError(complaint)
    if unknown.type in _TYPES:
        raise InvalidMessageError(complaint)
    return unknown


HEADER = struct.Struct("<BBHI")
"""Kind, flags, arenas, seq."""
DECISION, ACTIONS = 0x44, 0x41
WITH_RESULTS = 1
SEQS = 2**32
FLOAT32 = np.dtype("<f4")
ENDS, WINNERS, SEEKERS = b"\x00\x01\x02", b"\xff\x00\x01", b"\x00\x01"
"""The bytes that may be there."""


class BadFrameError(Exception):
    """An invalid binary frame; the message says why."""


class FrameCodec:
    """Reads the decisions of one client, in order, and writes the answers.

    Arrays are views of the frame where its bytes are aligned, and copies where they are not.
    """

    def __init__(self, hello: Hello) -> None:
        arenas, size = hello.arenas, hello.observation_size
        self._arenas, self._size = arenas, size
        self._played = None if all(hello.controlled) else np.array(hello.controlled)[:, None]
        self._next_seq: int | None = None
        self._results = np.dtype(
            [
                ("rewards", "<f4", (arenas, AGENTS)),
                ("terms", "<f8", (arenas, AGENTS, len(TERMS))),
                ("distances", "<f8", (arenas,)),
                ("ticks", "<i4", (arenas,)),
                ("ends", "i1", (arenas,)),
                ("winners", "i1", (arenas,)),
            ]
        )
        self._now = arenas + self._seen_bytes(arenas)

    @property
    def largest(self) -> int:
        """Bytes of a frame in which all episodes ended."""
        return HEADER.size + self._results.itemsize + self._seen_bytes(self._arenas) + self._now

    def read(self, data: bytes) -> Decision:
        """The decision in a frame; raises BadFrameError where anything in it is wrong."""
        if len(data) < HEADER.size:
            raise BadFrameError(f"{len(data)} bytes are no frame")
        kind, flags, arenas, seq = HEADER.unpack_from(data)
        if kind != DECISION or flags & ~WITH_RESULTS:
            raise BadFrameError(f"no frame has kind {kind} and flags {flags}")
        if arenas != self._arenas:
            raise BadFrameError(f"{arenas} arenas, but {self._arenas} in hello")
        if self._next_seq is None and flags:
            raise BadFrameError("results in the first frame")
        if self._next_seq not in (None, seq):
            raise BadFrameError(f"seq {seq} where {self._next_seq} comes next")
        outcome, at = self._read_results(data) if flags else (None, HEADER.size)
        if len(data) != at + self._now:
            raise BadFrameError(f"{len(data)} bytes instead of {at + self._now}")
        _check_bytes("seekers", data[at : at + arenas], SEEKERS)
        seekers = np.frombuffer(data, np.int8, arenas, at)
        observations = self._read_seen("observations", data, arenas, at + arenas)
        self._next_seq = (seq + 1) % SEQS
        return Decision(seq, outcome, seekers, observations)

    def write(self, seq: int, actions: np.ndarray) -> bytes:
        """The frame with the answer to a decision, zeros for agents the server does not control."""
        if self._played is not None:
            actions = np.where(self._played, actions, np.float32(0.0))
        header = HEADER.pack(ACTIONS, 0, self._arenas, seq)
        return header + actions.astype(FLOAT32, copy=False).tobytes()

    def _read_results(self, data: bytes) -> tuple[Outcome, int]:
        """The outcome of the decision before, and where it ends in the frame."""
        at = HEADER.size + self._results.itemsize
        if len(data) < at + self._now:
            raise BadFrameError(f"{len(data)} bytes are too few for results")
        ends = data[at - 2 * self._arenas : at - self._arenas]
        _check_bytes("ends", ends, ENDS)
        _check_bytes("winners", data[at - self._arenas : at], WINNERS)
        ended = self._arenas - ends.count(0)
        after = at + self._seen_bytes(ended)
        if len(data) != after + self._now:
            raise BadFrameError(f"{len(data)} bytes instead of {after + self._now}")
        results = np.frombuffer(data, self._results, 1, HEADER.size)[0]
        outcome = Outcome(
            rewards=results["rewards"],
            terms=results["terms"],
            distances=results["distances"],
            ticks=results["ticks"],
            ends=results["ends"],
            winners=results["winners"],
            last=self._read_seen("last", data, ended, at),
        )
        _check_finite("rewards", outcome.rewards)
        _check_finite("terms", outcome.terms)
        _check_finite("distances", outcome.distances)
        return outcome, after

    def _read_seen(self, name: str, data: bytes, arenas: int, at: int) -> np.ndarray:
        count = arenas * AGENTS * self._size
        seen = np.frombuffer(data, FLOAT32, count, at).reshape(arenas, AGENTS, self._size)
        if not seen.flags.aligned:
            seen = seen.copy()
        _check_finite(name, seen)
        return seen

    def _seen_bytes(self, arenas: int) -> int:
        return arenas * AGENTS * self._size * 4


def check_actions(actions: np.ndarray, *shape: int) -> np.ndarray:
    """Check an actor's answer; raises ValueError where it is not (..., 3) finite numbers."""
    if actions.shape != (*shape, ACTION_SIZE) or not np.isfinite(actions).all():
        raise ValueError(f"the actor returned {actions.shape}, expected finite actions {shape}")
    return actions


def _check_finite(name: str, numbers: np.ndarray) -> None:
    # A sum of squares that is finite has finite terms, and costs half as much to look at.
    if not math.isfinite(np.vdot(numbers, numbers)) and not np.isfinite(numbers).all():
        raise BadFrameError(f"{name} that are not finite")


def _check_bytes(name: str, found: bytes, allowed: bytes) -> None:
    if left := found.translate(None, allowed):
        raise BadFrameError(f"{name}: no such thing as {left[0]}")
