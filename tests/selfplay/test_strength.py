"""What `make train` achieves, seed by seed: the long runs behind the claims."""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from estragon.selfplay.checkpoint import TagRun
from estragon.selfplay.config import LEAGUE, PPOConfig, Task
from estragon.selfplay.evaluation import (
    EVALUATION_SEED,
    MODES,
    PANEL,
    Pairing,
    Stage,
    StageEvaluator,
    train_best_response,
)
from estragon.selfplay.policy import Policy, PolicyPlayer
from estragon.selfplay.session import STAGES
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import load_layouts
from estragon.tag.matches import Outcomes, Player, Team, play_matches, play_teams
from estragon.tag.policy_files import load_policies, load_policy
from estragon.tag.rules import ROLES, Role, Rules, load_rules
from tests.prove import Recorder, run_folder

MATCHES = 2000
FIRST, NOTHING_TO_GAIN = slice(0, 2), 0.97
BEST_OF_STAGES = 2.7
"""Standard deviations by which the best of eight equals is ahead of the last at most (95%)."""
PROBE = 5_000_000
HIDE_STEPS = 10_000_000
EXPLOITABLE = 0.08
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


def frozen(run: TagRun, role: Role, number: int, rules: Rules) -> FrozenPolicy:
    """A role as it was at one of the stages."""
    paths = sorted((run.path / "checkpoints").glob(f"{role}_*.pt"))
    return load_policy(paths[number], rules, role)


def stage(run: TagRun, role: Role, number: int, rules: Rules) -> Player:
    """The same, to play with."""
    return in_torch(frozen(run, role, number, rules), rules)


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
            0.15,
        ),
        "hider over a tenth": (
            against(seeker, stage(run, "hider", TENTH, rules), rules) - final,
            0.15,
        ),
    }
    missed = [name for name, (value, bar) in figures.items() if value < bar]
    if not 0.40 <= final <= 0.60:
        missed.append("trained against trained")
    missed += [name for name, rise in trends(run).items() if rise <= 0.0]
    shown = ", ".join(f"{name} {value:.1%}" for name, (value, _) in figures.items())
    text = f"{shown}, trained against trained {final:.1%} ({MATCHES} matches each)"
    text += f"; missed: {', '.join(missed)}" if missed else ""
    record_result(f"strength of make train: seed {seed}", text, held=not missed)
    assert not missed, text


def kept_stages(run: TagRun) -> dict[str, int]:
    """By role, the place of the policy that the run keeps among its stages."""
    names = [f"{100 * share:.0f}%" for share in STAGES]
    summary = json.loads((run.path / "summary.json").read_text())
    return {role: names.index(summary["kept"][role]) for role in ROLES}


def ladder(run: TagRun, rules: Rules) -> dict[str, tuple[int, list[float]]]:
    """By role, opponent and mode: the kept stage, and the share of matches that each one wins."""
    layouts = load_layouts(rules.layout, rules)
    # other matches than those that chose the policies
    evaluator = StageEvaluator(rules, layouts, matches=MATCHES, seed=EVALUATION_SEED + 1)
    numbers = range(len(list((run.path / "checkpoints").glob("seeker_*.pt"))))
    for number in numbers:
        policies = {role: frozen(run, role, number, rules) for role in ROLES}
        evaluator.stages.append(Stage(str(number), number, number, policies))
    kept, found = kept_stages(run), {}
    for role in ROLES:
        last = str(kept[ROLES[1 - ROLES.index(role)]])
        for what, opponent in (("the final opponent", last), ("the panel", PANEL)):
            for mode in MODES:
                names = [(str(number), opponent) for number in numbers]
                pairs = [
                    Pairing(*(pair if role == "seeker" else pair[::-1]), mode) for pair in names
                ]
                outcomes = evaluator.play(pairs, MATCHES)
                shares = [wins(one, ROLES.index(role)) for one in outcomes]
                found[f"{role} against {what}, {mode}"] = kept[role], shares
    return found


@pytest.mark.prove
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_final_policies_are_the_best(seed: int, record_result: Recorder) -> None:
    rules = load_rules()
    run = train(f"seed{seed}", "--seed", str(seed))
    shown, missed = [], []
    for name, (kept, shares) in ladder(run, rules).items():
        best = max(shares)
        noise = BEST_OF_STAGES * math.sqrt(2.0 * best * (1.0 - best) / MATCHES)
        shown.append(f"{name} {shares[kept]:.1%} of {best:.1%}")
        if best - shares[kept] > noise:
            missed.append(name)
    places = ", ".join(f"{role} {STAGES[kept]:.0%}" for role, kept in kept_stages(run).items())
    text = f"the final policies ({places}), of the best of all stages: {', '.join(shown)}"
    text += f"; behind by more than chance: {', '.join(missed)}" if missed else ""
    record_result(f"the final policies are the best: seed {seed}", text, held=not missed)
    assert not missed, text


@pytest.mark.prove
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_they_are_hard_to_exploit(seed: int, record_result: Recorder) -> None:
    rules = load_rules()
    run = train(f"seed{seed}", "--seed", str(seed))
    policies = load_policies(run.policy("policy"), rules)
    task = Task(rules, load_layouts(rules.layout, rules), seed, "both", LEAGUE)
    responses = [
        train_best_response(role, run.policy(f"policy_{role}"), policies, task, PPOConfig(), PROBE)
        for role in ROLES
    ]
    text = "; ".join(response.describe() for response in responses)
    held = max(response.gain for response in responses) < EXPLOITABLE
    record_result(f"exploitability of make train: seed {seed}", text, held=held)
    assert held, text


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


@pytest.mark.prove
def test_hiders_hide(record_result: Recorder) -> None:
    rules, layouts = load_rules(rules="hide"), "blocks"
    run = train(
        "hide", "--rules", "hide", "--layout", layouts, "--critic", "--steps", str(HIDE_STEPS)
    )
    policies = load_policies(run.policy("policy"), rules)
    seeker, hider = (in_torch(policies[role], rules) for role in ROLES)
    untrained = stage(run, "hider", UNTRAINED, rules)

    def out_of_sight(player: Player) -> tuple[float, float]:
        seed = EVALUATION_SEED + 1
        outcomes = play_matches(seeker, player, MATCHES, rules=rules, layouts=layouts, seed=seed)
        searched = np.maximum(outcomes.ticks - rules.head_start_ticks, 0)
        hidden = outcomes.out_of_sight * searched / (rules.limit_ticks - rules.head_start_ticks)
        return float(hidden.mean()), wins(outcomes, 1)

    (before, lost), (after, won) = out_of_sight(untrained), out_of_sight(hider)
    text = (
        f"{HIDE_STEPS:,} steps with --critic on {layouts}; hidden from the trained seeker: "
        f"untrained {before:.0%} of the ten seconds (survives {lost:.0%}), trained {after:.0%} "
        f"(survives {won:.0%}); {MATCHES} matches each"
    )
    held = after >= 0.5 and after > 2.0 * before
    record_result("hide: out of sight", text, held=held)
    assert held, text
