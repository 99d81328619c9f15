"""What an agent observes and does: as the game describes it, and as Gymnasium spaces and codecs.

Gymnasium is imported only by the codecs: the wires and `estragon godot probe` do without it.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from estragon.godot.process import GodotError
from estragon.support.errors import UserError

if TYPE_CHECKING:
    from gymnasium import Space

MAX_SIZE = 2**26
Bound = float | tuple[float, ...]


class SpaceError(GodotError):
    """The game describes an invalid space; the message says where and what."""


@dataclasses.dataclass(frozen=True)
class ObservationSpec:
    """One key of an agent's observation."""

    key: str
    kind: Literal["box", "discrete", "image"]
    shape: tuple[int, ...]
    """Of a box; height, width, channels of an image; empty if discrete."""
    choices: int = 0
    """If discrete."""
    low: Bound = -math.inf
    high: Bound = math.inf

    @functools.cached_property
    def size(self) -> int:
        """Number of values, or bytes of an image."""
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class ActionSpec:
    """One key of an agent's action."""

    key: str
    kind: Literal["continuous", "discrete"]
    size: int
    """Values if continuous, choices if discrete."""
    masked: bool = False
    """Whether the game sends a mask of the allowed choices."""

    @property
    def width(self) -> int:
        """Number of values on the wire."""
        return self.size if self.kind == "continuous" else 1


@dataclasses.dataclass(frozen=True)
class AgentSpaces:
    """Observation and action space of one agent, keys in the game's order."""

    observations: tuple[ObservationSpec, ...]
    actions: tuple[ActionSpec, ...]

    @functools.cached_property
    def obs_size(self) -> int:
        """Values in one observation, without images."""
        return sum(spec.size for spec in self.observations if spec.kind != "image")

    @functools.cached_property
    def image_size(self) -> int:
        """Bytes of the images in one observation."""
        return sum(spec.size for spec in self.observations if spec.kind == "image")

    @functools.cached_property
    def action_size(self) -> int:
        """Values in one action."""
        return sum(action.width for action in self.actions)

    @functools.cached_property
    def mask_size(self) -> int:
        """Bytes of one agent's action masks."""
        return sum(action.size for action in self.actions if action.masked)

    @functools.cached_property
    def num_choices(self) -> int:
        """Choices of all discrete actions together."""
        return sum(action.size for action in self.actions if action.kind == "discrete")

    @functools.cached_property
    def obs_offsets(self) -> tuple[tuple[ObservationSpec, int], ...]:
        """Every observation and where it starts among the values, or among the image bytes."""
        ends = {"values": 0, "images": 0}
        found: list[tuple[ObservationSpec, int]] = []
        for spec in self.observations:
            part = "images" if spec.kind == "image" else "values"
            found.append((spec, ends[part]))
            ends[part] += spec.size
        return tuple(found)

    @functools.cached_property
    def action_offsets(self) -> tuple[tuple[ActionSpec, int], ...]:
        """Every action and where it starts among one agent's action values."""
        offsets = itertools.accumulate((action.width for action in self.actions), initial=0)
        return tuple(zip(self.actions, offsets, strict=False))

    @functools.cached_property
    def vector_key(self) -> str | None:
        """The key of the observation, if it is one vector and nothing else."""
        if len(self.observations) != 1:
            return None
        (spec,) = self.observations
        return spec.key if spec.kind == "box" and len(spec.shape) == 1 else None

    def split(self, values: np.ndarray, images: np.ndarray) -> dict[str, np.ndarray]:
        """Observations by key, of (…, obs_size) float32 and (…, image_size) uint8."""
        if self.vector_key is not None:
            return {self.vector_key: values}
        found: dict[str, np.ndarray] = {}
        batch = values.shape[:-1]
        for spec, start in self.obs_offsets:
            if spec.kind == "discrete":
                found[spec.key] = values[..., start].astype(np.int64)[()]  # a scalar without batch
                continue
            part = (images if spec.kind == "image" else values)[..., start : start + spec.size]
            found[spec.key] = part if len(spec.shape) == 1 else part.reshape(*batch, *spec.shape)
        return found

    def describe(self) -> str:
        """In one line."""
        sees = ", ".join(f"{spec.key} {_describe(spec)}" for spec in self.observations)
        does = ", ".join(f"{action.key} {action.kind} {action.size}" for action in self.actions)
        return f"observes {sees or 'nothing'}; acts with {does or 'nothing'}"


def read_spaces(
    observation_space: Any, action_space: Any, mask: Mapping[str, int], *, trusted_images: bool
) -> AgentSpaces:
    """The spaces of one agent, from the objects in `env_info`: key → description.

    Args:
        mask: key of every masked action → its number of choices.
        trusted_images: whether image sizes are height, width, channels. Older games declare
            channels, height, width, but send the bytes in the right order.
    """
    if not isinstance(observation_space, dict) or not isinstance(action_space, dict):
        raise SpaceError("a space must be an object of key → description")
    observations = tuple(
        _read_observation(key, text, trusted_images) for key, text in observation_space.items()
    )
    actions = tuple(_read_action(key, text, mask) for key, text in action_space.items())
    if unknown := set(mask) - {action.key for action in actions if action.masked}:
        raise SpaceError(f"action_mask for '{min(unknown)}', which is not a discrete action")
    spaces = _shared(AgentSpaces(observations, actions))
    if max(spaces.obs_size, spaces.image_size, spaces.action_size, spaces.num_choices) > MAX_SIZE:
        raise SpaceError(f"more than {MAX_SIZE} values do not fit into a frame")
    return spaces


@functools.lru_cache
def _shared(spaces: AgentSpaces) -> AgentSpaces:
    """The first of all equal spaces, to share what is cached in it."""
    return spaces


def is_image(key: str, text: Any) -> bool:
    """Whether the description of an observation is that of an image."""
    return "2d" in key and isinstance(text, dict) and text.get("space") == "box"


def _read_observation(key: str, text: Any, trusted_images: bool) -> ObservationSpec:
    where = f"observation '{key}'"
    if not isinstance(text, dict):
        raise SpaceError(f"{where}: expected an object, got {text!r}")
    space, size = text.get("space"), text.get("size")
    if space == "discrete":
        return ObservationSpec(key, "discrete", (), _read_size(where, _unwrap(size)))
    if space != "box":
        raise SpaceError(f"{where}: expected space 'box' or 'discrete', got {space!r}")
    sizes = size if isinstance(size, list) else [size]
    shape = tuple(_read_size(where, length, at_least=0) for length in sizes)
    if is_image(key, text):
        if len(shape) != 3 or 0 in shape:
            raise SpaceError(f"{where}: expected height, width, channels, got {size!r}")
        if not trusted_images and shape[0] <= 4 < shape[2]:
            shape = (shape[1], shape[2], shape[0])
        return ObservationSpec(key, "image", shape, low=0.0, high=255.0)
    low = _read_bound(where, text.get("low", -math.inf), math.prod(shape))
    high = _read_bound(where, text.get("high", math.inf), math.prod(shape))
    return ObservationSpec(key, "box", shape, low=low, high=high)


def _read_action(key: str, text: Any, mask: Mapping[str, int]) -> ActionSpec:
    where = f"action '{key}'"
    if not isinstance(text, dict):
        raise SpaceError(f"{where}: expected an object, got {text!r}")
    size = _read_size(where, _unwrap(text.get("size")))
    kind = text.get("action_type")
    if kind == "continuous":
        return ActionSpec(key, "continuous", size)
    if kind != "discrete":
        raise SpaceError(f"{where}: expected 'discrete' or 'continuous', got {kind!r}")
    if mask.get(key, size) != size:
        raise SpaceError(f"{where}: {size} choices, but {mask[key]} in its mask")
    return ActionSpec(key, "discrete", size, masked=key in mask)


def _unwrap(size: Any) -> Any:
    return size[0] if isinstance(size, list) and len(size) == 1 else size


def _read_size(where: str, value: Any, at_least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
        raise SpaceError(f"{where}: expected a whole number as size, got {value!r}")
    if not at_least <= value <= MAX_SIZE:
        raise SpaceError(f"{where}: expected a size from {at_least} to {MAX_SIZE}, got {value}")
    return int(value)


def _read_bound(where: str, value: Any, size: int) -> Bound:
    if isinstance(value, int | float):
        return float(value)
    numbers = value if isinstance(value, list) else []
    if len(numbers) == size and all(isinstance(number, int | float) for number in numbers):
        return tuple(float(number) for number in numbers)
    raise SpaceError(f"{where}: expected one number or {size} as low and high, got {value!r}")


def _describe(spec: ObservationSpec) -> str:
    if spec.kind == "discrete":
        return f"discrete {spec.choices}"
    return f"{spec.kind} {'×'.join(map(str, spec.shape)) or '1'}"


class ObservationCodec:
    """Flat values to observations of a Dict space, or of one of its keys alone."""

    def __init__(self, spaces: AgentSpaces, key: str | None = None) -> None:
        from gymnasium.spaces import Dict

        self._spaces, self._key = spaces, key
        found = {spec.key: _observation_space(spec) for spec in spaces.observations}
        if key is not None and key not in found:
            raise UserError(
                f"key: no observation '{key}'; the game has {', '.join(found) or 'none'}"
            )
        self.space: Space[Any] = Dict(list(found.items())) if key is None else found[key]

    def decode(self, values: np.ndarray, images: np.ndarray) -> Any:
        """Observations of one agent, or of a batch of agents."""
        return self.select(self._spaces.split(values, images))

    def select(self, observation: dict[str, Any]) -> Any:
        """An observation by key as the caller wants it: whole, or the one key."""
        return observation if self._key is None else observation[self._key]


class ActionCodec:
    """Actions of a Box, Discrete, MultiDiscrete, or (if mixed) Dict space to flat values."""

    def __init__(self, spaces: AgentSpaces) -> None:
        self.actions = spaces.actions
        self.mixed = len({action.kind for action in spaces.actions}) > 1
        self.space = _action_space(spaces.actions)
        self._width, self._offsets = spaces.action_size, spaces.action_offsets
        discrete = [each for each in spaces.action_offsets if each[0].kind == "discrete"]
        self._columns = np.array([start for _, start in discrete], np.int64)
        self._choices = np.array([action.size for action, _ in discrete])

    def encode(self, actions: Any, count: int) -> np.ndarray:
        """(count, action_size) float32 of the actions of `count` agents, checked."""
        if not self.mixed:
            return self.check(_reshape(actions, count, self._width))
        parts = [_column(actions, action, count) for action in self.actions]
        return self.check(np.concatenate(parts, axis=1))

    def encode_into(self, row: np.ndarray, action: Any) -> None:
        """Write one agent's action into `row`: (action_size,) float32, to be checked later."""
        if self.mixed:
            for spec, start in self._offsets:
                row[start : start + spec.width] = _column(action, spec, 1)[0]
        else:
            given = np.asarray(action, dtype=np.float32)
            row[:] = given if given.shape == row.shape else _reshape(given, 1, self._width)[0]

    def check(self, rows: np.ndarray) -> np.ndarray:
        """Return `rows`; raise UserError for NaN, infinity and choices out of range."""
        if not math.isfinite(np.vdot(rows, rows)) and not np.isfinite(rows).all():
            agent, column = np.argwhere(~np.isfinite(rows))[0]
            raise UserError(
                f"action {column} of agent {agent} is {rows[agent, column]}: the policy diverged"
            )
        if len(self._choices) == 1 == self._width and _all_choices(rows, self._choices[0]):
            return rows
        if len(self._columns):
            chosen = rows[:, self._columns]
            right = (chosen >= 0) & (chosen < self._choices) & (chosen == np.floor(chosen))
            if not right.all():
                agent, which = np.argwhere(~right)[0]
                raise UserError(
                    f"agent {agent} chose {chosen[agent, which]:g}, expected a whole number from 0 "
                    f"to {self._choices[which] - 1}"
                )
        return rows


class SegmentedActionCodec:
    """Mixed actions as one Box for SB3: a discrete action has a value per choice, argmax wins."""

    def __init__(self, spaces: AgentSpaces) -> None:
        from gymnasium.spaces import Box

        self._actions = spaces.actions
        self._width = sum(action.size for action in spaces.actions)
        self.space = Box(-1.0, 1.0, (self._width,), np.float32)

    def encode(self, actions: Any, count: int, allowed: np.ndarray) -> np.ndarray:
        """(count, action_size) of (count, width); choices that are masked out never win."""
        given = _reshape(actions, count, self._width)
        parts: list[np.ndarray] = []
        start = choice = 0
        for action in self._actions:
            part = given[:, start : start + action.size]
            start += action.size
            if action.kind == "discrete":
                mask = allowed[:, choice : choice + action.size]
                choice += action.size
                best = np.where(mask, part, -np.inf).argmax(axis=1)
                part = best.astype(np.float32)[:, None]
            parts.append(part)
        return np.concatenate(parts, axis=1)


class MaskCodec:
    """Masks over all discrete actions; unmasked ones allow every choice."""

    def __init__(self, spaces: AgentSpaces) -> None:
        self.available = spaces.mask_size > 0
        self._num_choices = spaces.num_choices
        discrete = [action for action in spaces.actions if action.kind == "discrete"]
        masked = [np.full(action.size, action.masked) for action in discrete]
        self._masked = np.concatenate(masked) if masked else np.zeros(0, bool)

    def decode(self, masks: np.ndarray) -> np.ndarray:
        """(agents, num_choices) bool from (agents, mask_size) uint8."""
        found = np.ones((len(masks), self._num_choices), bool)
        found[:, self._masked] = masks != 0
        return found


def _observation_space(spec: ObservationSpec) -> "Space[Any]":
    from gymnasium.spaces import Box, Discrete

    if spec.kind == "discrete":
        return Discrete(spec.choices)
    if spec.kind == "image":
        return Box(0, 255, spec.shape, np.uint8)
    low, high = (
        np.broadcast_to(np.array(bound, np.float32), spec.size).reshape(spec.shape).copy()
        for bound in (spec.low, spec.high)
    )
    return Box(low, high, dtype=np.float32)


def _action_space(actions: tuple[ActionSpec, ...]) -> "Space[Any]":
    from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

    kinds = {action.kind for action in actions}
    sizes = [action.size for action in actions]
    if kinds == {"discrete"}:
        return Discrete(sizes[0]) if len(sizes) == 1 else MultiDiscrete(sizes)
    if len(kinds) == 2:
        return Dict([(action.key, _action_space((action,))) for action in actions])
    return Box(-1.0, 1.0, (sum(sizes),), np.float32)


def _all_choices(rows: np.ndarray, count: int) -> bool:
    """Whether all are choices; faster than arrays for a single discrete action."""
    chosen = rows.reshape(-1).tolist()
    return min(chosen) >= 0 and max(chosen) < count and all(map(float.is_integer, chosen))


def _column(actions: Any, action: ActionSpec, count: int) -> np.ndarray:
    try:
        given = actions[action.key]
    except (KeyError, TypeError, IndexError):
        raise UserError(f"actions: expected a value for '{action.key}', got none") from None
    return _reshape(given, count, action.width)


def _reshape(actions: Any, count: int, width: int) -> np.ndarray:
    rows = np.asarray(actions, dtype=np.float32)
    if rows.size != count * width:
        raise UserError(
            f"actions: expected {count} × {width} numbers, got an array of shape {rows.shape}"
        )
    return rows.reshape(count, width)
