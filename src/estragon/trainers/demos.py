"""Demonstrations: what an expert saw and did, from a file that a game recorded."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from estragon.support.errors import UserError


@dataclasses.dataclass(frozen=True)
class Demos:
    """Steps of all episodes, one after the other."""

    seen: dict[str, np.ndarray]
    """By key, (steps, …)."""
    done: np.ndarray
    """(steps, numbers) as the game is told."""
    ends: np.ndarray
    """(episodes,) how many steps there are up to the end of each."""

    def __len__(self) -> int:
        """How many steps."""
        return len(self.done)


def read_demos(path: Path, sees: spaces.Dict, does: spaces.Space[Any]) -> Demos:
    """Read a file `[[observations, actions], …]`, with one observation more than actions.

    An observation is an object by key, or where there is one key alone, its numbers.
    """
    try:
        episodes = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    if not isinstance(episodes, list) or not episodes:
        raise UserError(f"{path}: expected a list of episodes")
    seen: dict[str, list[Any]] = {key: [] for key in sees.spaces}
    done: list[Any] = []
    ends: list[int] = []
    for number, episode in enumerate(episodes):
        where = f"{path}, episode {number}"
        if not (isinstance(episode, list) and len(episode) == 2):
            raise UserError(f"{where}: expected observations and actions")
        observations, actions = episode
        if len(observations) != len(actions) + 1:
            raise UserError(
                f"{where}: {len(actions)} actions need {len(actions) + 1} observations, there are "
                f"{len(observations)}"
            )
        for observation in observations[:-1]:
            _add(seen, observation, where)
        done += actions
        ends.append(len(done))
    if not done:
        raise UserError(f"{path}: nobody did anything in it")
    return Demos(
        {key: _shaped(seen[key], space, f"{path}: {key}") for key, space in sees.spaces.items()},
        _actions(done, does, path),
        np.array(ends),
    )


def _add(seen: dict[str, list[Any]], observation: Any, where: str) -> None:
    if not isinstance(observation, dict):
        observation = {next(iter(seen)): observation} if len(seen) == 1 else {}
    for key, values in seen.items():
        if key not in observation:
            raise UserError(f"{where}: an observation lacks '{key}'")
        values.append(observation[key])


def _shaped(values: list[Any], space: spaces.Space[Any], where: str) -> np.ndarray:
    shape = space.shape or ()
    if values and isinstance(values[0], str):  # an image in hexadecimal
        values = [list(bytes.fromhex(value)) for value in values]
    found = _numbers(values, where)
    if found.size != len(values) * math.prod(shape):
        raise UserError(f"{where} has not the {math.prod(shape)} numbers that the game has")
    shaped: np.ndarray = found.reshape(len(values), *shape).astype(space.dtype)
    return shaped


def _actions(done: list[Any], does: spaces.Space[Any], path: Path) -> np.ndarray:
    width = 1 if isinstance(does, spaces.Discrete) else math.prod(does.shape or ())
    found = _numbers(done, f"{path}: an action").reshape(len(done), -1)
    if found.shape[1] != width:
        raise UserError(
            f"{path}: an action is {found.shape[1]} numbers, this game takes {width}; mixed "
            "actions cannot be learned from demonstrations"
        )
    if isinstance(does, spaces.Box):
        clipped: np.ndarray = np.clip(found, does.low, does.high).astype(np.float32)
        return clipped
    choices = np.array([does.n]) if isinstance(does, spaces.Discrete) else does.nvec  # type: ignore[attr-defined]
    if ((found < 0) | (found >= choices) | (found % 1 != 0)).any():
        raise UserError(f"{path}: an action is none of the game's choices")
    return found.astype(np.int64)


def _numbers(values: list[Any], where: str) -> np.ndarray:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{where} is not made of numbers, or not always of as many") from None
    if not np.isfinite(found).all():
        raise UserError(f"{where} has something that is no number")
    return found
