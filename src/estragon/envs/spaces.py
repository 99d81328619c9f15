"""What an agent sees and does, as the game says it: kinds, sizes, and the order of the keys."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any, Literal

from estragon.godot.process import GodotError

MOST_NUMBERS = 2**26
Bound = float | tuple[float, ...]


class SpaceError(GodotError):
    """The game describes something that is no space; the message says where and what."""


@dataclasses.dataclass(frozen=True)
class Observation:
    """One key of what an agent sees."""

    key: str
    kind: Literal["box", "discrete", "image"]
    shape: tuple[int, ...]
    """Of a box; height, width, channels of an image; empty for a discrete one."""
    choices: int = 0
    """Of a discrete one."""
    low: Bound = -math.inf
    high: Bound = math.inf

    @functools.cached_property
    def size(self) -> int:
        """How many numbers, or bytes of an image."""
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Action:
    """One key of what an agent does."""

    key: str
    kind: Literal["continuous", "discrete"]
    size: int
    """Numbers of a continuous one, choices of a discrete one."""
    masked: bool = False
    """Whether the game says which choices are allowed."""

    @property
    def width(self) -> int:
        """How many numbers it takes to say what is done."""
        return self.size if self.kind == "continuous" else 1


@dataclasses.dataclass(frozen=True)
class Spaces:
    """All that one agent sees and does."""

    observations: tuple[Observation, ...]
    actions: tuple[Action, ...]

    @functools.cached_property
    def numbers(self) -> int:
        """Numbers in one observation, images apart."""
        return sum(seen.size for seen in self.observations if seen.kind != "image")

    @functools.cached_property
    def image_bytes(self) -> int:
        """Bytes in the images of one observation."""
        return sum(seen.size for seen in self.observations if seen.kind == "image")

    @functools.cached_property
    def action_width(self) -> int:
        """Numbers in one action."""
        return sum(action.width for action in self.actions)

    @functools.cached_property
    def mask_bytes(self) -> int:
        """Bytes in the masks of one agent."""
        return sum(action.size for action in self.actions if action.masked)

    @functools.cached_property
    def choices(self) -> int:
        """All choices of all discrete actions."""
        return sum(action.size for action in self.actions if action.kind == "discrete")

    @functools.cached_property
    def places(self) -> tuple[tuple[Observation, int], ...]:
        """Every observation and where it begins among the numbers, or among the images."""
        found: list[tuple[Observation, int]] = []
        number = byte = 0
        for seen in self.observations:
            if seen.kind == "image":
                found.append((seen, byte))
                byte += seen.size
            else:
                found.append((seen, number))
                number += seen.size
        return tuple(found)

    @functools.cached_property
    def only_list(self) -> str | None:
        """The key of the one list of numbers that is seen, if that is all there is to see."""
        if len(self.observations) != 1:
            return None
        (seen,) = self.observations
        return seen.key if seen.kind == "box" and len(seen.shape) == 1 else None

    @functools.cached_property
    def action_places(self) -> tuple[tuple[Action, int], ...]:
        """Every action and where it begins among the numbers of one agent's actions."""
        places = itertools.accumulate((action.width for action in self.actions), initial=0)
        return tuple(zip(self.actions, places, strict=False))

    def describe(self) -> str:
        """In one line, for people."""
        sees = ", ".join(f"{seen.key} {_describe_seen(seen)}" for seen in self.observations)
        does = ", ".join(f"{action.key} {action.kind} {action.size}" for action in self.actions)
        return f"sees {sees or 'nothing'}; does {does or 'nothing'}"


def read_spaces(
    observation_space: Any, action_space: Any, mask: Mapping[str, int], *, trusted_images: bool
) -> Spaces:
    """The spaces of one agent, from the objects in `env_info`.

    Args:
        observation_space: key → its description.
        action_space: key → its description.
        mask: the masked actions and how many choices each has.
        trusted_images: whether a size is height, width, channels as it should be; older games say
            channels, height, width, and send the bytes in the right order all the same.
    """
    if not isinstance(observation_space, dict) or not isinstance(action_space, dict):
        raise SpaceError("a space is not an object of key → description")
    seen = tuple(_read_seen(key, text, trusted_images) for key, text in observation_space.items())
    actions = tuple(_read_action(key, text, mask) for key, text in action_space.items())
    if unknown := set(mask) - {action.key for action in actions if action.masked}:
        raise SpaceError(f"a mask for '{min(unknown)}', which is no discrete action")
    spaces = Spaces(seen, actions)
    if max(spaces.numbers, spaces.image_bytes, spaces.action_width, spaces.choices) > MOST_NUMBERS:
        raise SpaceError("larger than any frame could be")
    return spaces


def is_image(key: str, text: Any) -> bool:
    """Whether a description of an observation is that of an image."""
    return "2d" in key and isinstance(text, dict) and text.get("space") == "box"


def _read_seen(key: str, text: Any, trusted_images: bool) -> Observation:
    where = f"observation '{key}'"
    if not isinstance(text, dict):
        raise SpaceError(f"{where}: expected an object, got {text!r}")
    space = text.get("space")
    size = text.get("size")
    if space == "discrete":
        choices = size[0] if isinstance(size, list) and len(size) == 1 else size
        return Observation(key, "discrete", (), _whole(where, choices))
    if space != "box":
        raise SpaceError(f"{where}: expected space 'box' or 'discrete', got {space!r}")
    sizes = size if isinstance(size, list) else [size]
    shape = tuple(_whole(where, length, at_least=0) for length in sizes)
    if is_image(key, text):
        if len(shape) != 3 or 0 in shape:
            raise SpaceError(f"{where}: an image is height, width, channels, got {size!r}")
        if not trusted_images and shape[0] <= 4 < shape[2]:
            shape = (shape[1], shape[2], shape[0])
        return Observation(key, "image", shape, low=0.0, high=255.0)
    low = _read_bound(where, text.get("low", -math.inf), math.prod(shape))
    high = _read_bound(where, text.get("high", math.inf), math.prod(shape))
    return Observation(key, "box", shape, low=low, high=high)


def _read_action(key: str, text: Any, mask: Mapping[str, int]) -> Action:
    where = f"action '{key}'"
    if not isinstance(text, dict):
        raise SpaceError(f"{where}: expected an object, got {text!r}")
    size = text.get("size")
    size = _whole(where, size[0] if isinstance(size, list) and len(size) == 1 else size)
    kind = text.get("action_type")
    if kind == "continuous":
        return Action(key, "continuous", size)
    if kind != "discrete":
        raise SpaceError(f"{where}: expected 'discrete' or 'continuous', got {kind!r}")
    if mask.get(key, size) != size:
        raise SpaceError(f"{where}: {size} choices, but {mask[key]} in its mask")
    return Action(key, "discrete", size, masked=key in mask)


def _whole(where: str, value: Any, at_least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
        raise SpaceError(f"{where}: expected a whole number as size, got {value!r}")
    if not at_least <= value <= MOST_NUMBERS:
        raise SpaceError(f"{where}: a size of {value} makes no sense")
    return int(value)


def _read_bound(where: str, value: Any, size: int) -> Bound:
    if isinstance(value, int | float):
        return float(value)
    numbers = value if isinstance(value, list) else []
    if len(numbers) == size and all(isinstance(number, int | float) for number in numbers):
        return tuple(float(number) for number in numbers)
    raise SpaceError(f"{where}: low and high are one number, or {size}, got {value!r}")


def _describe_seen(seen: Observation) -> str:
    if seen.kind == "discrete":
        return f"discrete {seen.choices}"
    return f"{seen.kind} {'×'.join(map(str, seen.shape)) or '1'}"
