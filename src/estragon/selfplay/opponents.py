"""Who the learners play against, and in which arenas they learn themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from estragon.selfplay.config import LEAGUE, RoleChoice
from estragon.support.errors import UserError
from estragon.tag.bots import Bot
from estragon.tag.policy_files import load_policies
from estragon.tag.rules import HIDER, ROLES, SEEKER, Role, Rules

USUAL_BOTS = {"seeker": "bot:evader", "hider": "bot:chaser"}
"""Whom a role that learns alone plays against."""
RANDOM_SHARE = 0.25
"""Of the seekers that spar with the hider, how many play at random: one who only ever met hunters
does not expect them."""


class Rival(Protocol):
    """An opponent that does not learn while it plays."""

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        ...


class RivalPair(NamedTuple):
    """One opponent, able to play both roles (under `transfer` it has to)."""

    seeker: Rival | None
    hider: Rival | None


@dataclass(frozen=True)
class Sides:
    """How many arenas of a block have which side learning; they lie in this order."""

    first: int
    """Only the agent that begins as seeker learns; a rival plays the other."""
    both: int
    second: int
    """Only the agent that begins as hider learns."""
    sparring: int = 0
    """Of the first and of the second ones, the outermost so many meet bots."""

    @property
    def count(self) -> int:
        """All arenas of the block."""
        return self.first + self.both + self.second

    def learns(self) -> np.ndarray:
        """Which agents learn: (arenas, 2) bool."""
        learns = np.ones((self.count, 2), dtype=bool)
        learns[: self.first, 1] = False
        learns[self.first + self.both :, 0] = False
        return learns

    def spars(self) -> np.ndarray:
        """In which arenas a bot plays: (arenas,) bool."""
        spars = np.zeros(self.count, dtype=bool)
        for _, group in self.against_bots():
            spars[group] = True
        return spars

    def against_bots(self) -> list[tuple[int, slice]]:
        """Where bots play, and which agent."""
        return [(1, slice(0, self.sparring)), (0, slice(self.count - self.sparring, self.count))]

    def against_rivals(self) -> list[tuple[int, slice]]:
        """Where any other rival plays, and which agent."""
        return [
            (1, slice(self.sparring, self.first)),
            (0, slice(self.first + self.both, self.count - self.sparring)),
        ]


def sides_of(count: int, role: RoleChoice, opponent: str, past: float, sparring: float) -> Sides:
    """Share out the `count` arenas of a block."""
    if opponent == LEAGUE:
        bots = int(count * sparring / 2)
        aside = int(count * past / 2) + bots
        return Sides(aside, count - 2 * aside, aside, bots)
    if role == "both":
        return Sides(count // 2, 0, count - count // 2)
    return Sides(count, 0, 0) if role == "seeker" else Sides(0, 0, count)


class Bots:
    """Scripted players who share a batch: of its first rows some are played at random."""

    def __init__(self, name: str, rules: Rules) -> None:
        """The bot called `name`, and the random one."""
        self._bot, self._random = (Bot(kind, rules, threads=1) for kind in (name, "random"))

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        random = round(len(observations) * RANDOM_SHARE)
        parts = [self._random.act(observations[:random]), self._bot.act(observations[random:])]
        return np.concatenate(parts)


def sparring_partners(rules: Rules) -> RivalPair:
    """The scripted players that a league keeps: they do not follow its fashions."""
    return RivalPair(Bots("chaser", rules), Bot("evader", rules, threads=1))


def resolve_opponent(opponent: str | None, role: RoleChoice, rules: Rules) -> str:
    """The opponent to play when none or a doubtful one was named."""
    if role == "both":
        return opponent or LEAGUE
    if not rules.rule_set.tag_ends_episode:
        raise UserError(f"--role {role}: under transfer rules everybody plays both; say both")
    if opponent == LEAGUE:
        raise UserError(f"--role {role}: in a league both roles learn; say --opponent bot:NAME")
    return opponent or USUAL_BOTS[role]


def fixed_rivals(opponent: str, role: RoleChoice, rules: Rules) -> RivalPair:
    """The opponent named by a bot or a file."""
    if opponent.startswith("bot:"):
        bot = Bot(opponent.removeprefix("bot:"), rules, threads=1)
        return RivalPair(bot, bot)
    path = Path(opponent)
    if not path.is_file():
        raise UserError(f"--opponent {opponent}: expected league, bot:NAME or a policy file")
    policies = load_policies(path, rules)
    needed: Sequence[Role] = ROLES if role == "both" else (ROLES[_other(role)],)
    for name in needed:
        if name not in policies:
            raise UserError(f"--opponent {opponent}: holds no {name}, which --role {role} needs")
    return RivalPair(policies.get("seeker"), policies.get("hider"))


def _other(role: RoleChoice) -> int:
    return HIDER if role == "seeker" else SEEKER
