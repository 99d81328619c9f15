"""Episodes as clients that speak JSON tell them, agent by agent."""

from dataclasses import dataclass, field
from typing import Any

from estragon.live.brain import Experience
from estragon.selfplay.tally import Episodes
from estragon.tag.rules import HIDER, SEEKER, TERMS


@dataclass
class Running:
    """An episode of one client that is not over for all of its agents."""

    rewards: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """By role."""
    steps: dict[str, int] = field(default_factory=dict)
    """By agent."""
    distance: float = 0.0
    done: set[str] = field(default_factory=set)
    info: dict[str, Any] = field(default_factory=dict)
    """Of the last one that ended."""


class JsonEpisodes:
    """Puts together what the agents of each client tell about the same episode."""

    def __init__(self, ticks_per_second: int) -> None:
        """Begin with nothing."""
        self._ticks_per_second = ticks_per_second
        self._running: dict[int, Running] = {}

    def add(self, experience: Experience, role: int) -> None:
        """Count one step of an agent."""
        running = self._running.setdefault(experience.client, Running())
        running.rewards[role] += experience.reward
        running.steps[experience.agent] = running.steps.get(experience.agent, 0) + 1
        running.distance += _number(experience.info.get("distance_to_other"))
        if experience.done:
            running.done.add(experience.agent)
            running.info = experience.info

    def take_ended(self) -> list[Episodes]:
        """The episodes that are over for everybody in them."""
        ended = [
            client
            for client, running in self._running.items()
            if running.done >= running.steps.keys()
        ]
        return [self._close(self._running.pop(client)) for client in ended]

    def leave(self, client: int) -> None:
        """A client is gone."""
        self._running.pop(client, None)

    def _close(self, running: Running) -> Episodes:
        info = running.info
        tagged = info.get("terminal_reason") == "tag"
        winner = info.get("winner")
        seeker_wins = {"seeker": 1.0, "hider": 0.0}.get(str(winner), float(tagged))
        decisions = max(running.steps.values())
        steps = sum(running.steps.values())
        terms = [[0.0] * len(TERMS) for _ in (SEEKER, HIDER)]
        for role in (SEEKER, HIDER):
            terms[role][0] = running.rewards[role]
        return Episodes(
            count=1,
            decisions=decisions,
            ticks=round(_number(info.get("time_elapsed")) * self._ticks_per_second),
            seeker_wins=seeker_wins,
            tags=int(tagged),
            distance=running.distance * decisions / steps,
            terms=tuple(tuple(row) for row in terms),
        )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e9 else 0.0
