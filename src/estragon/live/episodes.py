"""Episodes of a client, one by one: what each brought, when it ended."""

import numpy as np

from estragon.selfplay.opponents import Sides
from estragon.selfplay.tally import Episodes
from estragon.tag.arenas import Results
from estragon.tag.rules import AGENTS, TAGGED, TERMS


class EpisodeBook:
    """Follows every arena in which learners meet learners; all of them where there is none."""

    def __init__(self, sides: Sides) -> None:
        """Begin with every arena at the start of an episode."""
        self._rows = slice(sides.first, sides.first + sides.both) if sides.both else slice(None)
        count = sides.both or sides.count
        self._arenas = np.arange(count)
        self._terms = np.zeros((count, AGENTS, len(TERMS)))
        self._distance = np.zeros(count)
        self._decisions = np.zeros(count, dtype=np.int64)

    def add(self, results: Results, seekers: np.ndarray) -> list[Episodes]:
        """Count a decision, taken while `seekers` were "it"; the episodes that ended with it."""
        rows = self._rows
        agents = np.stack([seekers[rows], 1 - seekers[rows]], axis=1)
        self._terms += results.terms[rows][self._arenas[:, None], agents]
        self._distance += results.distances[rows]
        self._decisions += 1
        ended = np.flatnonzero(results.ends[rows])
        episodes = [self._close(results, int(arena)) for arena in ended]
        self._terms[ended] = 0.0
        self._distance[ended] = 0.0
        self._decisions[ended] = 0
        return episodes

    def _close(self, results: Results, arena: int) -> Episodes:
        rows = self._rows
        winner = int(results.winners[rows][arena])
        terms = self._terms[arena].tolist()
        return Episodes(
            count=1,
            decisions=int(self._decisions[arena]),
            ticks=int(results.ticks[rows][arena]),
            seeker_wins=0.5 if winner < 0 else float(winner == 0),
            tags=int(results.ends[rows][arena] == TAGGED),
            distance=float(self._distance[arena]),
            terms=tuple(tuple(role) for role in terms),
        )
