"""Which parameters every agent's episode is played with: draw number n of a plan, in turn.

A game starts an agent's next episode by itself, so the values of that are sent ahead. Numbers that
were sent but never played are given out again: episodes play 0, 1, 2, … without gaps.
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from estragon.envs.wire import ENDED, LEFT, PARAMETERS, AgentTable, StepResult
from estragon.support.errors import UserError
from estragon.support.parameters import ParameterSpec, Plan, Value, Values

DIGITS = 12
"""Decimal digits of a number: Godot reads and writes these without loss."""
Key = tuple[int, int]
"""A game's index, and the id of one of its agents."""


class ParameterFeed:
    """The draws of one environment, over all its games."""

    def __init__(self, plan: Plan, seed: int) -> None:
        """Start at the first lesson, with draw number 0 of this seed."""
        self.plan, self.lesson, self.next_number = plan, 0, 0
        self.declared: tuple[ParameterSpec, ...] = ()
        self._seed = seed
        self._resumed = False
        self._free: list[int] = []
        """A heap of the numbers below `next_number` that were never played."""
        self._playing: dict[Key, Values] = {}
        self._next: dict[Key, int] = {}
        self._untouched: dict[Key, int] = {}
        """The numbers of episodes in which no action was taken yet."""
        self._unsent: dict[int, dict[str, Values]] = {}

    def check(self, declared: Sequence[ParameterSpec]) -> None:
        """Raise UserError if the plan does not fit the parameters that the game declares."""
        self.declared = tuple(declared)
        self.plan.check(self.declared)

    def set_lesson(self, lesson: int) -> None:
        """Teach this lesson from the next episodes on."""
        if not 0 <= lesson < len(self.plan.lessons):
            raise UserError(f"lesson {lesson}: expected 0 to {len(self.plan.lessons) - 1}")
        if lesson != self.lesson:
            self.lesson = lesson
            for key, number in self._next.items():
                self._queue(key, number)

    def draw(self, number: int) -> Values:
        """The values of a draw in the current lesson, as they are sent."""
        drawn = self.plan.draw(self.lesson, self._seed, number)
        known = {spec.name: spec for spec in self.declared}
        return {name: _sendable(value, known.get(name)) for name, value in drawn.items()}

    def save(self) -> dict[str, Any]:
        """Its state as plain data."""
        free = sorted([*self._free, *self._next.values(), *self._untouched.values()])
        place = {"lesson": self.lesson, "next_number": self.next_number, "free": free}
        return {"seed": self._seed} | place

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Load what `save` gave; the next reset continues with these draws, whatever its seed."""
        self._forget()
        self._seed = int(saved["seed"])
        self.lesson = min(int(saved["lesson"]), len(self.plan.lessons) - 1)
        self.next_number = int(saved["next_number"])
        self._free = sorted(map(int, saved["free"]))
        self._resumed = True

    def reset(self, seed: int | None) -> None:
        """All games are about to start new episodes: with a seed, its first ones."""
        for game in {game for game, _ in [*self._next, *self._untouched]}:
            self._release(game)
        self._forget()
        if seed is not None and not self._resumed:
            self._seed, self.next_number, self._free = seed, 0, []
        self._resumed = False

    def start(self, game: int, table: AgentTable) -> list[Values]:
        """The values of the episodes that a game starts now, agent by agent."""
        self._release(game)
        numbers = [self._take_number() for _ in table.agents]
        keys = [(game, agent.id) for agent in table.agents]
        self._untouched.update(zip(keys, numbers, strict=True))
        return [self.draw(number) for number in numbers]

    def take_unsent(self) -> dict[int, dict[str, Values]]:
        """By game and agent, what must be sent before the next actions, which are sent now."""
        self._untouched.clear()
        unsent, self._unsent = self._unsent, {}
        return unsent

    def playing(self, game: int, table: AgentTable) -> dict[int, Values]:
        """By row, the values of the episodes that are played now."""
        keys = enumerate((game, agent.id) for agent in table.agents)
        return {row: self._playing[key] for row, key in keys if key in self._playing}

    def note(self, game: int, result: StepResult, *, reset: bool) -> None:
        """Note which episodes ended, and prepare those after the ones that start."""
        first_joined = len(result.table) - result.num_joined
        rows = zip(result.table.agents, result.flags.tolist(), strict=True)
        for row, (agent, flags) in enumerate(rows):
            key = game, agent.id
            starts = reset or row >= first_joined or flags & ENDED
            if flags & (ENDED | LEFT) and not reset:
                result.parameters[row] = self._playing.pop(key, {})
            if flags & LEFT:
                if (number := self._next.pop(key, None)) is not None:
                    heapq.heappush(self._free, number)
            elif starts:
                self._playing[key] = result.info(row).get(PARAMETERS, {})
                if key in self._next:
                    self._untouched[key] = self._next[key]
                self._next[key] = number = self._take_number()
                self._queue(key, number)

    def _take_number(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self.next_number += 1
        return self.next_number - 1

    def _queue(self, key: Key, number: int) -> None:
        game, agent = key
        self._unsent.setdefault(game, {})[str(agent)] = self.draw(number)

    def _release(self, game: int) -> None:
        """A game's agents start over: what they did not play is free."""
        for numbers in (self._next, self._untouched):
            for key in [key for key in numbers if key[0] == game]:
                heapq.heappush(self._free, numbers.pop(key))
        for key in [key for key in self._playing if key[0] == game]:
            del self._playing[key]
        self._unsent.pop(game, None)

    def _forget(self) -> None:
        for kept in (self._playing, self._next, self._untouched, self._unsent):
            kept.clear()


def _sendable(value: Value, spec: ParameterSpec | None) -> Value:
    if isinstance(value, str):
        return value
    number = float(f"{value:.{DIGITS}g}")
    if spec is not None and spec.low is not None:
        number = max(number, spec.low)
    if spec is not None and spec.high is not None:
        number = min(number, spec.high)
    return number
