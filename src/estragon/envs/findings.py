"""What is noticed about a game while it is played at random, and what of it is suspicious."""

import collections
import dataclasses
from typing import Any

import numpy as np

from estragon.envs.outcome import ENDED, LEFT, TERMINATED, Outcome
from estragon.envs.roster import Roster
from estragon.envs.spaces import Observation, Spaces

LARGE, SMALL = 100.0, 0.01
SPARSE = 0.001
FEW_STEPS = 20
NAMED = 5


@dataclasses.dataclass
class Range:
    """The smallest and the largest that was seen of everything of one kind of agent."""

    low: np.ndarray
    high: np.ndarray
    image_low: np.ndarray
    image_high: np.ndarray
    rows: int = 0

    @classmethod
    def of(cls, spaces: Spaces) -> "Range":
        """Nothing seen yet."""
        return cls(
            np.full(spaces.numbers, np.inf),
            np.full(spaces.numbers, -np.inf),
            np.full(spaces.image_bytes, 255, np.uint8),
            np.zeros(spaces.image_bytes, np.uint8),
        )

    def look(self, numbers: np.ndarray, images: np.ndarray) -> None:
        """At (agents, numbers) and (agents, bytes)."""
        np.minimum(self.low, numbers.min(axis=0), out=self.low)
        np.maximum(self.high, numbers.max(axis=0), out=self.high)
        np.minimum(self.image_low, images.min(axis=0), out=self.image_low)
        np.maximum(self.image_high, images.max(axis=0), out=self.image_high)
        self.rows += len(numbers)


class Findings:
    """Watches the outcomes of one game after the other."""

    def __init__(self) -> None:
        self.ranges: dict[Spaces, Range] = {}
        self.policies: dict[Spaces, str] = {}
        self.agent_steps = self.joined = self.left = 0
        self.terminated = self.truncated = 0
        self.lengths: list[int] = []
        self.returns: list[float] = []
        self.reward_low, self.reward_high = np.inf, -np.inf
        self.reward_sum = self.reward_squares = 0.0
        self.rewarded = 0
        self.all_forbidden = False
        self._lengths: collections.Counter[tuple[int, int]] = collections.Counter()
        self._returns: collections.Counter[tuple[int, int]] = collections.Counter()

    def watch(self, game: int, outcome: Outcome, *, reset: bool = False) -> None:
        """Take one message into account."""
        roster, known = outcome.roster, len(outcome.roster) - outcome.joined
        self._look(outcome)
        self.joined += outcome.joined
        if reset:
            return
        rewards, states = outcome.rewards[:known], outcome.states[:known]
        self.agent_steps += known
        if known:
            self.reward_low = min(self.reward_low, float(rewards.min()))
            self.reward_high = max(self.reward_high, float(rewards.max()))
            self.reward_sum += float(rewards.sum(dtype=np.float64))
            self.reward_squares += float(np.square(rewards, dtype=np.float64).sum())
            self.rewarded += int(np.count_nonzero(rewards))
        for agent, reward, state in zip(
            roster.agents, rewards.tolist(), states.tolist(), strict=False
        ):
            who = (game, agent.id)
            self._lengths[who] += 1
            self._returns[who] += reward
            if state & ENDED:
                self.terminated += state & TERMINATED
                self.truncated += state & TERMINATED == 0
                self.lengths.append(self._lengths.pop(who))
                self.returns.append(self._returns.pop(who))
            self.left += state & LEFT != 0

    def warnings(self) -> list[str]:
        """What is suspicious, most of it because learning would suffer."""
        found: list[str] = []
        for spaces, seen in self.ranges.items():
            found += self._warn_of_sight(self.policies[spaces], spaces, seen)
        enough = self.agent_steps >= FEW_STEPS
        if enough and self.reward_low == self.reward_high:
            found.append(
                f"every reward was {self.reward_low:g}: is the reward ever set, and may random "
                "play earn any?"
            )
        elif enough and self.rewarded < SPARSE * self.agent_steps:
            found.append(
                f"only {self.rewarded} of {self.agent_steps} rewards were not 0: add smaller "
                "rewards on the way to the goal"
            )
        largest = max(abs(self.reward_low), abs(self.reward_high))
        if enough and largest > LARGE:
            found.append(f"rewards are as large as {largest:g}: about -1 to 1 is learnt best")
        if enough and not self.lengths:
            found.append(
                f"no episode ended in {self.agent_steps} agent-steps: is `done` ever set, or "
                "`reset_after` too large?"
            )
        if self.lengths and max(self.lengths) == 1:
            found.append("every episode lasted one step: is `done` ever set back?")
        if self.all_forbidden:
            found.append("an action mask allowed nothing at all")
        return found

    def summary(self) -> dict[str, Any]:
        """The numbers, for people and for JSON."""
        count = self.agent_steps
        mean = self.reward_sum / count if count else None
        variance = 0.0 if mean is None else max(0.0, self.reward_squares / count - mean**2)
        return {
            "observations": self._observations(),
            "reward_mean": mean,
            "reward_std": None if mean is None else variance**0.5,
            "reward_nonzero": None if mean is None else self.rewarded / count,
            "episodes": len(self.lengths),
            "episodes_terminated": self.terminated,
            "episodes_truncated": self.truncated,
            "episode_length_mean": float(np.mean(self.lengths)) if self.lengths else None,
            "episode_length_min": min(self.lengths, default=None),
            "episode_length_max": max(self.lengths, default=None),
            "episode_return_mean": float(np.mean(self.returns)) if self.returns else None,
            "reward_min": self.reward_low if self.agent_steps else None,
            "reward_max": self.reward_high if self.agent_steps else None,
            "agents_joined": self.joined,
            "agents_left": self.left,
        }

    def _observations(self) -> list[dict[str, Any]]:
        """What was seen of every observation that is numbers."""
        return [
            {
                "policy": self.policies[spaces],
                "key": each.key,
                "size": each.size,
                "min": float(seen.low[place : place + each.size].min()),
                "max": float(seen.high[place : place + each.size].max()),
                "constant": int(
                    (seen.low == seen.high)[place : place + each.size].sum() * (seen.rows > 1)
                ),
            }
            for spaces, seen in self.ranges.items()
            for each, place in spaces.places
            if each.kind != "image" and each.size and seen.rows
        ]

    def _look(self, outcome: Outcome) -> None:
        roster = outcome.roster
        if not len(roster):
            return
        if roster.spaces is not None:
            count = len(roster)
            numbers = outcome.seen.numbers.reshape(count, -1)
            self._range(roster, 0).look(numbers, outcome.seen.images.reshape(count, -1))
        else:
            for row, agent in enumerate(roster.agents):
                first, byte = int(roster.numbers[row]), int(roster.image_bytes[row])
                self._range(roster, row).look(
                    outcome.seen.numbers[None, first : first + agent.spaces.numbers],
                    outcome.seen.images[None, byte : byte + agent.spaces.image_bytes],
                )
        self._look_at_masks(outcome)

    def _look_at_masks(self, outcome: Outcome) -> None:
        if outcome.masks is None:
            return
        for agent, first in zip(outcome.roster.agents, outcome.roster.mask_bytes, strict=False):
            place = int(first)
            for action in agent.spaces.actions:
                if action.masked:
                    if not outcome.masks[place : place + action.size].any():
                        self.all_forbidden = True
                    place += action.size

    def _range(self, roster: Roster, row: int) -> Range:
        agent = roster.agents[row]
        if agent.spaces not in self.ranges:
            self.ranges[agent.spaces] = Range.of(agent.spaces)
            self.policies[agent.spaces] = agent.policy
        return self.ranges[agent.spaces]

    def _warn_of_sight(self, policy: str, spaces: Spaces, seen: Range) -> list[str]:
        if not spaces.observations:
            return [f"{policy}: its agents see nothing"]
        found: list[str] = []
        for each, place in spaces.places:
            where = f"{policy}: observation '{each.key}'"
            if each.kind == "image":
                found += _warn_of_image(where, each, place, seen)
                continue
            low, high = seen.low[place : place + each.size], seen.high[place : place + each.size]
            if seen.rows >= FEW_STEPS and each.size:
                constant = np.flatnonzero(low == high)
                if len(constant) == each.size:
                    found.append(f"{where} never changed")
                elif len(constant):
                    found.append(f"{where} never changed at {_listed(constant)}")
            least = np.broadcast_to(0.0 if each.kind == "discrete" else each.low, (each.size,))
            most = each.choices - 1.0 if each.kind == "discrete" else each.high
            outside = np.flatnonzero((low < least) | (high > np.broadcast_to(most, (each.size,))))
            if len(outside):
                index = outside[0]
                found.append(
                    f"{where} is out of its bounds at {_listed(outside)}: "
                    f"{low[index]:g} to {high[index]:g} was seen"
                )
            biggest = max(abs(low).max(initial=0.0), abs(high).max(initial=0.0))
            if each.kind == "box" and biggest > LARGE:
                found.append(f"{where} is as large as {biggest:g}: about -1 to 1 is learnt best")
            elif each.kind == "box" and seen.rows >= FEW_STEPS and 0.0 < biggest < SMALL:
                found.append(f"{where} is at most {biggest:g}: about -1 to 1 is learnt best")
        return found


def _warn_of_image(where: str, each: Observation, place: int, seen: Range) -> list[str]:
    low = seen.image_low[place : place + each.size]
    high = seen.image_high[place : place + each.size]
    if seen.rows < FEW_STEPS:
        return []
    if low.min() == high.max():
        return [f"{where} is all {low.min()}: the camera sees nothing, or is not drawn"]
    return [f"{where} never changed"] if np.array_equal(low, high) else []


def _listed(places: np.ndarray) -> str:
    shown = ", ".join(map(str, places[:NAMED].tolist()))
    return f"[{shown}]" if len(places) <= NAMED else f"[{shown}, …] ({len(places)} numbers)"
