"""The JSON messages of ws_protocol.md: what a client may say, and how it is answered.

Lenient: unknown fields are ignored, 7.0 is a seq too. What is checked more closely than its type,
such as an observation, stays as it came until somebody asks for it.
"""

from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct

from estragon.live.brain import Hello
from estragon.live.limits import LARGEST_OBSERVATION, MOST_AGENTS, MOST_TRANSITIONS

Seq: TypeAlias = Annotated[int, Meta(ge=0, lt=2**53)]
LARGEST_NUMBER = float(np.finfo(np.float32).max)
NOTHING = Raw(b"null")
UNREADABLE = (msgspec.MsgspecError, RecursionError)


class BadMessageError(Exception):
    """Text that says nothing that could be answered; the message says why."""


class BadHelloError(Exception):
    """A `hello` that cannot be read."""


class Act(Struct, frozen=True, tag="act", tag_field="type"):
    """One agent asks."""

    obs: Raw = NOTHING
    seq: Seq | None = None


class ActBatch(Struct, frozen=True, tag="act_batch", tag_field="type"):
    """Several agents ask."""

    obs: Annotated[dict[str, Raw], Meta(max_length=MOST_AGENTS)]
    seq: Seq | None = None


class Transition(Struct, frozen=True, tag="transition", tag_field="type"):
    """What one decision brought."""

    reward: float
    obs: Raw = NOTHING
    action: Raw = NOTHING
    next_obs: Raw = NOTHING
    done: bool = False
    info: dict[str, Any] = {}
    seq: Seq | None = None


class TransitionBatch(Struct, frozen=True, tag="transition_batch", tag_field="type"):
    """Several of them, each to be read on its own: one that is bad spoils no other."""

    transitions: Annotated[list[Raw], Meta(max_length=MOST_TRANSITIONS)]


class Unknown(Struct, frozen=True):
    """A type that we do not know."""

    type: str


Message: TypeAlias = Hello | Act | ActBatch | Transition | TransitionBatch | Unknown

_KNOWN = msgspec.json.Decoder(Hello | Act | ActBatch | Transition | TransitionBatch, strict=False)
_TYPE = msgspec.json.Decoder(Unknown)
_TRANSITION = msgspec.json.Decoder(Transition, strict=False)
_VECTOR = msgspec.json.Decoder(list[float])
_TYPES = {"hello", "act", "act_batch", "transition", "transition_batch"}


def read_message(text: str) -> Message:
    """What a client says; raises BadMessageError or BadHelloError."""
    try:
        known: Message = _KNOWN.decode(text)
    except UNREADABLE as error:
        return _read_unknown(text, str(error))
    return known


def read_transition(raw: Raw) -> Transition:
    """One transition of a batch; raises ValueError where it is bad."""
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
    """The answer to what we do not know."""
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
        raise BadMessageError(f"expected a JSON object with a type: {error}") from error
    if unknown.type == "hello":
        raise BadHelloError(complaint)
    if unknown.type in _TYPES:
        raise BadMessageError(complaint)
    return unknown
