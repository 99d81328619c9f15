"""Which match of a stage a film shows: an eventful one, with the outcome that is usual there.

A match's score is

    length × (seconds of close chase + 2 × narrow escapes + jumps over or onto boxes + run / 50 m)

where `length` is 1, or the share of 4 s that a shorter match lasts;
a chase is close while the seeker sees the hider and the gap between the cubes is below 3 m;
a narrow escape is a gap that fell below 0.6 m without a tag and then grew beyond 1.2 m;
a jump counts each time an agent's middle comes over a box;
and `run` is how far the two ran together.

Of the matches that the more frequent winner won, the film shows the one with the highest score, of
equal ones the first. The same seed gives the same matches, so the choice is the same every time.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from estragon.show.trajectories.log import TrajectoryLog
from estragon.show.trajectories.trajectory import Trajectory
from estragon.tag.layout import Layout
from estragon.tag.matches import Player, play_matches
from estragon.tag.rules import Role, Rules

MATCHES = 64
SEED = 7
CLOSE_M, NARROW_M, ESCAPED_M = 3.0, 0.6, 1.2
ENOUGH_SEC = 4.0
"""From this length on a match is long enough to follow."""
ESCAPE_WORTH, JUMP_WORTH, METRE_WORTH = 2.0, 1.0, 0.02
"""What counts as much as a second of close chase."""


class Events(NamedTuple):
    """What happened in a match."""

    seconds: float
    close_chase_sec: float
    narrow_escapes: int
    jumps: int
    run_m: float

    @property
    def score(self) -> float:
        """How eventful it was."""
        eventful = self.close_chase_sec + ESCAPE_WORTH * self.narrow_escapes
        eventful += JUMP_WORTH * self.jumps + METRE_WORTH * self.run_m
        return min(1.0, self.seconds / ENOUGH_SEC) * eventful


class Choice(NamedTuple):
    """The match that a film shows, and what it was chosen from."""

    number: int
    matches: int
    seeker_wins: float
    """Share of the matches that were won by the agent that began as seeker; a draw is half."""


def find_match(
    seeker: Player,
    hider: Player,
    *,
    rules: Rules,
    layouts: Sequence[Layout],
    matches: int = MATCHES,
) -> tuple[Choice, Trajectory]:
    """Play matches between two players, and choose one."""
    played = play_kept(seeker, hider, matches, rules=rules, layouts=layouts, seed=SEED)
    choice = choose_match(played)
    return choice, played[choice.number]


def play_kept(
    seeker: Player,
    hider: Player,
    count: int,
    *,
    rules: Rules,
    layouts: Sequence[Layout],
    seed: int,
) -> list[Trajectory]:
    """Matches number 0 to count - 1 of a seed, on the embedded engine."""
    log = _KeptMatches(players={"seeker": seeker.name, "hider": hider.name}, most=count)
    play_matches(seeker, hider, count, rules=rules, layouts=layouts, seed=seed, watcher=log)
    return sorted(log.matches, key=lambda match: match.start.arena)


class _KeptMatches(TrajectoryLog):
    """A log that stays in memory."""

    def __init__(self, *, players: dict[Role, str], most: int) -> None:
        super().__init__(Path(), engine="embedded", players=players, most=most)
        self.matches: list[Trajectory] = []

    def keep(self, trajectory: Trajectory) -> None:
        """A match has ended."""
        self.matches.append(trajectory)


def choose_match(matches: Sequence[Trajectory]) -> Choice:
    """Choose among the matches of a stage."""
    winners = np.array([match.winner for match in matches])
    kinds, counts = np.unique(winners, return_counts=True)
    usual = kinds[np.argmax(counts)]
    scores = [events_of(match).score if match.winner == usual else -np.inf for match in matches]
    won = np.where(winners < 0, 0.5, winners == 0)
    return Choice(int(np.argmax(scores)), len(matches), float(won.mean()))


def events_of(match: Trajectory) -> Events:
    """Measure a match."""
    gaps = gaps_m(match)
    # what holds at a moment holds since the one before
    lasted = np.diff(match.seconds)
    sees = (match.sees & match.is_seeker).any(axis=1)
    close = (sees & (gaps < CLOSE_M))[1:]
    steps = np.diff(match.positions[..., ::2], axis=0)
    over = _over_boxes(match)
    return Events(
        seconds=float(match.seconds[-1]),
        close_chase_sec=float(lasted[close].sum()),
        narrow_escapes=_count_escapes(gaps),
        jumps=int((over[1:] & ~over[:-1]).sum()),
        run_m=float(np.hypot(steps[..., 0], steps[..., 1]).sum()),
    )


def gaps_m(match: Trajectory) -> np.ndarray:
    """The shortest distance between the two cubes: (moments,) float64."""
    apart = np.abs(match.positions[:, 0] - match.positions[:, 1]) - match.start.agent_size_m
    gaps: np.ndarray = np.sqrt((np.maximum(apart, 0.0) ** 2).sum(axis=1))
    return gaps


def _count_escapes(gaps: np.ndarray) -> int:
    escapes, narrow = 0, False
    for gap in gaps:
        if gap < NARROW_M:
            narrow = True
        elif narrow and gap > ESCAPED_M:
            escapes += 1
            narrow = False
    return escapes


def _over_boxes(match: Trajectory) -> np.ndarray:
    """Whose middle is over a box: (moments, agents) bool."""
    places = match.positions[..., ::2]
    over = np.zeros(places.shape[:2], dtype=bool)
    for box in match.layout.boxes:
        half = np.array([box.size_m[0], box.size_m[2]]) / 2.0
        over |= (np.abs(places - np.array(box.at_m)) < half).all(axis=-1)
    return over
