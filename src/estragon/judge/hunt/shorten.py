"""Shortens what was played until only what the bug needs is left: delta debugging."""

import copy
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from estragon.judge.hunt.archive import Rollout
from estragon.judge.hunt.game import HuntedGame
from estragon.judge.hunt.oracles import Finding
from estragon.judge.hunt.traces import Outcome, play
from estragon.judge.hunt.user_oracles import UserOracles
from estragon.judge.hunt.usual import Usual

T = TypeVar("T")
NEEDS_FRESH = ("crash", "hang", "nan", "leak", "reset", "bad message")
"""Oracles that a process shows once, or only after all that it has played."""
HELD = 6
"""So many of the last actions are tried alone."""
TRY_TIMEOUT_SEC = 2.0
"""A try does not wait longer for a hang; what is kept is checked with the hunt's own timeout."""


def ddmin(parts: Sequence[T], needed: Callable[[list[T]], int | None], until: float) -> list[T]:
    """The parts that are left when none of the chunks tried can be left out; at most until then.

    Args:
        parts: which together fail.
        needed: tries parts; how many of them it takes to fail, None if they do not.
        until: in time.monotonic().
    """
    kept, chunks = list(parts), 2
    while kept and time.monotonic() < until:
        size = max(1, -(-len(kept) // chunks))
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            if time.monotonic() < until and (count := needed(fewer)) is not None:
                kept, chunks = fewer[:count], max(chunks - 1, 2)
                break
        else:
            if size == 1:
                break
            chunks = min(2 * chunks, len(kept))
    return kept


class Shortener:
    """Finds the shortest rollouts that still show a bug, within a time."""

    def __init__(
        self, game: HuntedGame, finding: Finding, usual: Usual, user: UserOracles, budget_sec: float
    ) -> None:
        self._game, self._finding, self._usual, self._user = game, finding, usual, user
        self._until = time.monotonic() + budget_sec
        self._is_dirty = True

    def reproduce(self, rollouts: list[Rollout], *, fresh: bool = True) -> Outcome:
        """Play rollouts; only in a new process is it certain that nothing else had a part."""
        if fresh or self._is_dirty or self._finding.oracle in NEEDS_FRESH:
            self._game.restart(None if fresh else TRY_TIMEOUT_SEC)
        usual = copy.deepcopy(self._usual)
        outcome = play(self._game, rollouts, usual, self._user, self._finding.signature)
        self._is_dirty = self._finding.oracle in ("crash", "hang")
        return outcome

    def shorten(self, rollouts: list[Rollout], seen: Outcome) -> tuple[list[Rollout], Outcome]:
        """Leave out what is not needed; the result and its outcome are those of a new process.

        Args:
            rollouts: what was played in a new process.
            seen: its outcome.
        """
        self._seen = seen
        best = rollouts = cut(rollouts, seen)
        if self._finding.oracle == "leak":
            return self._one_leak(best), self._seen
        before, last = rollouts[:-1], rollouts[-1]
        if before:
            before = ddmin(
                before,
                lambda fewer: len(fewer) if self._shows([*fewer, last]) else None,
                self._until,
            )
            for index, each in enumerate(before):
                empty = [*before[:index], Rollout(each.seed, []), *before[index + 1 :]]
                if each.actions and time.monotonic() < self._until and self._shows([*empty, last]):
                    before = empty
        best = self._checked([*before, last], best)
        before, seed = best[:-1], best[-1].seed

        def needed(actions: list[list[float]]) -> int | None:
            rollouts = [*before, Rollout(seed, actions)]
            outcome = self.reproduce(rollouts, fresh=False)
            if outcome.finding is None:
                return None
            return outcome.steps if outcome.rollouts == len(before) else 0

        kept = ddmin(self._held(best[-1].actions, needed), needed, self._until)
        best = self._checked([*before, Rollout(seed, kept)], best)
        idle = self._idled(best[-1].actions, best[:-1], best[-1].seed)
        return self._checked([*best[:-1], Rollout(best[-1].seed, idle)], best), self._seen

    def _one_leak(self, rollouts: list[Rollout]) -> list[Rollout]:
        """As few actions as leak, if the same rollout leaks again and again."""
        seed, count = rollouts[0].seed, len(rollouts)
        if any(each.actions != rollouts[0].actions for each in rollouts[:-1]):
            return rollouts

        def needed(actions: list[list[float]]) -> int | None:
            return len(actions) if self._shows([Rollout(seed, actions)] * count) else None

        kept = ddmin(rollouts[0].actions, needed, self._until)
        return self._checked([Rollout(seed, kept)] * count, rollouts)

    def _held(
        self, actions: list[list[float]], needed: Callable[[list[list[float]]], int | None]
    ) -> list[list[float]]:
        """One of the last actions held for long, after few others, if that shows the bug."""
        long = len(actions) // 4
        last = [list(each) for each in dict.fromkeys(map(tuple, actions[::-1]))]
        last = last[: 2 if self._finding.oracle in NEEDS_FRESH else HELD]
        for start in (0, long // 2) if long > 2 else ():
            for action in last:
                tried = [*actions[:start], *[action] * long]
                if time.monotonic() < self._until and (count := needed(tried)) is not None:
                    return tried[:count]
        return actions

    def _idled(
        self, actions: list[list[float]], before: list[Rollout], seed: int
    ) -> list[list[float]]:
        """With what does not matter set to 0: first whole columns, then runs of actions."""
        kept = [list(each) for each in actions]
        size = max(1, len(kept) // 8)
        spans = [(column, 0, len(kept)) for column in range(len(kept[0]) if kept else 0)]
        spans += [(-1, start, start + size) for start in range(0, len(kept), size)]
        for column, start, end in spans:
            tried = [list(each) for each in kept]
            for action in tried[start:end]:
                chosen = range(len(action)) if column < 0 else [column]
                for index in chosen:
                    action[index] = 0.0
            if tried == kept or time.monotonic() > self._until:
                continue
            if self._shows([*before, Rollout(seed, tried)]):
                kept = tried
        return kept

    def _shows(self, rollouts: list[Rollout]) -> bool:
        return self.reproduce(rollouts, fresh=False).finding is not None

    def _checked(self, shorter: list[Rollout], known: list[Rollout]) -> list[Rollout]:
        """The shorter ones, up to the bug, if a new process shows it; else the known ones."""
        if shorter == known:
            return known
        outcome = self.reproduce(shorter)
        if outcome.finding is None:
            return known
        self._seen = outcome
        return cut(shorter, outcome)


def cut(rollouts: list[Rollout], outcome: Outcome) -> list[Rollout]:
    """Without what was played after the bug was seen."""
    last = rollouts[outcome.rollouts]
    return [
        *rollouts[: outcome.rollouts],
        Rollout(last.seed, last.actions[: outcome.steps]),
    ]
