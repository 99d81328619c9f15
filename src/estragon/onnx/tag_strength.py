"""How strong an exported, quantized or distilled policy of tag is, beside what it came from."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from estragon.onnx.compare import OnnxRuntime
from estragon.tag.bots import Bot
from estragon.tag.layout import Layout
from estragon.tag.matches import Player, play_matches
from estragon.tag.policy_files import DEFAULT_BOTS
from estragon.tag.rules import Role, Rules

SEED = 2_000_000_011
"""Of the matches, which nothing was learned from."""
OTHER: dict[Role, Role] = {"seeker": "hider", "hider": "seeker"}


class OnnxPlayer:
    """An ONNX file of tag as a player, in onnxruntime."""

    def __init__(self, path: Path) -> None:
        self.name, self._runtime = str(path), OnnxRuntime()
        self._runtime.load(path)

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) of observations (rows, size)."""
        state = np.zeros(len(observations), np.float32)
        return self._runtime.run({"obs": observations, "state_ins": state})["output"]


def opponents_of(role: Role, policies: Mapping[Role, Player], rules: Rules) -> dict[str, Player]:
    """By name: the usual bot, and the policy of the other role if there is one."""
    other = OTHER[role]
    found: dict[str, Player] = {
        DEFAULT_BOTS[other]: Bot(DEFAULT_BOTS[other].removeprefix("bot:"), rules)
    }
    if other in policies:
        found[f"the {other}"] = policies[other]
    return found


def win_rate(
    player: Player,
    role: Role,
    opponent: Player,
    *,
    rules: Rules,
    layouts: Sequence[Layout],
    matches: int,
) -> float:
    """Share of the matches that the player wins in its role; a draw is half a win."""
    pair = (player, opponent) if role == "seeker" else (opponent, player)
    outcomes = play_matches(*pair, matches, rules=rules, layouts=layouts, seed=SEED)
    won = outcomes.winners == (0 if role == "seeker" else 1)
    return float(np.mean(won + 0.5 * (outcomes.winners < 0)))


def compare_strength(
    before: Player,
    after: Player,
    role: Role,
    opponents: Mapping[str, Player],
    *,
    rules: Rules,
    layouts: Sequence[Layout],
    matches: int,
) -> dict[str, tuple[float, float]]:
    """By opponent, the win rates of both in the same matches."""
    return {
        name: (
            win_rate(before, role, each, rules=rules, layouts=layouts, matches=matches),
            win_rate(after, role, each, rules=rules, layouts=layouts, matches=matches),
        )
        for name, each in opponents.items()
    }


def describe_strength(rates: Mapping[str, tuple[float, float]], matches: int) -> str:
    """For example wins 88.4% → 88.7% against bot:evader (1,000 matches)."""
    return (
        "wins "
        + ", ".join(f"{a:.1%} → {b:.1%} against {name}" for name, (a, b) in rates.items())
        + f" ({matches:,} matches each)"
    )
