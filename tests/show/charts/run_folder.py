"""A training run's folder as a trainer would leave it, made from plausible curves."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from estragon.tag.rules import TERMS

UPDATES, STEPS_PER_UPDATE, TESTS_EVERY = 120, 100_000, 10
STAGES = ("0%", "10%", "25%", "50%", "75%", "100%")
ROLES = ("seeker", "hider")
IN_USE = {"distance": 1.5, "tag": 9.0, "timeout": -6.0}


def make_run(
    folder: Path,
    *,
    seed: int = 0,
    roles: tuple[str, ...] = ROLES,
    strength: bool = True,
    cross_play: bool = True,
) -> Path:
    """Write the files of a run that learned, the same for the same seed; returns the folder."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "metrics.csv", [_update(u, rng, roles) for u in range(1, UPDATES + 1)])
    if strength:
        tested = range(TESTS_EVERY, UPDATES + 1, TESTS_EVERY)
        write_rows(folder / "strength.csv", [_test(u, rng, roles) for u in tested])
    if cross_play:
        (folder / "cross_play.json").write_text(json.dumps(played_stages(rng)))
    return folder


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """A CSV file with a header."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows `write_rows` wrote."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _update(update: int, rng: np.random.Generator, roles: tuple[str, ...]) -> dict[str, Any]:
    learned = 1.0 - np.exp(-update / 30.0)
    wins = 0.25 + 0.35 * learned + rng.normal(0.0, 0.04)
    row: dict[str, Any] = {
        "updates": update,
        "agent_steps": update * STEPS_PER_UPDATE,
        "layout": "playground",
        "duration_sec": 9.0 - 4.0 * wins + rng.normal(0.0, 0.3),
        "seeker_win_rate": wins,
        "learning_rate": 3e-4 * (1.0 - 0.9 * update / UPDATES),
        "advantage_mean": rng.normal(0.0, 0.01),
        "advantage_std": 0.2 + 0.3 * np.exp(-update / 10.0) + rng.normal(0.0, 0.01),
    }
    for role, side in zip(ROLES, (1.0, -1.0), strict=True):
        numbers = {
            "reward_sum": side * (20.0 * wins - 10.0) + rng.normal(0.0, 0.8),
            "reward_mean": side * (0.2 * wins - 0.1),
            "policy_loss": -0.01 - 0.02 * np.exp(-update / 20.0) + rng.normal(0.0, 0.003),
            "value_loss": 0.2 + 1.5 * np.exp(-update / 12.0) + abs(rng.normal(0.0, 0.05)),
            "entropy": 4.2 - 1.8 * learned + side * 0.15 + rng.normal(0.0, 0.03),
            "kl": 0.008 + abs(rng.normal(0.0, 0.003)),
            "explained_variance": 0.85 * learned + rng.normal(0.0, 0.03),
        }
        for term in TERMS:
            numbers[f"term_{term}"] = side * IN_USE.get(term, 0.0) * wins
        for name, number in numbers.items():
            row[f"{role}_{name}"] = number if role in roles else ""
    if update == 1:  # no episode has ended yet
        row |= {"seeker_reward_sum": "", "hider_reward_sum": "", "duration_sec": ""}
        row |= {"seeker_win_rate": ""}
    return row


def _test(update: int, rng: np.random.Generator, roles: tuple[str, ...]) -> dict[str, Any]:
    learned = 1.0 - np.exp(-update / 30.0)
    row: dict[str, Any] = {"updates": update, "agent_steps": update * STEPS_PER_UPDATE}
    for pairing, best in (
        ("seeker_vs_random", 0.99),
        ("seeker_vs_evader", 0.71),
        ("hider_vs_random", 0.97),
        ("hider_vs_chaser", 0.62),
    ):
        rate = float(np.clip(0.15 + (best - 0.15) * learned + rng.normal(0.0, 0.02), 0.0, 1.0))
        numbers = {"win_rate": rate, "reward": 20.0 * rate - 10.0, "seconds": 9.0 - 5.0 * rate}
        for name, number in numbers.items():
            row[f"{pairing}_{name}"] = number if pairing.split("_")[0] in roles else ""
    return row


def played_stages(rng: np.random.Generator) -> dict[str, Any]:
    """What cross_play.json holds."""
    shares = [float(name.rstrip("%")) / 100.0 for name in STAGES]
    skill = np.log1p(20.0 * np.array(shares))
    apart = skill[:, None] - skill[None, :] + rng.normal(0.0, 0.2, (len(skill), len(skill)))
    return {
        "stages": [
            {"name": name, "agent_steps": round(share * UPDATES * STEPS_PER_UPDATE)}
            for name, share in zip(STAGES, shares, strict=True)
        ],
        "seeker_win_rate": (1.0 / (1.0 + np.exp(-apart))).round(3).tolist(),
        "episodes": 256,
        "elo": {
            "seeker": (1000.0 + 170.0 * skill).tolist(),
            "hider": (980.0 + 150.0 * skill).tolist(),
        },
    }
