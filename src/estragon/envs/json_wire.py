"""Version 0.7: every message JSON, no time limits, no terminal observations, agents that stay."""

import array
import re
from typing import Any

import msgspec
import numpy as np

from estragon.envs.messages import check_infos, decode, encode
from estragon.envs.outcome import TERMINATED, BadMessageError, Outcome, Sight, name_of
from estragon.envs.roster import Roster
from estragon.envs.spaces import Observation
from estragon.godot.channel import LENGTH

Seen = list[dict[str, Any]]
NOT_A_NUMBER = re.compile(rb"[-+]?(?:nan|inf|1e99999)", re.IGNORECASE)
"""How versions of Godot write NaN and infinity; the newest writes null for NaN."""
BARE = re.compile(rb"(?<=[\[,:\s])(" + NOT_A_NUMBER.pattern + rb")(?=[\],}\s])", re.IGNORECASE)


class WasReset(msgspec.Struct, tag_field="type", tag="reset"):
    """The answer to a reset."""

    obs: Seen
    info: msgspec.Raw = msgspec.Raw(b"null")


class Stepped(msgspec.Struct, tag_field="type", tag="step"):
    """The answer to actions."""

    obs: Seen
    reward: list[float | None]
    done: list[bool | int | float]
    info: msgspec.Raw = msgspec.Raw(b"null")


RESETS, STEPS = msgspec.json.Decoder(WasReset), msgspec.json.Decoder(Stepped)
NO_IMAGES = np.zeros(0, np.uint8)
TOLD = msgspec.json.Decoder(list[dict[str, Any]] | None)


class JsonWire:
    """Writes what one game is told, and reads what it answers."""

    encoding = "json"

    def __init__(self, roster: Roster) -> None:
        self.roster = roster
        self._only = _only_box(roster)
        self._told: bytes | None = None
        self._infos: list[dict[str, Any]] | None = None
        self._does = [
            [(action, int(start) + place) for action, place in agent.spaces.action_places]
            for agent, start in zip(roster.agents, roster.actions, strict=False)
        ]

    def reset(self, seed: int | None) -> bytes:
        """A frame that asks for new episodes, with its length; there is no way to say a seed."""
        return _framed({"type": "reset"})

    def actions(self, numbers: np.ndarray) -> bytes:
        """A frame with all agents' actions, with its length."""
        flat = numbers.reshape(-1).tolist()
        wanted = [
            {
                action.key: flat[place : place + action.size]
                if action.kind == "continuous"
                else int(flat[place])
                for action, place in does
            }
            for does in self._does
        ]
        return _framed({"type": "action", "action": wanted})

    def read(self, frame: bytearray, *, reset: bool) -> Outcome:
        """What came of it."""
        try:
            message = decode(RESETS if reset else STEPS, frame)
        except BadMessageError as error:
            raise _explained(frame) or error from error
        count = len(self.roster)
        somebody_ended = not reset and any(message.done)
        infos = self._read_told(bytes(message.info), anew=somebody_ended)
        rewards = np.zeros(count, np.float32)
        states = np.zeros(count, np.uint8)
        parts = [("obs", message.obs)] + ([("info", infos)] if infos else [])
        if not reset:
            parts += [("reward", message.reward), ("done", message.done)]
        for what, part in parts:
            if len(part) != count:
                raise BadMessageError(f"{len(part)} {what} for {count} agents")
        if not reset:
            rewards = np.array(message.reward, np.float32)
        if somebody_ended:
            states[np.array(message.done, dtype=bool)] = TERMINATED
        outcome = Outcome(
            roster=self.roster,
            joined=0,
            rewards=rewards,
            states=states,
            seen=self._read_seen(message.obs),
            infos=infos,
            calm=not somebody_ended,
        )
        outcome.check()
        return outcome

    def _read_told(self, text: bytes, *, anew: bool) -> list[dict[str, Any]] | None:
        """What agents tell, if they do; the very same list if it is the same again."""
        if not anew and text == self._told:
            return self._infos
        infos: list[dict[str, Any]] | None = decode(TOLD, text)
        infos = infos if infos and any(infos) else None
        check_infos(infos or [])
        self._told, self._infos = (None, None) if anew else (text, infos)
        return infos

    def _read_seen(self, obs: Seen) -> Sight:
        if self._only is not None:
            key, size = self._only.key, self._only.size
            try:
                values = [seen[key] for seen in obs]
                if set(map(len, values)) == {size}:
                    flat = array.array("f", [number for value in values for number in value])
                    return Sight(self.roster, np.frombuffer(flat, np.float32), NO_IMAGES)
            except (KeyError, TypeError, OverflowError):
                pass  # the long way finds out what is wrong
        return self._read_any(obs)

    def _read_any(self, obs: Seen) -> Sight:
        numbers: list[float] = []
        images = bytearray()
        for row, (agent, seen) in enumerate(zip(self.roster.agents, obs, strict=True)):
            for each in agent.spaces.observations:
                try:
                    value = seen[each.key]
                except KeyError:
                    raise self._wrong(row, each, "is missing") from None
                if each.kind == "image":
                    images += self._read_image(row, each, value)
                elif isinstance(value, list):
                    flat = value if not value or not isinstance(value[0], list) else _flat(value)
                    if len(flat) != each.size:
                        text = f"has {len(flat)} numbers, but {each.size} in env_info"
                        raise self._wrong(row, each, text)
                    numbers += flat
                elif each.size == 1 and isinstance(value, int | float):
                    numbers.append(value)
                else:
                    raise self._wrong(row, each, f"is {value!r:.60}")
        try:
            found = np.array(numbers, dtype=np.float32)
        except (TypeError, ValueError, OverflowError):
            raise self._not_numbers(obs) from None
        return Sight(self.roster, found, np.frombuffer(images, np.uint8))

    def _read_image(self, row: int, each: Observation, value: Any) -> bytes:
        try:
            data = bytes.fromhex(value)
        except (TypeError, ValueError):
            raise self._wrong(row, each, f"is no hexadecimal text: {value!r:.40}") from None
        if len(data) != each.size:
            text = f"has {len(data)} bytes, but {each.size} in env_info"
            raise self._wrong(row, each, text)
        return data

    def _not_numbers(self, obs: Seen) -> BadMessageError:
        for row, seen in enumerate(obs):
            for each in self.roster.agents[row].spaces.observations:
                for index, value in enumerate(_flat(seen[each.key])):
                    if each.kind != "image" and not _is_number(value):
                        return self._wrong(row, each, f"[{index}] is {value!s:.40}")
        return BadMessageError("observations that are not numbers")

    def _wrong(self, row: int, each: Observation, text: str) -> BadMessageError:
        return BadMessageError(f"observation '{each.key}' of {name_of(self.roster, row)} {text}")


def _is_number(value: Any) -> bool:
    """Whether it can be computed with; JSON may have whole numbers of any length."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**1000)


def _only_box(roster: Roster) -> Observation | None:
    """The one list of numbers that all agents see, where there is nothing else to see."""
    spaces = roster.spaces
    if spaces is None or len(spaces.observations) != 1:
        return None
    (seen,) = spaces.observations
    return seen if seen.kind == "box" and len(seen.shape) == 1 else None


def _framed(message: dict[str, Any]) -> bytes:
    text = encode(message)
    return LENGTH.pack(len(text)) + text


def _flat(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    return [number for inner in value for number in _flat(inner)]


def _explained(frame: bytearray) -> BadMessageError | None:
    """Which number is none, where that is what makes a message unreadable."""
    quoted = BARE.sub(rb'"\1"', frame)
    if len(quoted) == len(frame):
        return None
    try:
        found = msgspec.json.decode(quoted, type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    for what in ("obs", "reward"):
        given = found.get(what)
        for agent, seen in enumerate(given if isinstance(given, list) else []):
            for key, value in seen.items() if isinstance(seen, dict) else [(what, seen)]:
                for index, number in enumerate(_flat(value)):
                    if isinstance(number, str) and NOT_A_NUMBER.fullmatch(number.encode()):
                        where = f"'{key}'[{index}] of agent {agent}"
                        name = "observation" if what == "obs" else "reward"
                        return BadMessageError(f"{name} {where} is {number}")
    return BadMessageError("numbers that are none (nan or inf)")
