"""The best-response probe: how far a newcomer that studies only this policy can exploit it."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from estragon.selfplay.config import PPOConfig, Task
from estragon.selfplay.ladder import EVALUATION_SEED
from estragon.selfplay.policy import Policy
from estragon.selfplay.rivals import PolicyRival
from estragon.selfplay.trainer import Trainer
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.matches import play_matches
from estragon.tag.rules import ROLES, Role

MATCHES = 1024


@dataclass(frozen=True)
class Probe:
    """What a newcomer achieved."""

    exploited: Role
    """The role of the frozen policy."""
    steps: int
    """Agent-steps the newcomer learned from."""
    win_rate: float
    """How often the newcomer then won."""


def probe(
    exploited: Role,
    policy_file: Path,
    policy: FrozenPolicy,
    task: Task,
    config: PPOConfig,
    steps: int,
) -> Probe:
    """Train a fresh opponent against a frozen policy for `steps`, and let them play."""
    newcomer: Role = ROLES[1 - ROLES.index(exploited)]
    study = replace(task, role=newcomer, opponent=str(policy_file), seed=task.seed + 1)
    trainer = Trainer(study, config, steps, torch.device("cpu"))
    try:
        while not trainer.done:
            trainer.update()
        best = trainer.freeze()[newcomer]
    finally:
        trainer.close()
    players = {one.role: PolicyRival(Policy(one, task.rules), None) for one in (best, policy)}
    seeker, hider = (players[role] for role in ROLES)
    outcomes = play_matches(
        seeker, hider, MATCHES, rules=task.rules, layouts=task.layouts, seed=EVALUATION_SEED
    )
    won = (outcomes.winners == ROLES.index(newcomer)).sum() + 0.5 * (outcomes.winners < 0).sum()
    return Probe(exploited, trainer.agent_steps, float(won / MATCHES))
