"""What `make train` achieves, seed by seed: the long runs behind the claims."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from estragon.selfplay.checkpoint import TagRun
from estragon.selfplay.evaluation import EVALUATION_SEED
from estragon.selfplay.policy import Policy, PolicyPlayer
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.matches import Outcomes, Player, Team, play_matches, play_teams
from estragon.tag.policy_files import load_policies, load_policy
from estragon.tag.rules import ROLES, Role, Rules, load_rules
from tests.prove import Recorder, run_folder

MATCHES = 2000
FIRST, NOTHING_TO_GAIN = slice(0, 2), 0.97
UNTRAINED, TENTH = 0, 2
"""Places of the untrained policies and of those at a tenth of the budget among the stages."""


def train(name: str, *options: str) -> TagRun:
    """Train, or go on with a training that was interrupted."""
    folder = run_folder(name)
    latest = folder / "trainer" / "logs" / "latest_run.txt"
    words = ["--resume"] if latest.exists() else list(options)
    words += ["--output", str(folder), "--no-film", "--probe-steps", "0"]
    subprocess.run([sys.executable, "-m", "estragon", "train", "tag", *words], check=True)
    return TagRun.find(folder, "latest")


def in_torch(policy: FrozenPolicy, rules: Rules) -> Player:
    torch.set_num_threads(1)
    return PolicyPlayer(Policy(policy, rules), None)


def stage(run: TagRun, role: Role, number: int, rules: Rules) -> Player:
    """A role as it was at one of the stages."""
    paths = sorted((run.path / "checkpoints").glob(f"{role}_*.pt"))
    return in_torch(load_policy(paths[number], rules, role), rules)


def wins(outcomes: Outcomes, agent: int) -> float:
    """The share that an agent won; a draw counts half."""
    return float((outcomes.winners == agent).mean() + 0.5 * (outcomes.winners < 0).mean())


def against(seeker: Player, hider: Player, rules: Rules, layout: str | None = None) -> float:
    """How often the seeker wins matches that nobody has learned from."""
    outcomes = play_matches(
        seeker,
        hider,
        MATCHES,
        rules=rules,
        layouts=layout or rules.layout,
        seed=EVALUATION_SEED + 1,
    )
    return wins(outcomes, 0)


def trends(run: TagRun) -> dict[str, float]:
    """By how much the reward against each bot rose from the first stages to the last ones.

    Where a role won nearly always before it had learned anything there is no trend to see: a bot
    that runs at random seldom tags anybody.
    """
    with run.strength.open() as file:
        rows = list(csv.DictReader(file))

    def mean(name: str, stages: slice) -> float:
        return float(np.mean([float(row[name]) for row in rows[stages]]))

    columns = [name.removesuffix("_reward") for name in rows[0] if name.endswith("_reward")]
    return {
        f"{name}_reward": mean(f"{name}_reward", slice(-3, None)) - mean(f"{name}_reward", FIRST)
        for name in columns
        if mean(f"{name}_win_rate", FIRST) < NOTHING_TO_GAIN
    }


@pytest.mark.prove
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_roles_become_strong(seed: int, record_result: Recorder) -> None:
    rules = load_rules()
    run = train(f"seed{seed}", "--seed", str(seed))
    policies = load_policies(run.policy("policy"), rules)
    seeker, hider = (in_torch(policies[role], rules) for role in ROLES)
    bots = {name: Bot(name, rules) for name in ("random", "chaser", "evader")}
    final = against(seeker, hider, rules)
    figures = {
        "seeker tags random": (against(seeker, bots["random"], rules), 0.97),
        "seeker tags evader": (against(seeker, bots["evader"], rules), 0.80),
        "hider survives random": (1.0 - against(bots["random"], hider, rules), 0.97),
        "hider survives chaser": (1.0 - against(bots["chaser"], hider, rules), 0.80),
        "seeker over untrained": (
            final - against(stage(run, "seeker", UNTRAINED, rules), hider, rules),
            0.40,
        ),
        "hider over untrained": (
            against(seeker, stage(run, "hider", UNTRAINED, rules), rules) - final,
            0.40,
        ),
        "seeker over a tenth": (
            final - against(stage(run, "seeker", TENTH, rules), hider, rules),
            0.10,
        ),
        "hider over a tenth": (
            against(seeker, stage(run, "hider", TENTH, rules), rules) - final,
            0.10,
        ),
    }
    missed = [name for name, (value, bar) in figures.items() if value < bar]
    if not 0.35 <= final <= 0.65:
        missed.append("trained against trained")
    missed += [name for name, rise in trends(run).items() if rise <= 0.0]
    shown = ", ".join(f"{name} {value:.1%}" for name, (value, _) in figures.items())
    text = f"{shown}, trained against trained {final:.1%} ({MATCHES} matches each)"
    text += f"; missed: {', '.join(missed)}" if missed else ""
    record_result(f"strength of make train: seed {seed}", text, held=not missed)
    assert not missed, text


@pytest.mark.prove
def test_it_plays_layouts_it_has_never_seen(record_result: Recorder) -> None:
    rules = load_rules()
    run = train("layouts", "--layout", "random:0-255")
    policies = load_policies(run.policy("policy"), rules)
    seeker, hider = (in_torch(policies[role], rules) for role in ROLES)
    seen, unseen = "random:0-255", "random:100000-100255"
    gaps = {
        "seeker tags evader": [
            against(seeker, Bot("evader", rules), rules, where) for where in (seen, unseen)
        ],
        "hider survives chaser": [
            1.0 - against(Bot("chaser", rules), hider, rules, where) for where in (seen, unseen)
        ],
        "trained against trained": [against(seeker, hider, rules, at) for at in (seen, unseen)],
    }
    text = ", ".join(
        f"{name} {one:.1%} seen, {two:.1%} unseen" for name, (one, two) in gaps.items()
    )
    held = all(abs(one - two) <= 0.10 for one, two in gaps.values())
    record_result("random layouts, seen and unseen", text, held=held)
    assert held, text


@pytest.mark.prove
def test_transfer_rules_are_learned(record_result: Recorder) -> None:
    rules = load_rules(rules="transfer")
    run = train("transfer", "--rules", "transfer")
    policies = load_policies(run.policy("policy"), rules)
    trained: Team = (in_torch(policies["seeker"], rules), in_torch(policies["hider"], rules))
    untrained: Team = (
        stage(run, "seeker", UNTRAINED, rules),
        stage(run, "hider", UNTRAINED, rules),
    )

    def play(first: Team, second: Team) -> Outcomes:
        seed = EVALUATION_SEED + 1
        return play_teams(first, second, MATCHES, rules=rules, layouts=rules.layout, seed=seed)

    rate = (wins(play(trained, untrained), 0) + wins(play(untrained, trained), 1)) / 2
    text = f"the trained pair beats its untrained self in {rate:.1%} ({2 * MATCHES} matches)"
    record_result("transfer rules", text, held=rate - 0.5 >= 0.30)
    assert rate - 0.5 >= 0.30, text


def test_a_run_folder_is_named_after_its_sources() -> None:
    assert isinstance(run_folder("x"), Path)
    assert run_folder("x") == run_folder("x") != run_folder("y")
