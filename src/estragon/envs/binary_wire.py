"""The encoding `binary1` of docs/godot_rl_protocol.md: packed numbers, one buffer per message."""

import math
import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from estragon.envs.spaces import SpaceError, read_spaces
from estragon.envs.wire import (
    BINARY,
    HAS_FINAL_OBS,
    MAX_AGENTS,
    PARAMETERS,
    AgentInfo,
    AgentTable,
    BadMessageError,
    InfoDecoder,
    Observations,
    StepResult,
    Wire,
    decode_json,
    framed,
)
from estragon.godot.channel import LENGTH
from estragon.support.parameters import Values

HEADER = struct.Struct("<BBHI")
"""Kind, flags, zero, rows."""
ACTIONS, RESET, STEP = 0x41, 0x52, 0x53
JOINED, INFOS, MASKS = 1, 2, 4
AGENT_FLAGS = bytes(range(16))
FLOAT32, UINT8 = np.dtype("<f4"), np.dtype("u1")
NO_IMAGES = np.zeros(0, UINT8)


class JoinedAgent(msgspec.Struct):
    """An agent that joined during the run."""

    id: int
    policy: str
    observation_space: dict[str, Any]
    action_space: dict[str, Any]
    action_mask: dict[str, int] = {}


JOINED_AGENTS = msgspec.json.Decoder(list[JoinedAgent])


class StepLayout:
    """Where the sections are in the frame of an uneventful step, in bytes."""

    def __init__(self, table: AgentTable) -> None:
        self.rows = rows = len(table)
        self.header = HEADER.pack(STEP, 0, 0, rows)
        self.header_with_infos = HEADER.pack(STEP, INFOS, 0, rows)
        self.no_flags = bytes(rows)
        self.flags = np.frombuffer(self.no_flags, UINT8)
        self.flags_start = HEADER.size + 4 * rows
        self.flags_end = self.flags_start + rows
        values, self.image_bytes = int(table.obs_offsets[-1]), int(table.image_offsets[-1])
        self.images_start = self.flags_start + (rows + 3 & ~3) + 4 * values
        self.end = self.images_start + (self.image_bytes + 3 & ~3)
        # If no flag is set, rewards, flags and observations can all be read as floats.
        self.floats = (self.images_start - HEADER.size) // 4
        self.first_value = self.floats - values


class BinaryWire(Wire):
    """The wire of games with Estragon's addon."""

    encoding = BINARY

    def __init__(self, table: AgentTable) -> None:
        super().__init__(table)
        self._newest_id = max((agent.id for agent in table.agents), default=-1)
        self._infos = InfoDecoder()
        self._prepare()

    def encode_reset(self, seed: int | None, parameters: Sequence[Values] | None = None) -> bytes:
        """A request for new episodes."""
        given = {"seed": seed, PARAMETERS: parameters}
        return framed({"type": "reset"} | {key: v for key, v in given.items() if v is not None})

    def encode_actions(self, actions: np.ndarray) -> bytearray:
        """The actions of all agents; valid until the next call."""
        self._actions[:] = actions.reshape(-1)
        return self._frame

    def decode(self, frame: bytearray, *, reset: bool) -> StepResult:
        """The answer to a reset, or to actions; updates `table`."""
        if not reset and (uneventful := self._decode_uneventful(frame)) is not None:
            return uneventful
        result = self._decode_any(frame, reset=reset)
        result.check()
        if result.agents_changed():
            self.table = result.next_table()
            joined = result.table.agents[len(result.table) - result.num_joined :]
            self._newest_id = max([self._newest_id, *(agent.id for agent in joined)])
            self._prepare()
        return result

    def _decode_uneventful(self, frame: bytearray) -> StepResult | None:
        """The fast path for most steps: no episode ends, no agent joins or leaves."""
        layout = self._layout
        has_infos = frame.startswith(layout.header_with_infos)
        if not has_infos and (not frame.startswith(layout.header) or len(frame) != layout.end):
            return None
        if (
            len(frame) < layout.end
            or frame[layout.flags_start : layout.flags_end] != layout.no_flags
        ):
            return None
        floats = np.frombuffer(frame, FLOAT32, layout.floats, HEADER.size)
        images = NO_IMAGES
        if layout.image_bytes:
            images = np.frombuffer(frame, UINT8, layout.image_bytes, layout.images_start)
        infos = None
        if has_infos:
            sections = SectionReader(frame, layout.end)
            infos = self._infos.decode(sections.text(), layout.rows, reuse=True)
            sections.finish()
        result = StepResult(
            table=self.table,
            num_joined=0,
            rewards=floats[: layout.rows],
            flags=layout.flags,
            obs=Observations(self.table, floats[layout.first_value :], images),
            infos=infos,
            uneventful=True,
        )
        if not math.isfinite(np.vdot(floats, floats)):
            result.check()
        return result

    def _decode_any(self, frame: bytearray, *, reset: bool) -> StepResult:
        expected = RESET if reset else STEP
        if len(frame) < HEADER.size:
            raise BadMessageError(f"a frame of {len(frame)} bytes, expected at least {HEADER.size}")
        kind, flags, zero, rows = HEADER.unpack_from(frame)
        if kind != expected:
            raise BadMessageError(f"a message of kind {kind:#x}, expected {expected:#x}")
        if flags & ~(JOINED | INFOS | MASKS) or zero:
            raise BadMessageError(f"unknown flags {flags:#x} and {zero:#x}")
        if rows > MAX_AGENTS:
            raise BadMessageError(f"{rows} agents, expected at most {MAX_AGENTS}")
        sections = SectionReader(frame, HEADER.size)
        joined = self._decode_joined(sections.text()) if flags & JOINED else ()
        table = self.table.extend(joined)
        if len(table) != rows:
            raise BadMessageError(f"{rows} rows for {len(table)} agents")
        rewards = sections.take(FLOAT32, rows)
        states = sections.take(UINT8, rows)
        if states.tobytes().translate(None, AGENT_FLAGS):
            raise BadMessageError(f"unknown agent flags {states.max():#x}")
        final_rows = np.flatnonzero(states & HAS_FINAL_OBS)
        ended = table.select(final_rows) if len(final_rows) else None
        values = sections.take(FLOAT32, int(table.obs_offsets[-1]))
        final_values = sections.take(FLOAT32, int(ended.obs_offsets[-1])) if ended else None
        images = sections.take(UINT8, int(table.image_offsets[-1]))
        final_images = sections.take(UINT8, int(ended.image_offsets[-1])) if ended else None
        masks = sections.take(UINT8, int(table.mask_offsets[-1])) if flags & MASKS else None
        infos = None
        if flags & INFOS:
            infos = self._infos.decode(sections.text(), rows, reuse=False)
        sections.finish()
        final_obs = None
        if ended is not None and final_values is not None and final_images is not None:
            final_obs = Observations(ended, final_values, final_images)
        return StepResult(
            table=table,
            num_joined=len(joined),
            rewards=rewards,
            flags=states,
            obs=Observations(table, values, images),
            final_obs=final_obs,
            masks=masks,
            infos=infos,
            uneventful=not joined and not states.any(),
        )

    def _prepare(self) -> None:
        """Compute what depends on which agents play."""
        self._layout = StepLayout(self.table)
        size = HEADER.size + 4 * int(self.table.action_offsets[-1])
        start = LENGTH.size + HEADER.size
        self._frame = bytearray(LENGTH.size + size)
        self._frame[:start] = LENGTH.pack(size) + HEADER.pack(ACTIONS, 0, 0, len(self.table))
        self._actions = np.frombuffer(self._frame, FLOAT32, offset=start)

    def _decode_joined(self, text: bytes) -> tuple[AgentInfo, ...]:
        agents: list[AgentInfo] = []
        newest = self._newest_id
        for joined in decode_json(JOINED_AGENTS, text):
            if joined.id <= newest:
                raise BadMessageError(f"agent {joined.id} joined, but that id is already used")
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
            agents.append(AgentInfo(joined.id, joined.policy, spaces))
        return tuple(agents)


class SectionReader:
    """Reads the sections of a frame in order, each aligned to 4 bytes."""

    def __init__(self, frame: bytearray, start: int) -> None:
        self._frame, self._at = frame, start

    def take(self, dtype: np.dtype[Any], count: int) -> np.ndarray:
        """The next section, whose length is known."""
        end = self._at + dtype.itemsize * count
        if end > len(self._frame):
            raise BadMessageError(f"{len(self._frame)} bytes, expected at least {end}")
        found = np.frombuffer(self._frame, dtype, count, self._at)
        self._at = (end + 3) & ~3
        return found

    def text(self) -> bytes:
        """The next section, which starts with its length."""
        start = self._at + LENGTH.size
        if start > len(self._frame):
            raise BadMessageError(f"{len(self._frame)} bytes, which end before a text's length")
        end = start + LENGTH.unpack_from(self._frame, self._at)[0]
        if end > len(self._frame):
            raise BadMessageError(f"a text of {end - start} bytes, which exceeds the message")
        self._at = (end + 3) & ~3
        return bytes(memoryview(self._frame)[start:end])

    def finish(self) -> None:
        """Raise BadMessageError if anything but padding follows."""
        if len(self._frame) > self._at:
            raise BadMessageError(f"{len(self._frame) - self._at} bytes too many")
