"""How strong a run is: its stages against bots, a panel and each other, and its exploitability."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from estragon.selfplay.config import BLOCKS, PPOConfig, Task
from estragon.selfplay.policy import Policy, PolicyPlayer
from estragon.selfplay.trainer import embedded_trainer
from estragon.support.parallel import available_cores
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import Layout
from estragon.tag.matches import Z95, Outcomes, Player, play_matches
from estragon.tag.policy_files import load_policies
from estragon.tag.rules import ROLES, Role, Rules, load_rules

PAIRINGS: tuple[tuple[Role, str], ...] = (
    ("seeker", "random"),
    ("seeker", "evader"),
    ("hider", "random"),
    ("hider", "chaser"),
)
"""A role that learns, and the bot it is measured against."""
ANCHORS = ("random", "chaser", "evader")
ARGMAX, SAMPLED = MODES = ("argmax", "sampled")
"""How policies play: the most likely action, or one drawn as in training."""
PANEL = "panel"
PANEL_FOLDER = Path(__file__).with_name("panel")
"""Pairs trained by other recipes and from other seeds, which no run learns from."""
MATCHES = 256
BEST_RESPONSE_MATCHES = 2048
BEST_RESPONSE_RATE = 5e-4
"""The initial learning rate of a best response, which starts from a trained policy."""
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
    policies: dict[Role, FrozenPolicy]


@dataclass(frozen=True)
class Score:
    """The results of a role against one opponent, or against the panel."""

    win_rate: float
    reward: float
    """Mean sum of rewards of an episode."""
    seconds: float
    matches: int
    sampled_win_rate: float | None = None
    """The same when policies draw their actions."""


class Pairing(NamedTuple):
    """Two players by name: `bot:NAME`, `panel` or the name of a stage; and how they play."""

    seeker: str
    hider: str
    mode: str = ARGMAX


def load_panel(rules: Rules) -> list[dict[Role, FrozenPolicy]]:
    """The members of the panel; none for a game that they do not know."""
    if rules.rules != "seek" or rules.observation != load_rules().observation:
        return []
    return [load_policies(file, rules) for file in sorted(PANEL_FOLDER.glob("*.npz"))]


@dataclass
class StageEvaluator:
    """All stages so far, and the results of their matches."""

    rules: Rules
    layouts: list[Layout]
    matches: int = MATCHES
    modes: tuple[str, ...] = MODES
    """With argmax alone there is no panel either: for runs whose games wait meanwhile."""
    seed: int = EVALUATION_SEED
    stages: list[Stage] = field(default_factory=list)
    _played: dict[Pairing, tuple[float, int]] = field(default_factory=dict)
    """The seeker's wins, and matches."""

    def __post_init__(self) -> None:
        """Load the panel."""
        self._panel = load_panel(self.rules) if SAMPLED in self.modes else []

    def add(self, stage: Stage, report: Callable[[str], None]) -> dict[str, Score]:
        """Evaluate a new stage against the bots, the panel, all earlier stages and itself."""
        self.stages.append(stage)
        scores: dict[str, Score] = {}
        opponents = [(role, bot, f"bot:{bot}") for role, bot in PAIRINGS]
        if self._panel:
            opponents += [(role, PANEL, PANEL) for role in ROLES]
        for role, name, opponent in opponents:
            if role in stage.policies:
                report(f"{role} against {name}")
                scores[f"{role}_vs_{name}"] = self._score(stage, role, opponent)
        if len(stage.policies) == len(ROLES):
            report("against all stages so far")
            self._cross_play()
        return scores

    def elo(self) -> tuple[list[float], list[float]]:
        """Ratings of each stage's seeker and hider; the mean rating of the bots is 1000."""
        names = [stage.name for stage in self.stages]
        players = names + [f"bot:{bot}" for bot in ANCHORS]
        wins, games = np.zeros((2, len(players), len(players)))
        bots = [Pairing(f"bot:{one}", f"bot:{other}") for one in ANCHORS for other in ANCHORS]
        self.play([pair for pair in bots if pair not in self._played], self.matches)
        for (seeker, hider, mode), (won, played) in self._played.items():
            if mode == ARGMAX and {seeker, hider} <= set(players):
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
        results = self._cross_play()
        rates = {
            mode: [[results[Pairing(one, two, mode)] for two in names] for one in names]
            for mode in self.modes
        }
        seeker_elo, hider_elo = self.elo()
        return {
            "stages": [
                {"name": stage.name, "agent_steps": stage.agent_steps} for stage in self.stages
            ],
            "seeker_win_rate": rates[ARGMAX],
            "sampled_seeker_win_rate": rates.get(SAMPLED),
            "episodes": self.matches,
            "elo": {"seeker": seeker_elo, "hider": hider_elo},
        }

    def strongest(self) -> dict[Role, Stage]:
        """By role, the stage to keep: the best against the opponents of the second half.

        That is the last one, unless another wins more by more than chance.
        """
        results, last = self._cross_play(), self.stages[-1]
        later = [stage for stage in self.stages if 2 * stage.agent_steps >= last.agent_steps]
        noise = math.sqrt(0.5 / (self.matches * len(later) * len(self.modes)))
        kept: dict[Role, Stage] = {}
        for role in ROLES:

            def strength(stage: Stage, role: Role = role) -> float:
                pairs = [(stage.name, other.name) for other in later]
                found = [
                    results[Pairing(*(pair if role == "seeker" else pair[::-1]), mode)]
                    for pair in pairs
                    for mode in self.modes
                ]
                mean = float(np.mean(found))
                return mean if role == "seeker" else 1.0 - mean

            best = max(self.stages, key=strength)
            kept[role] = best if strength(best) > strength(last) + noise else last
        return kept

    def save(self) -> list[list[Any]]:
        """Every result, as plain data."""
        return [[*pairing, *result] for pairing, result in self._played.items()]

    def restore(self, stages: list[Stage], saved: list[list[Any]]) -> None:
        """Load what `save` gave."""
        self.stages = stages
        self._played = {Pairing(*names): (float(won), int(played)) for *names, won, played in saved}

    def _cross_play(self) -> dict[Pairing, float]:
        """The seeker's share of wins of every stage against every stage; plays what is missing."""
        names = [stage.name for stage in self.stages]
        pairs = [Pairing(one, two, mode) for one in names for two in names for mode in self.modes]
        self.play([pair for pair in pairs if pair not in self._played], self.matches)
        return {pair: self._played[pair][0] / self._played[pair][1] for pair in pairs}

    def _score(self, stage: Stage, role: Role, opponent: str) -> Score:
        agent = ROLES.index(role)
        names = (stage.name, opponent) if agent == 0 else (opponent, stage.name)
        outcomes = self.play([Pairing(*names, mode) for mode in self.modes], self.matches)
        rates = [_wins(one, agent) / self.matches for one in outcomes]
        return Score(
            rates[0],
            float(outcomes[0].rewards[:, agent].mean()),
            float(outcomes[0].ticks.mean() / self.rules.physics.ticks_per_second),
            self.matches,
            rates[1] if SAMPLED in self.modes else None,
        )

    def play(self, pairs: Sequence[Pairing], matches: int) -> list[Outcomes]:
        """Play these pairs, two at a time; policies compute in one torch thread each."""
        workers = ThreadPoolExecutor(
            min(BLOCKS, available_cores()), initializer=torch.set_num_threads, initargs=(1,)
        )
        with workers:
            found = list(
                workers.map(
                    lambda pair: play_matches(
                        self._player(pair.seeker, "seeker", pair.mode),
                        self._player(pair.hider, "hider", pair.mode),
                        matches,
                        rules=self.rules,
                        layouts=self.layouts,
                        seed=self.seed,
                    ),
                    pairs,
                )
            )
        for pair, outcomes in zip(pairs, found, strict=True):
            self._played[pair] = _wins(outcomes, 0), matches
        return found

    def _player(self, name: str, role: Role, mode: str) -> Player:
        if name.startswith("bot:"):
            return Bot(name.removeprefix("bot:"), self.rules, threads=1)
        if name == PANEL:
            members = [policies[role] for policies in self._panel]
            return Panel([_player(policy, self.rules, mode) for policy in members])
        policy = next(stage.policies[role] for stage in self.stages if stage.name == name)
        return _player(policy, self.rules, mode)


class Panel:
    """Players that share a batch evenly."""

    name = PANEL

    def __init__(self, members: Sequence[Player]) -> None:
        """Each member plays the same matches of every batch."""
        self._members = members

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        parts = np.array_split(observations, len(self._members))
        return np.concatenate(
            [member.act(part) for member, part in zip(self._members, parts, strict=True)]
        )


def _player(policy: FrozenPolicy, rules: Rules, mode: str = ARGMAX) -> PolicyPlayer:
    """Torch on one thread keeps its speed beside a busy neighbour; numpy's threads do not."""
    key = [EVALUATION_SEED, ROLES.index(policy.role)]
    rng = np.random.Generator(np.random.SFC64(key)) if mode == SAMPLED else None
    return PolicyPlayer(Policy(policy, rules), rng)


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
    """How often the best response won: the better of what it was before and after learning."""
    start_win_rate: float
    """How often the policy that it started from won."""

    @property
    def gain(self) -> float:
        """The exploitability: the share of matches won by learning."""
        return self.win_rate - self.start_win_rate

    @property
    def gain_interval(self) -> tuple[float, float]:
        """The 95% interval of the gain."""
        spread = sum(rate * (1.0 - rate) for rate in (self.win_rate, self.start_win_rate))
        reach = Z95 * math.sqrt(spread / BEST_RESPONSE_MATCHES)
        return self.gain - reach, self.gain + reach

    def describe(self) -> str:
        """The result in one line."""
        low, high = (100 * edge for edge in self.gain_interval)
        return (
            f"a best response to the {self.exploited} gains {100 * self.gain:.1f} points (95% "
            f"interval {low:.0f} to {high:.0f}): wins {self.win_rate:.1%} instead of "
            f"{self.start_win_rate:.1%} after {self.steps:,} steps"
        )


def train_best_response(
    exploited: Role,
    policy_file: Path,
    policies: dict[Role, FrozenPolicy],
    task: Task,
    config: PPOConfig,
    steps: int,
) -> BestResponse:
    """Train the opponent of a frozen policy for `steps` more, and let them play.

    Args:
        exploited: the role of the frozen policy.
        policy_file: holds it.
        policies: of both roles; where there is none to start from, it starts untrained.
        task, config: of the run that they are from.
        steps: agent-steps to learn from.
    """
    role: Role = ROLES[1 - ROLES.index(exploited)]
    opponent = str(policy_file)
    against = replace(task, role=role, opponent=opponent, seed=task.seed + 1, variation=None)
    start = {role: policies[role]} if role in policies else None
    if start:
        rate = min(config.learning_rate, BEST_RESPONSE_RATE)
        entropy = min(config.entropy, config.final_entropy)
        config = replace(config, learning_rate=rate, final_learning_rate=rate / 10, entropy=entropy)
    trainer = embedded_trainer(against, config, steps, torch.device("cpu"), start=start)
    try:
        candidates = [trainer.freeze()[role]]
        while not trainer.done:
            trainer.update()
        candidates.append(trainer.freeze()[role])
    finally:
        trainer.close()
    rates = []
    for candidate in candidates:
        players = {one.role: _player(one, task.rules) for one in (candidate, policies[exploited])}
        seeker, hider = (players[role] for role in ROLES)
        outcomes = play_matches(
            seeker,
            hider,
            BEST_RESPONSE_MATCHES,
            rules=task.rules,
            layouts=task.layouts,
            seed=EVALUATION_SEED,
        )
        rates.append(_wins(outcomes, ROLES.index(role)) / BEST_RESPONSE_MATCHES)
    return BestResponse(exploited, trainer.agent_steps, max(rates), rates[0])
