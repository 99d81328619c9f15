"""How strong the stages of a run are: against bots, and against each other."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from estragon.selfplay.elo import fit_elo
from estragon.selfplay.policy import Policy
from estragon.selfplay.rivals import PolicyRival
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import Layout
from estragon.tag.matches import Outcomes, Player, play_matches
from estragon.tag.rules import ROLES, Rules

PAIRINGS = (
    ("seeker", "random"),
    ("seeker", "evader"),
    ("hider", "random"),
    ("hider", "chaser"),
)
"""The yardsticks: a role that learns, and the bot it is measured against."""
ANCHORS = ("random", "chaser", "evader")
MATCHES = 256
EVALUATION_SEED = 2_000_000_000
"""Far from the seeds that runs are given: nobody is judged on the matches it learned from."""


@dataclass(frozen=True)
class Stage:
    """A moment of a run that is kept."""

    name: str
    updates: int
    agent_steps: int
    policies: dict[str, FrozenPolicy]


@dataclass(frozen=True)
class Score:
    """How a role did against one opponent."""

    win_rate: float
    reward: float
    """Mean sum of rewards of an episode."""
    seconds: float
    matches: int


@dataclass
class Ladder:
    """All stages so far, and every match between them."""

    rules: Rules
    layouts: list[Layout]
    matches: int = MATCHES
    stages: list[Stage] = field(default_factory=list)
    _played: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    """Seeker's wins and matches, by the names of seeker and hider."""

    def add(self, stage: Stage, tell: Callable[[str], None]) -> dict[str, Score]:
        """Judge a new stage against the bots, all earlier stages and itself."""
        self.stages.append(stage)
        scores: dict[str, Score] = {}
        for role, bot in PAIRINGS:
            if role in stage.policies:
                tell(f"{role} against bot:{bot}")
                scores[f"{role}_vs_{bot}"] = self._against_bot(stage, role, bot)
        if len(stage.policies) == len(ROLES):
            for other in self.stages:
                tell(f"against the self at {other.name}")
                self._meet(stage, other)
                if other is not stage:
                    self._meet(other, stage)
        return scores

    def elo(self) -> tuple[list[float], list[float]]:
        """Ratings of each stage's seeker and hider; the bots together have 1000 on average."""
        names = [stage.name for stage in self.stages]
        seekers = names + [f"bot:{bot}" for bot in ANCHORS]
        hiders = list(seekers)
        wins, games = np.zeros((len(seekers), len(hiders))), np.zeros((len(seekers), len(hiders)))
        self._play_bots()
        for (seeker, hider), (won, played) in self._played.items():
            wins[seekers.index(seeker), hiders.index(hider)] = won
            games[seekers.index(seeker), hiders.index(hider)] = played
        anchors = list(range(len(names), len(seekers)))
        seeker_elo, hider_elo = fit_elo(wins, games, (anchors, anchors))
        return seeker_elo[: len(names)].tolist(), hider_elo[: len(names)].tolist()

    def cross_play(self) -> dict[str, Any] | None:
        """Everything about the stages' matches, for a file; None where a role did not learn."""
        names = [stage.name for stage in self.stages]
        if any(len(stage.policies) < len(ROLES) for stage in self.stages):
            return None
        rates = [[self._rate(seeker, hider) for hider in names] for seeker in names]
        seeker_elo, hider_elo = self.elo()
        return {
            "stages": [
                {"name": stage.name, "agent_steps": stage.agent_steps} for stage in self.stages
            ],
            "seeker_win_rate": rates,
            "episodes": self.matches,
            "elo": {"seeker": seeker_elo, "hider": hider_elo},
        }

    def save(self) -> list[list[Any]]:
        """Every result, as plain data."""
        return [[*names, *result] for names, result in self._played.items()]

    def restore(self, stages: list[Stage], saved: list[list[Any]]) -> None:
        """Go on from what `save` gave."""
        self.stages = stages
        self._played = {(s, h): (float(won), int(played)) for s, h, won, played in saved}

    def _rate(self, seeker: str, hider: str) -> float:
        won, played = self._played[seeker, hider]
        return won / played

    def _against_bot(self, stage: Stage, role: str, name: str) -> Score:
        own, bot = self._in_torch(stage.policies[role]), Bot(name, self.rules)
        bot_name = f"bot:{name}"
        if role == "seeker":
            outcomes = self._play(stage.name, bot_name, own, bot)
        else:
            outcomes = self._play(bot_name, stage.name, bot, own)
        agent = ROLES.index(role)
        won = (outcomes.winners == agent).sum() + 0.5 * (outcomes.winners < 0).sum()
        return Score(
            float(won / self.matches),
            float(outcomes.rewards[:, agent].mean()),
            float(outcomes.ticks.mean() / self.rules.physics.ticks_per_second),
            self.matches,
        )

    def _meet(self, seeker: Stage, hider: Stage) -> None:
        self._play(
            seeker.name,
            hider.name,
            self._in_torch(seeker.policies["seeker"]),
            self._in_torch(hider.policies["hider"]),
        )

    def _in_torch(self, policy: FrozenPolicy) -> PolicyRival:
        """Torch on one thread keeps its speed beside a busy neighbour; numpy's threads do not."""
        return PolicyRival(Policy(policy, self.rules), None)

    def _play_bots(self) -> None:
        for seeker in ANCHORS:
            for hider in ANCHORS:
                names = f"bot:{seeker}", f"bot:{hider}"
                if names not in self._played:
                    self._play(*names, Bot(seeker, self.rules), Bot(hider, self.rules))

    def _play(self, seeker: str, hider: str, one: Player, other: Player) -> Outcomes:
        outcomes = play_matches(
            one,
            other,
            self.matches,
            rules=self.rules,
            layouts=self.layouts,
            seed=EVALUATION_SEED,
        )
        won = (outcomes.winners == 0).sum() + 0.5 * (outcomes.winners < 0).sum()
        self._played[seeker, hider] = float(won), self.matches
        return outcomes
