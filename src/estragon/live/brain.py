"""Whoever answers the clients: what it is asked, and what it is told.

A brain belongs to one observation size. All calls come from the server's own thread, one at a time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from estragon.tag.rules import Role


class Hello(Struct, frozen=True, tag="hello", tag_field="type"):
    """How a client introduces itself."""

    protocol: int
    observation_size: int
    observation_version: int = 0
    action_size: int = 3
    encoding: str = "json"
    arenas: int = 1
    tick_rate: int = 60
    step_tick_interval: int = 3
    seed: int = 0
    rules: str = "seek"
    rewards: str = "default"
    training: bool = True
    controlled: tuple[bool, bool] = (True, True)
    client: str = ""


class Outcome(NamedTuple):
    """What a decision brought, one row an arena."""

    rewards: np.ndarray
    """(arenas, 2) float32."""
    terms: np.ndarray
    """(arenas, 2, terms) float64: the same, term by term."""
    distances: np.ndarray
    """(arenas,) float64."""
    ticks: np.ndarray
    """(arenas,) int32."""
    ends: np.ndarray
    """(arenas,) int8: 0 going on, 1 tagged, 2 timed out."""
    winners: np.ndarray
    """(arenas,) int8."""
    last: np.ndarray
    """(episodes that ended, 2, size) float32: what was seen last in them."""


class Decision(NamedTuple):
    """What all arenas of a client ask at once."""

    seq: int
    outcome: Outcome | None
    """What the decision before brought."""
    seekers: np.ndarray
    """(arenas,) int8: who is "it"."""
    observations: np.ndarray
    """(arenas, 2, size) float32."""


class Ask(NamedTuple):
    """What one agent of a client that speaks JSON asks."""

    client: int
    agent: str
    seq: int | None
    observation: np.ndarray
    """(size,) float32, finite."""


class Experience(NamedTuple):
    """What one decision of such an agent brought."""

    client: int
    agent: str
    seq: int | None
    observation: np.ndarray | None
    """None where `seq` says which it was."""
    action: np.ndarray | None
    """(3,) float32."""
    reward: float
    next_observation: np.ndarray | None
    done: bool
    role: Role | None
    info: dict[str, Any]


class Brain(Protocol):
    """Answers every client whose observations have one size."""

    learning: bool
    """Whether it learns from what it is told."""

    def describe(self) -> str:
        """What it is, in a few words."""
        ...

    def join(self, client: int, hello: Hello) -> None:
        """A client that sends decisions is there; raises UserError where it does not fit."""
        ...

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        """Actions (arenas, 2, 3) float32 for what these clients ask, all at once."""
        ...

    def act(self, asks: Sequence[Ask]) -> np.ndarray:
        """Actions (asks, 3) float32."""
        ...

    def learn(self, experiences: Sequence[Experience]) -> int:
        """Take note of what decisions brought; how many of them could be used."""
        ...

    def leave(self, client: int) -> None:
        """A client is gone, whether it ever asked or not."""
        ...
