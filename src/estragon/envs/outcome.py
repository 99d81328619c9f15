"""What came of a reset or of actions in one game, in flat arrays whose layout the roster knows."""

import dataclasses
import math
from typing import Any

import numpy as np

from estragon.envs.roster import Roster
from estragon.envs.spaces import Spaces

TERMINATED, TRUNCATED, LAST, LEFT = 1, 2, 4, 8
ENDED = TERMINATED | TRUNCATED


class BadMessageError(Exception):
    """A message that breaks the protocol; says how."""


@dataclasses.dataclass(slots=True)
class Sight:
    """Observations of the agents of a roster."""

    roster: Roster
    numbers: np.ndarray
    """float32, agent by agent, key by key."""
    images: np.ndarray
    """uint8, agent by agent, key by key."""

    def row(self, index: int | np.integer[Any]) -> dict[str, np.ndarray]:
        """What one agent sees."""
        spaces = self.roster.agents[index].spaces
        first, byte = self.roster.numbers[index], self.roster.image_bytes[index]
        return observations(
            spaces,
            self.numbers[first : first + spaces.numbers],
            self.images[byte : byte + spaces.image_bytes],
        )


def observations(spaces: Spaces, numbers: np.ndarray, images: np.ndarray) -> dict[str, np.ndarray]:
    """By key: `numbers` (…, spaces.numbers) and `images` (…, spaces.image_bytes), cut up."""
    only = spaces.only_list
    if only is not None:
        return {only: numbers}
    found: dict[str, np.ndarray] = {}
    batch = numbers.shape[:-1]
    for seen, place in spaces.places:
        if seen.kind == "discrete":
            found[seen.key] = numbers[..., place].astype(np.int64)[()]  # a number if it is one
            continue
        part = (images if seen.kind == "image" else numbers)[..., place : place + seen.size]
        found[seen.key] = part if len(seen.shape) == 1 else part.reshape(*batch, *seen.shape)
    return found


@dataclasses.dataclass(slots=True)
class Outcome:
    """One message of a game; its rows are the roster before, then those who joined."""

    roster: Roster
    joined: int
    """How many of the rows, the last ones, are new."""
    rewards: np.ndarray
    """(rows,) float32."""
    states: np.ndarray
    """(rows,) uint8: TERMINATED, TRUNCATED, LAST, LEFT."""
    seen: Sight
    last: Sight | None = None
    """Terminal observations, of the rows with LAST."""
    masks: np.ndarray | None = None
    """uint8, agent by agent, choice by choice of the masked actions."""
    infos: list[dict[str, Any]] | None = None
    """One for each row, if any is there; not to be changed, for it may be given again."""
    calm: bool = False
    """Whether it is known that nobody's episode ended, nobody left, nobody joined."""
    lost: str = ""
    """Why the game was started again, if it was: its agents left, and came anew."""

    def has_changes(self) -> bool:
        """Whether somebody left or joined."""
        return not self.calm and (self.joined > 0 or bool((self.states & LEFT).any()))

    def next_roster(self) -> Roster:
        """Who plays on."""
        if not (self.states & LEFT).any():
            return self.roster
        return self.roster.only(np.flatnonzero(self.states & LEFT == 0))

    def check(self) -> None:
        """Raise BadMessageError where a number is no number, or no choice."""
        _check_rewards(self.rewards, self.roster)
        _check_sight("observation", self.seen)
        if self.last is not None:
            _check_sight("terminal observation", self.last)


# A sum of squares that is finite has finite terms, and costs half as much to look at.


def _check_rewards(rewards: np.ndarray, roster: Roster) -> None:
    if not math.isfinite(np.vdot(rewards, rewards)):
        for row in np.flatnonzero(~np.isfinite(rewards)):
            raise BadMessageError(f"the reward of {name_of(roster, row)} is {rewards[row]}")


def _check_sight(what: str, sight: Sight) -> None:
    numbers, roster = sight.numbers, sight.roster
    if not math.isfinite(np.vdot(numbers, numbers)):
        for place in np.flatnonzero(~np.isfinite(numbers)):
            row = int(np.searchsorted(roster.numbers, place, side="right")) - 1
            within = place - roster.numbers[row]
            for seen, start in roster.agents[row].spaces.places:
                if seen.kind != "image" and start <= within < start + seen.size:
                    raise BadMessageError(
                        f"{what} '{seen.key}'[{within - start}] of {name_of(roster, row)} "
                        f"is {numbers[place]}"
                    )


def name_of(roster: Roster, row: int | np.integer[Any]) -> str:
    """An agent's name in messages."""
    agent = roster.agents[row]
    return f"agent {agent.id} ({agent.policy})"
