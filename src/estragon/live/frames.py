"""The binary frames of ws_protocol.md: decisions from the client, actions from the server."""

import math
import struct

import numpy as np

from estragon.live.brain import Decision, Hello, Outcome
from estragon.tag.rules import ACTION_SIZE, AGENTS, TERMS

HEADER = struct.Struct("<BBHI")
"""Kind, flags, arenas, seq."""
DECISION, ACTIONS = 0x44, 0x41
WITH_RESULTS = 1
SEQS = 2**32
FLOAT32 = np.dtype("<f4")
ENDS, WINNERS, SEEKERS = b"\x00\x01\x02", b"\xff\x00\x01", b"\x00\x01"
"""The bytes that may be there."""


class BadFrameError(Exception):
    """A binary frame that is not as it must be; the message says why."""


class Frames:
    """Reads the decisions of one client, in order, and writes what it is answered.

    What is read are views of the frame where its bytes lie well, and copies where they do not.
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
        """The frame with the answer to a decision, zeros for whom the server does not play."""
        if self._played is not None:
            actions = np.where(self._played, actions, np.float32(0.0))
        return (
            HEADER.pack(ACTIONS, 0, self._arenas, seq)
            + actions.astype(FLOAT32, copy=False).tobytes()
        )

    def _read_results(self, data: bytes) -> tuple[Outcome, int]:
        """What the decision before brought, and where it ends in the frame."""
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
    """What a brain answered; raises ValueError where it is not (..., 3) finite numbers."""
    if actions.shape != (*shape, ACTION_SIZE) or not np.isfinite(actions).all():
        raise ValueError(f"the brain answered {actions.shape} instead of {shape} finite actions")
    return actions


def _check_finite(name: str, numbers: np.ndarray) -> None:
    # A sum of squares that is finite has finite terms, and costs half as much to look at.
    if not math.isfinite(np.vdot(numbers, numbers)) and not np.isfinite(numbers).all():
        raise BadFrameError(f"{name} that are not finite")


def _check_bytes(name: str, found: bytes, allowed: bytes) -> None:
    if left := found.translate(None, allowed):
        raise BadFrameError(f"{name}: no such thing as {left[0]}")
