"""Opponents: past selves, bots and policy files, and in which arenas they play."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from estragon.selfplay.config import LEAGUE, RoleChoice
from estragon.selfplay.policy import Policy, PolicyPlayer, Weights, blank_policies
from estragon.support.errors import UserError
from estragon.tag.bots import BOTS, Bot
from estragon.tag.policy_files import load_policies
from estragon.tag.rules import OBS, ROLES, Role, Rules

USUAL_BOTS = {"seeker": "bot:evader", "hider": "bot:chaser"}
"""The default opponent of a role that learns alone."""
ODD_SHARE = {"seeker": 0.125, "hider": 0.25}
"""Of the bots that seek, how many run at random; of those that hide, how many do so, and how many
stay in a corner. No good player does either, and a policy that has only met good ones does not find
such a hider, or runs into such a seeker."""

OPENING_SEEKERS = 1 / 6
"""In the opening of a run, how many seekers meet bots for each hider that does: a seeker learns
faster from a hider that has just learned to run away than from one that always could."""
PAST_AT_ONCE = 4
"""Past selves that play at the same time."""
HELD_FOR = 12
"""Rollouts until a past self is replaced by another; of 16 decisions, they are the longest
episode."""


class Opponent(Protocol):
    """A player that does not learn while it plays."""

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""


class OpponentPair(NamedTuple):
    """One opponent, able to play both roles (under `transfer` it has to)."""

    seeker: Opponent | None
    hider: Opponent | None


@dataclass(frozen=True)
class ArenaSplit:
    """How many arenas have which agent learning; they lie in this order."""

    first: int
    """Only the agent that starts as seeker learns; an opponent plays the other."""
    both: int
    second: int
    """Only the agent that starts as hider learns."""
    first_bots: int = 0
    second_bots: int = 0
    """Of the first and of the second ones, so many outermost ones have a bot as the opponent."""

    @property
    def count(self) -> int:
        """All arenas."""
        return self.first + self.both + self.second

    def learns(self) -> np.ndarray:
        """Which agents learn: (arenas, 2) bool."""
        learns = np.ones((self.count, 2), dtype=bool)
        learns[: self.first, 1] = False
        learns[self.first + self.both :, 0] = False
        return learns

    def against_bots(self) -> list[tuple[int, slice]]:
        """Where bots play, and which agent."""
        return [
            (1, slice(0, self.first_bots)),
            (0, slice(self.count - self.second_bots, self.count)),
        ]

    def against_opponents(self, number: int = 0, of: int = 1) -> list[tuple[int, slice]]:
        """Where opponent `number` of so many plays, and which agent."""
        groups = [
            (1, self.first_bots, self.first),
            (0, self.first + self.both, self.count - self.second_bots),
        ]
        return [
            (agent, slice(*(start + (end - start) * edge // of for edge in (number, number + 1))))
            for agent, start, end in groups
        ]


def split_arenas(
    count: int,
    role: RoleChoice,
    opponent: str,
    past: float,
    sparring: float,
    *,
    opening: bool = False,
) -> ArenaSplit:
    """Divide `count` arenas by who plays in them, in the opening of a run or after it."""
    if opponent == LEAGUE and opening:
        seekers = int(count * sparring * OPENING_SEEKERS)
        hiders = min(int(count * sparring), count - seekers)
        return ArenaSplit(seekers, count - seekers - hiders, hiders, seekers, hiders)
    if opponent == LEAGUE:
        bots = int(count * sparring / 2)
        aside = int(count * past / 2) + bots
        return ArenaSplit(aside, count - 2 * aside, aside, bots, bots)
    if role == "both":
        return ArenaSplit(count // 2, 0, count - count // 2)
    return ArenaSplit(count, 0, 0) if role == "seeker" else ArenaSplit(0, 0, count)


class Camper:
    """Runs into the corner of its quarter of the arena and stays there."""

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        actions = np.zeros((len(observations), 3), dtype=np.float32)
        actions[:, :2] = np.sign(observations[:, [OBS.position, OBS.position + 2]])
        return actions


class MixedBots:
    """Bots that share a batch: each odd one plays its share, the usual one the rest."""

    def __init__(self, usual: Opponent, odd: Sequence[Opponent], share: float) -> None:
        """The usual bot, and the odd ones, each with its share."""
        self._usual, self._odd, self._share = usual, odd, share

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        rows = round(len(observations) * self._share)
        parts = np.split(observations, [rows * (k + 1) for k in range(len(self._odd))])
        bots = [*self._odd, self._usual]
        return np.concatenate([bot.act(part) for bot, part in zip(bots, parts, strict=True)])


def league_bots(rules: Rules) -> OpponentPair:
    """The bots of a league, which do not change as the learners do."""
    random, chaser, evader = (Bot(name, rules, threads=1) for name in BOTS)
    seekers = MixedBots(chaser, [random], ODD_SHARE["seeker"])
    hiders = MixedBots(evader, [Camper(), random], ODD_SHARE["hider"])
    return OpponentPair(seekers, hiders)


def resolve_opponent(opponent: str | None, role: RoleChoice, rules: Rules) -> str:
    """The opponent to play against; by default the usual one."""
    if role == "both":
        return opponent or LEAGUE
    if not rules.rule_set.tag_ends_episode:
        raise UserError(f"--role {role}: under transfer rules agents play both; use --role both")
    if opponent == LEAGUE:
        raise UserError(f"--role {role}: in a league both roles learn; use --opponent bot:NAME")
    return opponent or USUAL_BOTS[role]


def fixed_opponents(opponent: str, role: RoleChoice, rules: Rules) -> OpponentPair:
    """The opponent given by a bot or a file."""
    if opponent.startswith("bot:"):
        bot = Bot(opponent.removeprefix("bot:"), rules, threads=1)
        return OpponentPair(bot, bot)
    path = Path(opponent)
    if not path.is_file():
        raise UserError(f"--opponent {opponent}: expected league, bot:NAME or a policy file")
    policies = load_policies(path, rules)
    needed: Sequence[Role] = [name for name in ROLES if name != role]
    for name in needed:
        if name not in policies:
            raise UserError(f"--opponent {opponent}: holds no {name}, which --role {role} needs")
    return OpponentPair(policies.get("seeker"), policies.get("hider"))


class League:
    """Weights of past selves, evenly spread over the run so far; safe to use from two threads."""

    def __init__(self, capacity: int) -> None:
        """Keep at most `capacity` pairs."""
        self.pairs: list[tuple[Weights, Weights]] = []
        self.seen = 0
        """Pairs so far, kept or not."""
        self._capacity = capacity
        self._lock = threading.Lock()

    def add(self, policies: list[Policy]) -> None:
        """Add the policies as they are now; when full, drop every second of the older ones."""
        with self._lock:
            number, self.seen = self.seen, self.seen + 1
            if self._stride(number) > self._stride(number - 1):
                self.pairs = self.pairs[::2]
            if number % self._stride(number) == 0:
                seeker, hider = (policy.copy_weights() for policy in policies)
                self.pairs.append((seeker, hider))

    def _stride(self, number: int) -> int:
        """Every how many-th pair is kept when there are so many before it."""
        return 1 << max(0, number // self._capacity).bit_length()

    def draw(self, rng: np.random.Generator) -> tuple[Weights, Weights]:
        """A past seeker and a past hider, drawn independently."""
        with self._lock:
            seeker, hider = rng.integers(len(self.pairs), size=2)
            return self.pairs[seeker][0], self.pairs[hider][1]


class PastSelves:
    """Past selves as opponents, each held so long that most episodes have one to the end."""

    def __init__(self, rules: Rules, hidden: int) -> None:
        """Make room for the weights."""
        self._policies = [blank_policies(rules, hidden) for _ in range(PAST_AT_ONCE)]
        self._rounds = 0

    def players(self, league: League, rng: np.random.Generator) -> list[OpponentPair]:
        """The opponents of the next rollout, those that are new drawn with `rng`.

        They take their likeliest actions, as policies are judged and shown; with drawn ones, those
        of the early part of a run would stumble too much to be opponents.
        """
        for number, pair in enumerate(self._policies):
            turn = self._rounds + number * HELD_FOR // PAST_AT_ONCE
            if self._rounds == 0 or turn % HELD_FOR == 0:
                for policy, weights in zip(pair, league.draw(rng), strict=True):
                    policy.load_state_dict(weights)
        self._rounds += 1
        return [
            OpponentPair(*(PolicyPlayer(policy, None) for policy in pair))
            for pair in self._policies
        ]

    def save(self) -> dict[str, Any]:
        """Who plays now, as tensors and plain data."""
        weights = [[policy.copy_weights() for policy in pair] for pair in self._policies]
        return {"rounds": self._rounds, "weights": weights}

    def restore(self, saved: dict[str, Any]) -> None:
        """Load what `save` gave."""
        self._rounds = int(saved["rounds"])
        for pair, own in zip(self._policies, saved["weights"], strict=True):
            for policy, weights in zip(pair, own, strict=True):
                policy.load_state_dict(weights)
