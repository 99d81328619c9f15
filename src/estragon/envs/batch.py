"""All agents of all games side by side, in seats that stay: what a vector environment is made of.

Agents that leave free their seats, agents that join take free ones. An agent without a seat does
nothing (all zeros); a seat without an agent sees zeros and earns nothing.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from estragon.envs.games import Games
from estragon.envs.launch import Launch
from estragon.envs.outcome import ENDED, LAST, LEFT, TERMINATED, TRUNCATED, Outcome, name_of
from estragon.envs.roster import Roster
from estragon.envs.spaces import Spaces
from estragon.support.errors import UserError

NOBODY, NO_TRUTHS = np.zeros(0, np.int64), np.zeros(0, bool)
SEED = "seed"
"""In an info: of the episode that begins."""


@dataclasses.dataclass
class Step:
    """What came of a step, seat by seat; the arrays are the caller's to keep."""

    numbers: np.ndarray
    """(seats, spaces.numbers) float32."""
    images: np.ndarray
    """(seats, spaces.image_bytes) uint8."""
    rewards: np.ndarray
    """(seats,) float32."""
    terminated: np.ndarray
    """(seats,) bool."""
    truncated: np.ndarray
    """(seats,) bool."""
    ended: np.ndarray
    """The seats whose episode is over."""
    last_numbers: np.ndarray
    """(ended, spaces.numbers) what they saw at the end."""
    last_images: np.ndarray
    """(ended, spaces.image_bytes) the same."""
    last_missing: np.ndarray
    """(ended,) whether the game did not tell, so that it is what they saw before."""
    infos: list[dict[str, Any]] | None
    """By seat, of the step that was taken; if the games told any."""
    begun: dict[int, dict[str, Any]]
    """By seat, the infos of episodes that begin."""


class Batch:
    """Games whose agents all see and do the same kind of thing."""

    def __init__(self, launch: Launch) -> None:
        """Start the games."""
        self.games = Games(launch)
        try:
            self.spaces = _common_spaces(self.games.rosters)
        except BaseException:
            self.games.close()
            raise
        self.policies = [agent.policy for roster in self.games.rosters for agent in roster.agents]
        self.count = len(self.policies)
        counts = [len(roster) for roster in self.games.rosters]
        self._firsts = np.concatenate([[0], np.cumsum(counts)])
        self.masks = np.ones((self.count, self.spaces.mask_bytes), np.uint8)
        """Which choices of the masked actions are allowed now."""
        self.empty = np.zeros(self.count, bool)
        """Seats without an agent."""
        self.has_empty = False
        """Whether there is one."""
        self._take_seats()
        self._numbers = np.zeros((self.count, self.spaces.numbers), np.float32)
        self._images = np.zeros((self.count, self.spaces.image_bytes), np.uint8)
        self._no_numbers, self._no_images = self._numbers[:0], self._images[:0]

    def reset(self, seed: int | None = None) -> Step:
        """Begin new episodes everywhere."""
        outcomes = self.games.reset(seed)
        self._take_seats()
        step = self._nothing()
        for game, outcome in enumerate(outcomes):
            self._show(step, game, outcome)
            for row, seat in self._seated(game, outcome):
                step.begun[seat] = dict(outcome.infos[row]) if outcome.infos else {}
        self._keep(step)
        return step

    def send(self, actions: np.ndarray) -> None:
        """Tell all agents what to do: (seats, spaces.action_width) float32."""
        if self._simple:
            self.games.send([actions[first:last] for first, last in self._spans])
            return
        wanted = []
        for seats in self._seats:
            rows = np.zeros((len(seats), actions.shape[1]), np.float32)
            rows[seats >= 0] = actions[seats[seats >= 0]]
            wanted.append(rows)
        self.games.send(wanted)

    def gather(self) -> Step:
        """What came of it."""
        outcomes = self.games.gather()
        calm = all(outcome.calm for outcome in outcomes)
        if not self._simple or (not calm and any(each.has_changes() for each in outcomes)):
            step = self._seat_by_seat(outcomes)
        else:
            step = self._in_order(outcomes)
            if not calm:
                self._end(step, outcomes)
        self._keep(step)
        return step

    def call(self, method: str) -> list[Any]:
        """What a method of the agents returned, seat by seat."""
        found: list[Any] = [None] * self.count
        place = 0
        returned = self.games.call(method)
        for seats in self._seats:
            for seat in seats:
                if place < len(returned) and seat >= 0:
                    found[seat] = returned[place]
                place += 1
        return found

    def _take_seats(self) -> None:
        """Give every game's agents its seats in order."""
        self._seats: list[np.ndarray] = []
        self.empty[:] = True
        for game, roster in enumerate(self.games.rosters):
            own = np.full(len(roster), -1)
            taken = min(len(roster), int(self._firsts[game + 1] - self._firsts[game]))
            own[:taken] = self._firsts[game] + np.arange(taken)
            self._seats.append(own)
            self.empty[own[:taken]] = False
        self._look_for_order()

    def _look_for_order(self) -> None:
        """Where every agent sits in the order of the messages, arrays can be taken whole."""
        self.has_empty = bool(self.empty.any())
        self._spans = [
            (int(first), int(last))
            for first, last in zip(self._firsts, self._firsts[1:], strict=False)
        ]
        self._simple = all(
            np.array_equal(seats, np.arange(first, last))
            for seats, (first, last) in zip(self._seats, self._spans, strict=True)
        )

    def _in_order(self, outcomes: list[Outcome]) -> Step:
        count = self.count
        spaces = self.spaces
        step = Step(
            numbers=_joined([each.seen.numbers for each in outcomes]).reshape(
                count, spaces.numbers
            ),
            images=_joined([each.seen.images for each in outcomes]).reshape(
                count, spaces.image_bytes
            ),
            rewards=_joined([each.rewards for each in outcomes]),
            terminated=np.zeros(count, bool),
            truncated=np.zeros(count, bool),
            ended=NOBODY,
            last_numbers=self._no_numbers,
            last_images=self._no_images,
            last_missing=NO_TRUTHS,
            infos=_joined_infos(outcomes),
            begun={},
        )
        if spaces.mask_bytes:
            for (first, last), outcome in zip(self._spans, outcomes, strict=True):
                if outcome.masks is not None:
                    self.masks[first:last] = outcome.masks.reshape(last - first, -1)
        return step

    def _end(self, step: Step, outcomes: list[Outcome]) -> None:
        """Say whose episodes are over, where all sit in order."""
        states = _joined([outcome.states for outcome in outcomes])
        step.terminated = states & TERMINATED != 0
        step.truncated = states & TRUNCATED != 0
        step.ended = ended = np.flatnonzero(states & ENDED)
        step.last_numbers = self._numbers[ended]
        step.last_images = self._images[ended]
        step.last_missing = states[ended] & LAST == 0
        known = ~step.last_missing
        if told := [outcome.last for outcome in outcomes if outcome.last is not None]:
            shape = (int(known.sum()), -1)
            step.last_numbers[known] = _joined([last.numbers for last in told]).reshape(shape)
            step.last_images[known] = _joined([last.images for last in told]).reshape(shape)
        if step.infos is not None:
            for seat in ended.tolist():
                step.begun[seat] = _take_seed(step.infos[seat])

    def _seat_by_seat(self, outcomes: list[Outcome]) -> Step:
        """The same with agents who come and go."""
        step = self._nothing()
        step.infos = [{} for _ in range(self.count)]
        ends: dict[int, tuple[np.ndarray, np.ndarray, bool]] = {}
        for game, outcome in enumerate(outcomes):
            seats, states = self._seats[game], outcome.states
            last_row = np.cumsum(states & LAST != 0) - 1
            for row, seat in enumerate(seats):
                if seat < 0:
                    continue
                step.rewards[seat] = outcome.rewards[row]
                step.infos[seat] = dict(outcome.infos[row]) if outcome.infos else {}
                step.terminated[seat] = states[row] & TERMINATED != 0
                # Who leaves without an end of the episode is cut off.
                cut = states[row] & LEFT and not states[row] & TERMINATED
                step.truncated[seat] = states[row] & TRUNCATED != 0 or bool(cut)
                if states[row] & LAST and outcome.last is not None:
                    last = self._row(outcome.last.numbers, outcome.last.images, last_row[row])
                    ends[int(seat)] = (*last, False)
                elif states[row] & ENDED:
                    ends[int(seat)] = (self._numbers[seat], self._images[seat], True)
                elif states[row] & LEFT:
                    last = self._row(outcome.seen.numbers, outcome.seen.images, row)
                    ends[int(seat)] = (*last, False)
                if states[row] & LEFT:
                    step.infos[seat]["agent_left"] = True
                elif states[row] & ENDED:
                    step.begun[int(seat)] = _take_seed(step.infos[seat])
            known = len(seats)
            self._let_go(game, outcome)
            self._show(step, game, outcome)
            for row, seat in self._seated(game, outcome):
                if row >= known:
                    step.begun[seat] = dict(outcome.infos[row]) if outcome.infos else {}
        step.ended = np.array(sorted(ends), dtype=np.int64)
        if ends:
            found = [ends[seat] for seat in sorted(ends)]
            step.last_numbers = np.stack([numbers for numbers, _, _ in found])
            step.last_images = np.stack([images for _, images, _ in found])
            step.last_missing = np.array([missing for _, _, missing in found])
        self._look_for_order()
        return step

    def _row(
        self, numbers: np.ndarray, images: np.ndarray, row: int
    ) -> tuple[np.ndarray, np.ndarray]:
        spaces = self.spaces
        return (
            numbers[row * spaces.numbers : (row + 1) * spaces.numbers],
            images[row * spaces.image_bytes : (row + 1) * spaces.image_bytes],
        )

    def _let_go(self, game: int, outcome: Outcome) -> None:
        """Free the seats of who has left, and seat who has joined."""
        stays = outcome.states & LEFT == 0
        seats = np.concatenate([self._seats[game], np.full(outcome.joined, -1)])
        gone = seats[~stays]
        self.empty[gone[gone >= 0]] = True
        first, last = self._firsts[game], self._firsts[game + 1]
        for row in np.flatnonzero(stays & (seats < 0)):
            free = np.flatnonzero(self.empty[first:last])
            if not len(free):
                break
            if outcome.roster.agents[row].spaces != self.spaces:
                raise UserError(
                    f"{name_of(outcome.roster, row)} joined with other spaces than all before: "
                    "GodotParallelEnv can do that"
                )
            seats[row] = first + free[0]
            self.empty[seats[row]] = False
        self._seats[game] = seats[stays]

    def _seated(self, game: int, outcome: Outcome) -> Iterator[tuple[int, int]]:
        """The rows of those who play on, and their seats."""
        rows = np.flatnonzero(outcome.states & LEFT == 0)
        for row, seat in zip(rows, self._seats[game], strict=True):
            if seat >= 0:
                yield int(row), int(seat)

    def _show(self, step: Step, game: int, outcome: Outcome) -> None:
        """Show those who play on what they see now, each in its seat."""
        size = self.spaces.mask_bytes
        for row, seat in self._seated(game, outcome):
            step.numbers[seat], step.images[seat] = self._row(
                outcome.seen.numbers, outcome.seen.images, row
            )
            if outcome.masks is not None:
                self.masks[seat] = outcome.masks[row * size : (row + 1) * size]

    def _nothing(self) -> Step:
        count, spaces = self.count, self.spaces
        return Step(
            numbers=np.zeros((count, spaces.numbers), np.float32),
            images=np.zeros((count, spaces.image_bytes), np.uint8),
            rewards=np.zeros(count, np.float32),
            terminated=np.zeros(count, bool),
            truncated=np.zeros(count, bool),
            ended=np.zeros(0, np.int64),
            last_numbers=np.zeros((0, spaces.numbers), np.float32),
            last_images=np.zeros((0, spaces.image_bytes), np.uint8),
            last_missing=np.zeros(0, bool),
            infos=None,
            begun={},
        )

    def _keep(self, step: Step) -> None:
        self._numbers, self._images = step.numbers, step.images


def _take_seed(info: dict[str, Any]) -> dict[str, Any]:
    """The part of an info that belongs to the next episode; the rest stays."""
    return {SEED: info.pop(SEED)} if SEED in info else {}


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _joined_infos(outcomes: list[Outcome]) -> list[dict[str, Any]] | None:
    if len(outcomes) == 1:
        return outcomes[0].infos
    if not any(outcome.infos for outcome in outcomes):
        return None
    return [info for each in outcomes for info in each.infos or [{} for _ in each.roster.agents]]


def _common_spaces(rosters: list[Roster]) -> Spaces:
    found = {agent.spaces: agent for roster in rosters for agent in roster.agents}
    if len(found) > 1:
        several = "; ".join(
            f"agent {agent.id} ({agent.policy}) {spaces.describe()}"
            for spaces, agent in list(found.items())[:3]
        )
        raise UserError(
            "the agents see or do different things, which a vector environment cannot hold: "
            f"{several}; use GodotParallelEnv or GodotMultiAgentEnv"
        )
    return next(iter(found))
