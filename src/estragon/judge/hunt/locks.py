"""Locks: variables after whose change much of what usually changes never does."""

import numpy as np

from estragon.judge.hunt.game import Snapshot
from estragon.judge.hunt.usual import Latch, Usual

LOCK_STEPS, LOCK_ENTRIES, LOCK_CHANGES = 40, 5, 8.0
"""A lock: a flag that was never left after so many entries, and others that should have changed so
often since, but never did. It shows after so many steps."""


class FlagWatch:
    """Follows the flags of an episode: what still changes after one of them has changed."""

    def __init__(self, usual: Usual) -> None:
        self._usual, count = usual, len(usual.flags)
        self.steps_open = 0
        """For so many steps it is worth to see whether a flag is ever left."""
        self._values: np.ndarray | None = None
        self._steps = np.zeros(count, int)
        self._changes = np.zeros((count, count), int)
        self._is_entered = np.zeros(count, bool)
        self._all = np.zeros(count, int)
        self._length = 0

    def add(self, shot: Snapshot, *, varied: bool) -> str:
        """Take in a step; the flag and value that lock the game, if one does.

        Only steps of varied actions count: whoever always does the same may change nothing.
        """
        values = np.nan_to_num(shot.read(self._usual.flags))
        before, self._values = self._values, values
        if before is None:
            return ""
        changed = values != before
        self.steps_open -= 1
        self._length += varied
        self._steps += varied
        self._all += changed & varied
        self._changes += changed
        for index in np.flatnonzero(changed).tolist():
            self._fold(index, before[index], is_left=True)
            self._steps[index], self._changes[index], self._is_entered[index] = 0, 0, True
            latch = self._usual.latches.get(self._key(index, values[index]), Latch())
            if not latch.left:
                self.steps_open = (5 if latch.entries > 1 else 2) * LOCK_STEPS
        ripe = self._is_entered & (self._steps == LOCK_STEPS) & varied
        for index in np.flatnonzero(ripe).tolist():
            key = self._key(index, values[index])
            frozen = self._frozen_by(key)
            if len(frozen) and not self._changes[index][frozen].any():
                return key
        return ""

    def end(self) -> None:
        """The episode is over: remember it."""
        if self._values is None:
            return
        for index, value in enumerate(self._values):
            self._fold(index, value, is_left=False)
        self._add("", self._length, self._all, is_left=True)
        self._values = None

    def _key(self, index: int, value: float) -> str:
        return f"{self._usual.flags[index]}={value:g}"

    def _fold(self, index: int, value: float, *, is_left: bool) -> None:
        if self._is_entered[index]:
            key = self._key(index, value)
            self._add(key, int(self._steps[index]), self._changes[index], is_left=is_left)

    def _add(self, key: str, steps: int, changes: np.ndarray, *, is_left: bool) -> None:
        latch = self._usual.latches.setdefault(key, Latch())
        latch.entries += 1
        latch.left += is_left
        latch.steps += steps
        known = np.array(latch.changes) if latch.changes else np.zeros(len(changes), int)
        latch.changes = (known + changes).tolist()

    def _frozen_by(self, key: str) -> np.ndarray:
        """The flags that never change after this one, if they are many of those that should."""
        latch, every = self._usual.latches.get(key), self._usual.latches.get("")
        if latch is None or every is None or latch.left or latch.entries < LOCK_ENTRIES:
            return np.zeros(0, int)
        others = np.array(every.changes) / max(every.steps - latch.steps, 1)
        lively, still = others * latch.steps >= LOCK_CHANGES, np.array(latch.changes) == 0
        frozen = np.flatnonzero(lively & still)
        is_lock = len(frozen) >= max(3, 0.4 * lively.sum())
        return frozen if is_lock else np.zeros(0, int)
