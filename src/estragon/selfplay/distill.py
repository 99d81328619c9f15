"""A smaller tag policy that acts like a larger one (DAgger).

The student plays, and the teacher says what it would have done in every situation that the student
got into; so the student learns to get out of its own mistakes, which a teacher never shows.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.nn import functional

from estragon.selfplay.policy import Policy
from estragon.tag.arenas import Arenas
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import Layout
from estragon.tag.matches import Player
from estragon.tag.rules import ACTION_SIZE, AGENTS, Rules

ARENAS, DECISIONS = 256, 96
"""Played in each round."""
ROUNDS = 12
EPOCHS = 6
"""Over all that was seen so far, after each round."""
BATCH = 2048
LEARNING_RATE = 2e-3
VALUE_WEIGHT = 0.05
TEACHER_SHARE = 0.5
"""Of the arenas in which the teacher plays: all in the first round, this share of it in each after;
none at the end."""


def distill(
    teacher: FrozenPolicy,
    hidden: Sequence[int],
    opponents: Sequence[Player],
    *,
    rules: Rules,
    layouts: Sequence[Layout],
    seed: int,
    rounds: int = ROUNDS,
    report: Callable[[float, float], None] = lambda _, __: None,
) -> FrozenPolicy:
    """A policy with these hidden layers, taught by `teacher` in matches against `opponents`."""
    random = np.random.default_rng(seed)
    torch.manual_seed(seed)
    start = FrozenPolicy.untrained(rules, teacher.role, seed, hidden)
    start.mean, start.scale, start.moves = teacher.mean, teacher.scale, teacher.moves
    student = Policy(start, rules)
    optimizer = torch.optim.Adam(student.parameters(), LEARNING_RATE)
    total = rounds * EPOCHS
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1.0 - done / total)
    arenas = Arenas(ARENAS, rules=rules, layout=list(layouts), seed=seed)
    observations = arenas.reset()
    seen: list[np.ndarray] = []
    for number in range(rounds):
        share = TEACHER_SHARE**number if number < rounds - 1 else 0.0
        player = student.freeze("student", 0)
        taught = random.random(ARENAS) < share
        for _ in range(DECISIONS):
            own = arenas.is_seeker if teacher.role == "seeker" else ~arenas.is_seeker
            mine = observations[own]
            seen.append(mine.copy())
            actions = np.zeros((ARENAS, AGENTS, ACTION_SIZE), np.float32)
            actions[own] = np.where(taught[:, None], teacher.act(mine), player.act(mine))
            _play_opponents(actions, observations, ~own, opponents)
            observations = arenas.step(actions).observations
        _learn(student, teacher, np.concatenate(seen), optimizer, schedule, random)
        report(number + 1, rounds)
    return student.freeze(f"student of {teacher.name}", teacher.trained_steps)


def _play_opponents(
    actions: np.ndarray, observations: np.ndarray, theirs: np.ndarray, opponents: Sequence[Player]
) -> None:
    """Each opponent plays in every so many arenas."""
    for number, opponent in enumerate(opponents):
        rows = theirs.copy()
        rows[np.arange(len(rows)) % len(opponents) != number] = False
        actions[rows] = opponent.act(observations[rows])


def _learn(
    student: Policy,
    teacher: FrozenPolicy,
    seen: np.ndarray,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    random: np.random.Generator,
) -> None:
    """Move towards what the teacher says about everything that was seen."""
    moves = len(teacher.moves)
    said = torch.from_numpy(teacher.scores(seen))
    with torch.no_grad():
        features = student.features(torch.from_numpy(seen))
    probs = torch.softmax(said[:, :moves], dim=1)
    jumps = torch.sigmoid(said[:, moves])
    values = said[:, -1]
    spread = values.var() + 1e-6
    for _ in range(EPOCHS):
        for rows in np.array_split(random.permutation(len(seen)), max(1, len(seen) // BATCH)):
            chosen = torch.from_numpy(rows)
            outputs = student.outputs(features[chosen])
            loss = functional.cross_entropy(outputs[:, :moves], probs[chosen])
            loss = loss + functional.binary_cross_entropy_with_logits(
                outputs[:, moves], jumps[chosen]
            )
            error = (outputs[:, -1] - values[chosen]).square().mean()
            loss = loss + VALUE_WEIGHT * error / spread
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        schedule.step()
