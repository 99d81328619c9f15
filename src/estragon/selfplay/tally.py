"""What happened in the episodes that ended: the raw material of the metrics."""

from dataclasses import dataclass

import numpy as np

from estragon.selfplay.kernels import count_decision
from estragon.selfplay.opponents import Sides
from estragon.support.errors import UserError
from estragon.tag.arenas import Results
from estragon.tag.rules import AGENTS, TERMS


@dataclass(frozen=True)
class Episodes:
    """Sums over episodes."""

    count: int = 0
    decisions: int = 0
    ticks: int = 0
    seeker_wins: float = 0.0
    """A draw counts half."""
    tags: int = 0
    distance: float = 0.0
    """Metres between the agents, added up over decisions."""
    terms: tuple[tuple[float, ...], ...] = ((0.0,) * len(TERMS),) * AGENTS
    """Rewards by role and term."""

    def __add__(self, other: "Episodes") -> "Episodes":
        """Both together."""
        terms = np.add(self.terms, other.terms)
        return Episodes(
            self.count + other.count,
            self.decisions + other.decisions,
            self.ticks + other.ticks,
            self.seeker_wins + other.seeker_wins,
            self.tags + other.tags,
            self.distance + other.distance,
            tuple(tuple(role) for role in terms.tolist()),
        )


class Tally:
    """Follows every arena of a block; where learners meet learners, those episodes count.

    Where no arena has two learners, all episodes count.
    """

    def __init__(self, sides: Sides) -> None:
        """Begin with every arena at the start of an episode."""
        self._first = sides.first if sides.both else 0
        rows = sides.both or sides.count
        self._running = {
            "terms": np.zeros((rows, AGENTS, len(TERMS))),
            "distance": np.zeros(rows),
            "decisions": np.zeros(rows),
        }
        self._sums = np.zeros(6)
        self._terms = np.zeros((AGENTS, len(TERMS)))

    def add(self, results: Results, seekers: np.ndarray) -> None:
        """Count one decision, played while `seekers` (arenas,) were "it"."""
        count_decision(
            results,
            seekers,
            self._first,
            self._running["terms"],
            self._running["distance"],
            self._running["decisions"],
            self._sums,
            self._terms,
        )

    def take(self) -> Episodes:
        """The episodes that ended since the last time."""
        count, decisions, ticks, wins, tags, distance = self._sums.tolist()
        terms = tuple(tuple(role) for role in self._terms.tolist())
        self._sums[:] = 0.0
        self._terms[:] = 0.0
        return Episodes(int(count), int(decisions), int(ticks), wins, int(tags), distance, terms)

    def save(self) -> dict[str, np.ndarray]:
        """Where every episode is, right after a taking."""
        return {name: array.copy() for name, array in self._running.items()}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Go on from what `save` gave."""
        for name, own in self._running.items():
            if saved[name].shape != own.shape:
                raise UserError("saved tally: made with another number of arenas")
            own[...] = saved[name]
