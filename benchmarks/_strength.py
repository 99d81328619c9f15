"""How long it takes to learn until a seeker and a hider win most of their matches against bots."""

import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

from estragon.selfplay.config import Task
from estragon.selfplay.evaluation import EVALUATION_SEED
from estragon.selfplay.league import USUAL_BOTS, Opponent
from estragon.tag.matches import load_player, play_matches
from estragon.tag.rules import ROLES, SEEKER

STRONG = 0.7
"""The share of its matches against the usual bot that a role has to win."""
MATCHES = 512
JUDGED_EVERY_SEC = 2.0


class Learned(NamedTuple):
    """How the learning ended."""

    seconds: float
    reached: bool
    shares: str
    """Of matches won by each role, in words."""


class Pupil:
    """Somebody who learns, with a clock that stands still while it is judged."""

    def __init__(
        self,
        task: Task,
        update: Callable[[], object],
        players: Callable[[], Mapping[str, Opponent]],
    ) -> None:
        """Learn by calling `update`; `players` gives the roles it has learned as they are now."""
        self._task, self._update, self._players = task, update, players
        self.seconds = 0.0
        self.shares: dict[str, float] = {}

    @property
    def strong(self) -> bool:
        """Whether it was good enough when last judged."""
        return bool(self.shares) and min(self.shares.values()) >= STRONG

    def study(self, seconds: float) -> None:
        """Learn for so long, at least one update, and be judged."""
        end = self.seconds + seconds
        while self.seconds < end:
            start = time.perf_counter()
            self._update()
            self.seconds += time.perf_counter() - start
        self.shares = {
            role: share_of_wins(self._task, role, player)
            for role, player in self._players().items()
        }


def learn_until_strong(name: str, pupils: list[Pupil], cap_sec: float) -> Learned:
    """Let the pupils study in turns until each is strong, or together they had `cap_sec`.

    The more pupils there are, the more often each is judged: what they study beyond the moment
    when they were strong is about the same in all.
    """
    turn_sec = min(JUDGED_EVERY_SEC, cap_sec) / len(pupils)
    while True:
        for pupil in pupils:
            if not pupil.strong:
                pupil.study(turn_sec)
        spent = sum(pupil.seconds for pupil in pupils)
        shares = ", ".join(
            f"{role} {share:.0%}" for pupil in pupils for role, share in pupil.shares.items()
        )
        print(f"{name}: {spent:.0f} of {cap_sec:.0f} s, {shares}", file=sys.stderr, flush=True)
        if all(pupil.strong for pupil in pupils):
            return Learned(spent, True, shares)
        if spent >= cap_sec:
            return Learned(cap_sec, False, shares)


def share_of_wins(task: Task, role: str, player: Opponent) -> float:
    """How many of the matches a role wins: the seeker by a tag, the hider by none."""
    torch.set_num_threads(1)  # batches this small only wait for more
    agent = ROLES.index(role)
    bot = load_player(USUAL_BOTS[role], task.rules, ROLES[1 - agent])
    seeker, hider = (player, bot) if agent == SEEKER else (bot, player)
    outcomes = play_matches(
        seeker, hider, MATCHES, rules=task.rules, layouts=task.layouts, seed=EVALUATION_SEED
    )
    return float((outcomes.winners == agent).mean())
