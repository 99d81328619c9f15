"""The encoding `binary1` of godot_rl_protocol.md: packed numbers, one buffer a message."""

import math
import struct
from typing import Any

import msgspec
import numpy as np

from estragon.envs.messages import Joined, check_infos, decode, encode
from estragon.envs.outcome import LAST, BadMessageError, Outcome, Sight
from estragon.envs.roster import MOST_AGENTS, Agent, Roster
from estragon.envs.spaces import SpaceError, read_spaces
from estragon.godot.channel import LENGTH

HEADER = struct.Struct("<BBHI")
"""Kind, flags, zeros, rows."""
ACTIONS, RESET, STEP = 0x41, 0x52, 0x53
JOINED, INFOS, MASKS = 1, 2, 4
STATES = bytes(range(16))
FLOAT32, UINT8 = np.dtype("<f4"), np.dtype("u1")
NO_BYTES = np.zeros(0, UINT8)
JOINERS = msgspec.json.Decoder(list[Joined])
INFO_LIST = msgspec.json.Decoder(list[dict[str, Any]])


class Calm:
    """Where everything is in a step of which there is nothing special to tell."""

    def __init__(self, roster: Roster) -> None:
        rows = len(roster)
        self.silent = HEADER.pack(STEP, 0, 0, rows)
        self.telling = HEADER.pack(STEP, INFOS, 0, rows)
        self.nobody = bytes(rows)
        self.no_states = np.frombuffer(self.nobody, UINT8)
        self.rows = rows
        self.states = HEADER.size + 4 * rows
        self.states_end = self.states + rows
        self.numbers = self.states + (rows + 3 & ~3)
        self.count, self.bytes = int(roster.numbers[-1]), int(roster.image_bytes[-1])
        self.images = self.numbers + 4 * self.count
        self.end = self.images + (self.bytes + 3 & ~3)
        # Where nobody's state is told, rewards, states and numbers are all of them floats.
        self.floats = (self.images - HEADER.size) // 4
        self.first_number = self.floats - self.count


class BinaryWire:
    """Writes what one game is told, and reads what it answers."""

    encoding = "binary1"

    def __init__(self, roster: Roster) -> None:
        self.roster = roster
        self._newest_id = max((agent.id for agent in roster.agents), default=-1)
        self._told: bytes | None = None
        self._infos: list[dict[str, Any]] = []
        self._prepare()

    def reset(self, seed: int | None) -> bytes:
        """A frame that asks for new episodes, with its length."""
        message = {"type": "reset"} if seed is None else {"type": "reset", "seed": seed}
        text = encode(message)
        return LENGTH.pack(len(text)) + text

    def actions(self, numbers: np.ndarray) -> bytearray:
        """A frame with all agents' actions, with its length; valid until the next one."""
        self._numbers[:] = numbers.reshape(-1)
        return self._frame

    def read(self, frame: bytearray, *, reset: bool) -> Outcome:
        """What came of it; the roster is then of those who play on."""
        if not reset and (calm := self._read_calm(frame)) is not None:
            return calm
        outcome = self._read_any(frame, reset=reset)
        outcome.check()
        if outcome.has_changes():
            self.roster = outcome.next_roster()
            joined = outcome.roster.agents[len(outcome.roster) - outcome.joined :]
            self._newest_id = max([self._newest_id, *(agent.id for agent in joined)])
            self._prepare()
        return outcome

    def _read_calm(self, frame: bytearray) -> Outcome | None:
        """Most frames: a step in which nobody's episode ends, nobody comes or goes."""
        calm = self._calm
        is_telling = frame.startswith(calm.telling)
        if not is_telling and (not frame.startswith(calm.silent) or len(frame) != calm.end):
            return None
        if len(frame) < calm.end or frame[calm.states : calm.states_end] != calm.nobody:
            return None
        floats = np.frombuffer(frame, FLOAT32, calm.floats, HEADER.size)
        outcome = Outcome(
            roster=self.roster,
            joined=0,
            rewards=floats[: calm.rows],
            states=calm.no_states,
            seen=Sight(
                self.roster,
                floats[calm.first_number :],
                np.frombuffer(frame, UINT8, calm.bytes, calm.images) if calm.bytes else NO_BYTES,
            ),
            infos=self._read_told(frame) if is_telling else None,
            calm=True,
        )
        if not math.isfinite(np.vdot(floats, floats)):
            outcome.check()
        return outcome

    def _read_told(self, frame: bytearray) -> list[dict[str, Any]]:
        """What agents tell in such a step; the very same list if it is the same again."""
        sections = Sections(frame, self._calm.end)
        text = bytes(sections.text())
        sections.finish()
        if text != self._told:
            self._infos = _read_infos(text, len(self.roster))
            self._told = text
        return self._infos

    def _read_any(self, frame: bytearray, *, reset: bool) -> Outcome:
        expected = RESET if reset else STEP
        if len(frame) < HEADER.size:
            raise BadMessageError(f"{len(frame)} bytes are no message")
        kind, flags, zeros, rows = HEADER.unpack_from(frame)
        if kind != expected:
            raise BadMessageError(f"kind {kind:#x} where {expected:#x} was due")
        if flags & ~(JOINED | INFOS | MASKS) or zeros:
            raise BadMessageError(f"flags {flags:#x} and {zeros:#x} mean nothing")
        if rows > MOST_AGENTS:
            raise BadMessageError(f"{rows} agents, of which there are at most {MOST_AGENTS}")
        sections = Sections(frame, HEADER.size)
        joined: tuple[Agent, ...] = ()
        if flags & JOINED:
            joined = self._read_joined(sections.text())
        roster = self.roster.joined_by(joined)
        if len(roster) != rows:
            raise BadMessageError(f"{rows} rows for {len(roster)} agents")
        rewards = sections.take(FLOAT32, rows)
        states = sections.take(UINT8, rows)
        nobody_ended = not any(states.tobytes())
        if not nobody_ended and states.tobytes().translate(None, STATES):
            raise BadMessageError(f"state {states.max()} means nothing")
        last_rows = None if nobody_ended else np.flatnonzero(states & LAST)
        ended = None if last_rows is None or not len(last_rows) else roster.only(last_rows)
        numbers = sections.take(FLOAT32, int(roster.numbers[-1]))
        last_numbers = sections.take(FLOAT32, int(ended.numbers[-1])) if ended else None
        images = sections.take(UINT8, int(roster.image_bytes[-1]))
        last_images = sections.take(UINT8, int(ended.image_bytes[-1])) if ended else None
        masks = sections.take(UINT8, int(roster.mask_bytes[-1])) if flags & MASKS else None
        infos = _read_infos(sections.text(), rows) if flags & INFOS else None
        sections.finish()
        last = None
        if ended is not None and last_numbers is not None and last_images is not None:
            last = Sight(ended, last_numbers, last_images)
        return Outcome(
            roster=roster,
            joined=len(joined),
            rewards=rewards,
            states=states,
            seen=Sight(roster, numbers, images),
            last=last,
            masks=masks,
            infos=infos,
            calm=nobody_ended and not joined,
        )

    def _prepare(self) -> None:
        """What depends on who plays."""
        self._calm = Calm(self.roster)
        head = HEADER.pack(ACTIONS, 0, 0, len(self.roster))
        size = HEADER.size + 4 * int(self.roster.actions[-1])
        self._frame = bytearray(LENGTH.size + size)
        self._frame[: LENGTH.size + HEADER.size] = LENGTH.pack(size) + head
        self._numbers = np.frombuffer(self._frame, FLOAT32, offset=LENGTH.size + HEADER.size)

    def _read_joined(self, text: memoryview) -> tuple[Agent, ...]:
        agents: list[Agent] = []
        newest = self._newest_id
        for joined in decode(JOINERS, text):
            if joined.id <= newest:
                raise BadMessageError(f"agent {joined.id} joined, but that id is used up")
            newest = joined.id
            try:
                spaces = read_spaces(
                    joined.observation_space,
                    joined.action_space,
                    joined.action_mask,
                    trusted_images=True,
                )
            except SpaceError as error:
                raise BadMessageError(f"agent {joined.id} joined: {error}") from error
            for known in (*self.roster.agents[:1], *agents):
                if known.spaces == spaces:
                    spaces = known.spaces
            agents.append(Agent(joined.id, joined.policy, spaces))
        return tuple(agents)


class Sections:
    """The sections of a frame one after the other, each at a multiple of 4 bytes."""

    def __init__(self, frame: bytearray, at: int) -> None:
        self._frame, self._at = frame, at

    def take(self, kind: np.dtype[Any], count: int) -> np.ndarray:
        """The next section, of which the length is known."""
        end = self._at + kind.itemsize * count
        if end > len(self._frame):
            raise BadMessageError(f"{len(self._frame)} bytes, but at least {end} were due")
        found = np.frombuffer(self._frame, kind, count, self._at)
        self._at = (end + 3) & ~3
        return found

    def text(self) -> memoryview:
        """The next section, which begins with its length."""
        if self._at + LENGTH.size > len(self._frame):
            raise BadMessageError(f"{len(self._frame)} bytes end before a text's length")
        (length,) = LENGTH.unpack_from(self._frame, self._at)
        start, end = self._at + LENGTH.size, self._at + LENGTH.size + length
        if end > len(self._frame):
            raise BadMessageError(f"a text of {length} bytes ends behind the message")
        self._at = (end + 3) & ~3
        return memoryview(self._frame)[start:end]

    def finish(self) -> None:
        """Nothing may follow but what fills the last section up."""
        if len(self._frame) > self._at:
            raise BadMessageError(f"{len(self._frame) - self._at} bytes too many")


def _read_infos(text: bytes | memoryview, rows: int) -> list[dict[str, Any]]:
    infos: list[dict[str, Any]] = decode(INFO_LIST, text)
    if len(infos) != rows:
        raise BadMessageError(f"{len(infos)} infos for {rows} agents")
    check_infos(infos)
    return infos
