"""Protocol version 0.7: all messages are JSON; no seeds, time limits or terminal observations."""

import array
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from estragon.envs.spaces import ObservationSpec
from estragon.envs.wire import (
    JSON,
    PARAMETERS,
    TERMINATED,
    AgentTable,
    BadMessageError,
    InfoDecoder,
    Observations,
    StepResult,
    Wire,
    decode_json,
    framed,
)
from estragon.support.parameters import Values

Obs = list[dict[str, Any]]
NOT_FINITE = re.compile(rb"[-+]?(?:nan|inf|1e99999)", re.IGNORECASE)
"""How versions of Godot write NaN and infinity; the newest writes null for NaN."""
BARE = re.compile(rb"(?<=[\[,:\s])(" + NOT_FINITE.pattern + rb")(?=[\],}\s])", re.IGNORECASE)
NO_IMAGES = np.zeros(0, np.uint8)


class ResetReply(msgspec.Struct, tag_field="type", tag="reset"):
    """The answer to a reset."""

    obs: Obs
    info: msgspec.Raw = msgspec.Raw(b"null")


class StepReply(msgspec.Struct, tag_field="type", tag="step"):
    """The answer to actions."""

    obs: Obs
    reward: list[float | None]
    done: list[bool | int | float]
    info: msgspec.Raw = msgspec.Raw(b"null")


RESET_REPLY, STEP_REPLY = msgspec.json.Decoder(ResetReply), msgspec.json.Decoder(StepReply)


class JsonWire(Wire):
    """The wire of every game since version 0.7 of the protocol."""

    encoding = JSON

    def __init__(self, table: AgentTable) -> None:
        super().__init__(table)
        self._vector_key = table.spaces.vector_key if table.spaces is not None else None
        self._infos = InfoDecoder()
        self._actions = [
            [(action, int(start) + offset) for action, offset in agent.spaces.action_offsets]
            for agent, start in zip(table.agents, table.action_offsets, strict=False)
        ]

    def encode_reset(self, seed: int | None, parameters: Sequence[Values] | None = None) -> bytes:
        """A request for new episodes; the seed cannot be sent."""
        return framed({"type": "reset"} | ({} if parameters is None else {PARAMETERS: parameters}))

    def encode_actions(self, actions: np.ndarray) -> bytes:
        """The actions of all agents."""
        flat = actions.reshape(-1).tolist()
        wanted = [
            {
                action.key: flat[start : start + action.size]
                if action.kind == "continuous"
                else int(flat[start])
                for action, start in specs
            }
            for specs in self._actions
        ]
        return framed({"type": "action", "action": wanted})

    def decode(self, frame: bytearray, *, reset: bool) -> StepResult:
        """The answer to a reset, or to actions."""
        try:
            message = decode_json(RESET_REPLY if reset else STEP_REPLY, frame)
        except BadMessageError as error:
            raise _explain(frame) or error from error
        count = len(self.table)
        any_done = not reset and any(message.done)
        infos = self._infos.decode(bytes(message.info), count, reuse=not any_done)
        rewards = np.zeros(count, np.float32)
        flags = np.zeros(count, np.uint8)
        for what in ("obs",) if reset else ("obs", "reward", "done"):
            if len(part := getattr(message, what)) != count:
                raise BadMessageError(f"{len(part)} {what} for {count} agents")
        if not reset:
            rewards = np.array(message.reward, np.float32)
        if any_done:
            flags[np.array(message.done, dtype=bool)] = TERMINATED
        result = StepResult(
            table=self.table,
            num_joined=0,
            rewards=rewards,
            flags=flags,
            obs=self._decode_obs(message.obs),
            infos=infos,
            uneventful=not any_done,
        )
        result.check()
        return result

    def _decode_obs(self, obs: Obs) -> Observations:
        key, spaces = self._vector_key, self.table.spaces
        if key is not None and spaces is not None:
            try:
                vectors = [seen[key] for seen in obs]
                if set(map(len, vectors)) == {spaces.obs_size}:
                    flat = array.array("f", [value for vector in vectors for value in vector])
                    return Observations(self.table, np.frombuffer(flat, np.float32), NO_IMAGES)
            except (KeyError, TypeError, OverflowError):
                pass  # the slow path finds out what is wrong
        return self._decode_any_obs(obs)

    def _decode_any_obs(self, obs: Obs) -> Observations:
        values: list[float] = []
        images = bytearray()
        for row, (agent, seen) in enumerate(zip(self.table.agents, obs, strict=True)):
            for spec in agent.spaces.observations:
                try:
                    value = seen[spec.key]
                except KeyError:
                    raise self._error(row, spec, "is missing") from None
                if spec.kind == "image":
                    images += self._decode_image(row, spec, value)
                elif isinstance(value, list):
                    flat = _flatten(value)
                    if len(flat) != spec.size:
                        text = f"has {len(flat)} numbers, but {spec.size} in env_info"
                        raise self._error(row, spec, text)
                    values += flat
                elif spec.size == 1 and isinstance(value, int | float):
                    values.append(value)
                else:
                    raise self._error(row, spec, f"is {value!r:.60}")
        try:
            found = np.array(values, dtype=np.float32)
        except (TypeError, ValueError, OverflowError):
            raise self._find_invalid(obs) from None
        return Observations(self.table, found, np.frombuffer(images, np.uint8))

    def _decode_image(self, row: int, spec: ObservationSpec, value: Any) -> bytes:
        try:
            data = bytes.fromhex(value)
        except (TypeError, ValueError):
            raise self._error(row, spec, f"is not hexadecimal: {value!r:.40}") from None
        if len(data) != spec.size:
            text = f"has {len(data)} bytes, but {spec.size} in env_info"
            raise self._error(row, spec, text)
        return data

    def _find_invalid(self, obs: Obs) -> BadMessageError:
        for row, seen in enumerate(obs):
            for spec in self.table.agents[row].spaces.observations:
                for index, value in enumerate(_flatten(seen[spec.key])):
                    if spec.kind != "image" and not _is_number(value):
                        return self._error(row, spec, f"[{index}] is {value!s:.40}")
        return BadMessageError("observations that are not numbers")

    def _error(self, row: int, spec: ObservationSpec, text: str) -> BadMessageError:
        return BadMessageError(f"observation '{spec.key}' of {self.table.describe(row)} {text}")


def _is_number(value: Any) -> bool:
    """Whether it fits into a float; integers in JSON may have any length."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**1000)


def _flatten(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    if not value or not isinstance(value[0], list):
        return value
    return [number for inner in value for number in _flatten(inner)]


def _explain(frame: bytearray) -> BadMessageError | None:
    """Which number is NaN or infinite, if that is why a message is not valid JSON."""
    quoted = BARE.sub(rb'"\1"', frame)
    if len(quoted) == len(frame):
        return None
    try:
        found = msgspec.json.decode(quoted, type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    for what, name in (("obs", "observation"), ("reward", "reward")):
        given = found.get(what)
        for agent, seen in enumerate(given if isinstance(given, list) else []):
            for key, value in seen.items() if isinstance(seen, dict) else [(what, seen)]:
                for index, number in enumerate(_flatten(value)):
                    if isinstance(number, str) and NOT_FINITE.fullmatch(number.encode()):
                        where = f"'{key}'[{index}] of agent {agent}"
                        return BadMessageError(f"{name} {where} is {number}")
    return BadMessageError("nan or inf, which are not valid JSON")
