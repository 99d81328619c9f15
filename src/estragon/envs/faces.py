"""What an agent sees and does in Gymnasium's words, and actions turned into what games are told."""

import math
from collections import OrderedDict
from typing import Any

import numpy as np
from gymnasium import spaces as gym

from estragon.envs.outcome import observations
from estragon.envs.spaces import Action, Observation, Spaces
from estragon.support.errors import UserError


class Eyes:
    """What an agent sees: a Dict space, or one key of it alone."""

    def __init__(self, spaces: Spaces, key: str | None = None) -> None:
        self._spaces, self._key = spaces, key
        found = OrderedDict((seen.key, _seen_space(seen)) for seen in spaces.observations)
        if key is not None and key not in found:
            raise UserError(f"key: no observation '{key}'; there is {', '.join(found) or 'none'}")
        self.space: gym.Space[Any] = gym.Dict(found) if key is None else found[key]

    def see(self, numbers: np.ndarray, images: np.ndarray) -> Any:
        """Observations of one agent, or of a batch of agents."""
        seen = observations(self._spaces, numbers, images)
        return seen if self._key is None else seen[self._key]


class Hands:
    """What an agent does: a Box, Discrete, MultiDiscrete, or a Dict where actions are mixed."""

    def __init__(self, spaces: Spaces) -> None:
        self.actions = spaces.actions
        self._width, self._places = spaces.action_width, spaces.action_places
        self.space = _action_space(spaces.actions)
        choices = [action.size for action in spaces.actions if action.kind == "discrete"]
        columns = [place for action, place in spaces.action_places if action.kind == "discrete"]
        self._columns, self._choices = np.array(columns, np.int64), np.array(choices)

    def rows(self, actions: Any, count: int) -> np.ndarray:
        """(count, action_width) float32 of `count` agents' actions."""
        if isinstance(self.space, gym.Dict):
            parts = [_column(actions, action, count) for action in self.actions]
            rows = np.concatenate(parts, axis=1)
        else:
            rows = _shaped(actions, count, self._width)
        return self.checked(rows)

    def fill(self, row: np.ndarray, action: Any) -> None:
        """Write one agent's action into `row`: (action_width,) float32, to be checked later."""
        if isinstance(self.space, gym.Dict):
            for each, place in self._places:
                row[place : place + each.width] = _column(action, each, 1)[0]
        else:
            given = np.asarray(action, dtype=np.float32)
            row[:] = given if given.shape == row.shape else _shaped(given, 1, self._width)[0]

    def checked(self, rows: np.ndarray) -> np.ndarray:
        """The rows; an error where they are no numbers, or no choices."""
        if not math.isfinite(np.vdot(rows, rows)) and not np.isfinite(rows).all():
            agent, column = np.argwhere(~np.isfinite(rows))[0]
            raise UserError(
                f"action {column} of agent {agent} is {rows[agent, column]}: the policy diverged"
            )
        if len(self._choices) == 1 == self._width and _are_choices(rows, self._choices[0]):
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


class Masks:
    """Which choices are allowed, for all discrete actions: those without a mask allow all."""

    def __init__(self, spaces: Spaces) -> None:
        self.are_told = spaces.mask_bytes > 0
        self._choices = spaces.choices
        discrete = [action for action in spaces.actions if action.kind == "discrete"]
        masked = [np.full(action.size, action.masked) for action in discrete]
        self._masked = np.concatenate(masked) if masked else np.zeros(0, bool)

    def all_choices(self, told: np.ndarray) -> np.ndarray:
        """(agents, choices) bool, of what the game tells: (agents, mask_bytes)."""
        found = np.ones((len(told), self._choices), bool)
        found[:, self._masked] = told != 0
        return found


class Segments:
    """Mixed actions as one Box for SB3: a discrete action is as many numbers, the largest wins."""

    def __init__(self, spaces: Spaces) -> None:
        self._actions = spaces.actions
        self._width = sum(action.size for action in spaces.actions)
        self.space = gym.Box(-1.0, 1.0, (self._width,), np.float32)

    def rows(self, actions: Any, count: int, allowed: np.ndarray) -> np.ndarray:
        """(count, action_width) of (count, width); choices that are not allowed never win."""
        given = _shaped(actions, count, self._width)
        parts: list[np.ndarray] = []
        place = choice = 0
        for action in self._actions:
            part = given[:, place : place + action.size]
            place += action.size
            if action.kind == "discrete":
                may = allowed[:, choice : choice + action.size]
                choice += action.size
                best = np.where(may, part, -np.inf).argmax(axis=1)
                part = best.astype(np.float32)[:, None]
            parts.append(part)
        return np.concatenate(parts, axis=1)


def is_mixed(spaces: Spaces) -> bool:
    """Whether some actions are continuous and some discrete."""
    return len({action.kind for action in spaces.actions}) > 1


def _seen_space(seen: Observation) -> gym.Space[Any]:
    if seen.kind == "discrete":
        return gym.Discrete(seen.choices)
    if seen.kind == "image":
        return gym.Box(0, 255, seen.shape, np.uint8)
    low, high = (
        np.broadcast_to(np.array(bound, np.float32), seen.size).reshape(seen.shape).copy()
        for bound in (seen.low, seen.high)
    )
    return gym.Box(low, high, dtype=np.float32)


def _action_space(actions: tuple[Action, ...]) -> gym.Space[Any]:
    kinds = {action.kind for action in actions}
    if kinds == {"discrete"}:
        sizes = [action.size for action in actions]
        return gym.Discrete(sizes[0]) if len(sizes) == 1 else gym.MultiDiscrete(sizes)
    if len(kinds) == 2:
        return gym.Dict(OrderedDict((action.key, _action_space((action,))) for action in actions))
    width = sum(action.size for action in actions)
    return gym.Box(-1.0, 1.0, (width,), np.float32)


def _are_choices(rows: np.ndarray, count: int) -> bool:
    """The same without an array for every question, where all that is done is one choice."""
    chosen = rows.reshape(-1).tolist()
    return min(chosen) >= 0 and max(chosen) < count and all(map(float.is_integer, chosen))


def _column(actions: Any, action: Action, count: int) -> np.ndarray:
    try:
        given = actions[action.key]
    except (KeyError, TypeError, IndexError):
        raise UserError(f"actions: expected a value for '{action.key}', got none") from None
    return _shaped(given, count, action.width)


def _shaped(actions: Any, count: int, width: int) -> np.ndarray:
    rows = np.asarray(actions, dtype=np.float32)
    if rows.size != count * width:
        raise UserError(
            f"actions: expected {count} × {width} numbers, got an array of shape {rows.shape}"
        )
    return rows.reshape(count, width)
