"""How strong a run is: its stages against bots and each other (Elo), and its exploitability."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from estragon.selfplay.config import PPOConfig, Task
from estragon.selfplay.policy import Policy, PolicyPlayer
from estragon.selfplay.trainer import embedded_trainer
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import Layout
from estragon.tag.matches import Outcomes, Player, play_matches
from estragon.tag.rules import ROLES, Role, Rules

PAIRINGS = (("seeker", "random"), ("seeker", "evader"), ("hider", "random"), ("hider", "chaser"))
"""A role that learns, and the bot it is measured against."""
ANCHORS = ("random", "chaser", "evader")
MATCHES = 256
BEST_RESPONSE_MATCHES = 1024
EVALUATION_SEED = 2_000_000_000
"""Far from the seeds of runs: no policy is evaluated on the matches it learned from."""
POINTS_PER_NAT = 400.0 / np.log(10.0)
ANCHOR_ELO = 1000.0
"""The mean rating of the anchor players."""
PRIOR_GAMES = 2.0
"""Imagined draws against an average opponent, so that a clean sweep has a finite rating."""
NEWTON_STEPS = 60


@dataclass(frozen=True)
class Stage:
    """A moment of a run whose policies are kept."""

    name: str
    updates: int
    agent_steps: int
    policies: dict[str, FrozenPolicy]


@dataclass(frozen=True)
class Score:
    """The results of a role against one opponent."""

    win_rate: float
    reward: float
    """Mean sum of rewards of an episode."""
    seconds: float
    matches: int


@dataclass
class StageEvaluator:
    """All stages so far, and the results of their matches."""

    rules: Rules
    layouts: list[Layout]
    matches: int = MATCHES
    stages: list[Stage] = field(default_factory=list)
    _played: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    """The seeker's wins, and matches, by the names of seeker and hider."""

    def add(self, stage: Stage, report: Callable[[str], None]) -> dict[str, Score]:
        """Evaluate a new stage against the bots, all earlier stages and itself."""
        self.stages.append(stage)
        scores: dict[str, Score] = {}
        for role, bot in PAIRINGS:
            if role in stage.policies:
                report(f"{role} against bot:{bot}")
                scores[f"{role}_vs_{bot}"] = self._against_bot(stage, role, bot)
        if len(stage.policies) == len(ROLES):
            for other in self.stages:
                report(f"against the stage at {other.name}")
                self._cross_play(stage, other)
                if other is not stage:
                    self._cross_play(other, stage)
        return scores

    def elo(self) -> tuple[list[float], list[float]]:
        """Ratings of each stage's seeker and hider; the mean rating of the bots is 1000."""
        names = [stage.name for stage in self.stages]
        players = names + [f"bot:{bot}" for bot in ANCHORS]
        wins, games = np.zeros((2, len(players), len(players)))
        self._play_bots()
        for (seeker, hider), (won, played) in self._played.items():
            wins[players.index(seeker), players.index(hider)] = won
            games[players.index(seeker), players.index(hider)] = played
        anchors = list(range(len(names), len(players)))
        seeker_elo, hider_elo = fit_elo(wins, games, (anchors, anchors))
        return seeker_elo[: len(names)].tolist(), hider_elo[: len(names)].tolist()

    def cross_play(self) -> dict[str, Any] | None:
        """The win rates between stages, for a file; None where a role did not learn."""
        names = [stage.name for stage in self.stages]
        if any(len(stage.policies) < len(ROLES) for stage in self.stages):
            return None
        results = [[self._played[seeker, hider] for hider in names] for seeker in names]
        seeker_elo, hider_elo = self.elo()
        return {
            "stages": [
                {"name": stage.name, "agent_steps": stage.agent_steps} for stage in self.stages
            ],
            "seeker_win_rate": [[won / played for won, played in row] for row in results],
            "episodes": self.matches,
            "elo": {"seeker": seeker_elo, "hider": hider_elo},
        }

    def save(self) -> list[list[Any]]:
        """Every result, as plain data."""
        return [[*names, *result] for names, result in self._played.items()]

    def restore(self, stages: list[Stage], saved: list[list[Any]]) -> None:
        """Load what `save` gave."""
        self.stages = stages
        self._played = {(s, h): (float(won), int(played)) for s, h, won, played in saved}

    def _against_bot(self, stage: Stage, role: str, name: str) -> Score:
        own, bot = _player(stage.policies[role], self.rules), Bot(name, self.rules)
        bot_name = f"bot:{name}"
        if role == "seeker":
            outcomes = self._play(stage.name, bot_name, own, bot)
        else:
            outcomes = self._play(bot_name, stage.name, bot, own)
        agent = ROLES.index(role)
        return Score(
            _wins(outcomes, agent) / self.matches,
            float(outcomes.rewards[:, agent].mean()),
            float(outcomes.ticks.mean() / self.rules.physics.ticks_per_second),
            self.matches,
        )

    def _cross_play(self, seeker: Stage, hider: Stage) -> None:
        self._play(
            seeker.name,
            hider.name,
            _player(seeker.policies["seeker"], self.rules),
            _player(hider.policies["hider"], self.rules),
        )

    def _play_bots(self) -> None:
        for seeker in ANCHORS:
            for hider in ANCHORS:
                names = f"bot:{seeker}", f"bot:{hider}"
                if names not in self._played:
                    self._play(*names, Bot(seeker, self.rules), Bot(hider, self.rules))

    def _play(self, seeker: str, hider: str, one: Player, other: Player) -> Outcomes:
        outcomes = play_matches(
            one, other, self.matches, rules=self.rules, layouts=self.layouts, seed=EVALUATION_SEED
        )
        self._played[seeker, hider] = _wins(outcomes, 0), self.matches
        return outcomes


def _player(policy: FrozenPolicy, rules: Rules) -> PolicyPlayer:
    """Torch on one thread keeps its speed beside a busy neighbour; numpy's threads do not."""
    return PolicyPlayer(Policy(policy, rules), None)


def _wins(outcomes: Outcomes, agent: int) -> float:
    """Matches that an agent won; a draw counts half."""
    return float((outcomes.winners == agent).sum() + 0.5 * (outcomes.winners < 0).sum())


def fit_elo(
    wins: np.ndarray, games: np.ndarray, anchors: tuple[list[int], list[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Ratings of seekers and hiders from cross-play.

    Seeker i beats hider j with probability 1 / (1 + 10^((h_j - s_i) / 400)); the ratings are the
    most likely ones, with a weak prior (Newton's method on the log-likelihood).

    Args:
        wins: (seekers, hiders) matches that the seeker won; a draw counts half.
        games: (seekers, hiders) matches played; 0 where a pair never met.
        anchors: indices of the seekers and hiders whose mean rating is ANCHOR_ELO.
    """
    seekers, hiders = wins.shape
    ratings = np.zeros(seekers + hiders)
    for _ in range(NEWTON_STEPS):
        gap = ratings[:seekers, None] - ratings[None, seekers:]
        prob = 1.0 / (1.0 + np.exp(-gap))
        error = wins - games * prob
        weight = games * prob * (1.0 - prob)
        own = 1.0 / (1.0 + np.exp(-ratings))
        gradient = np.concatenate([error.sum(axis=1), -error.sum(axis=0)])
        gradient += PRIOR_GAMES * (0.5 - own)
        hessian = np.diag(np.concatenate([weight.sum(axis=1), weight.sum(axis=0)]))
        hessian += np.diag(PRIOR_GAMES * own * (1.0 - own))
        hessian[:seekers, seekers:] = -weight
        hessian[seekers:, :seekers] = -weight.T
        step = np.linalg.solve(hessian, gradient)
        ratings += np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    points = ratings * POINTS_PER_NAT
    fixed = np.concatenate([points[anchors[0]], points[seekers:][anchors[1]]])
    points += ANCHOR_ELO - fixed.mean()
    return points[:seekers], points[seekers:]


@dataclass(frozen=True)
class BestResponse:
    """How far a frozen policy can be exploited."""

    exploited: Role
    """The role of the frozen policy."""
    steps: int
    """Agent-steps the best response learned from."""
    win_rate: float
    """How often the best response then won."""


def train_best_response(
    exploited: Role,
    policy_file: Path,
    policy: FrozenPolicy,
    task: Task,
    config: PPOConfig,
    steps: int,
) -> BestResponse:
    """Train a new opponent against a frozen policy for `steps`, and let them play."""
    role: Role = ROLES[1 - ROLES.index(exploited)]
    against = replace(task, role=role, opponent=str(policy_file), seed=task.seed + 1)
    trainer = embedded_trainer(against, config, steps, torch.device("cpu"))
    try:
        while not trainer.done:
            trainer.update()
        best = trainer.freeze()[role]
    finally:
        trainer.close()
    players = {one.role: _player(one, task.rules) for one in (best, policy)}
    seeker, hider = (players[role] for role in ROLES)
    outcomes = play_matches(
        seeker,
        hider,
        BEST_RESPONSE_MATCHES,
        rules=task.rules,
        layouts=task.layouts,
        seed=EVALUATION_SEED,
    )
    rate = _wins(outcomes, ROLES.index(role)) / BEST_RESPONSE_MATCHES
    return BestResponse(exploited, trainer.agent_steps, rate)
