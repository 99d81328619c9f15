"""Behaviour cloning: a policy is brought to do what an expert did, before it learns by itself."""

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.policies import ActorCriticPolicy

from estragon.support.errors import UserError
from estragon.trainers.demos import Demos
from estragon.trainers.sb3.learner import Learner

LEARNERS = ("ppo", "a2c", "maskable_ppo")
BATCH = 64
LEARNING_RATE = 1e-3
TESTED = 0.1
"""The part of the steps that is not learned from but tells when to stop."""
PATIENCE = 5
"""Rounds without getting better on those."""


def clone(learner: Learner, demos: Demos, rounds: int, seed: int) -> str:
    """Learn from demonstrations; what came of it, in a few words."""
    policy = learner.model.policy
    if learner.algorithm.name not in LEARNERS or not isinstance(policy, ActorCriticPolicy):
        names = ", ".join(LEARNERS)
        raise UserError(f"--demos: {learner.algorithm.name} cannot learn from them; {names} can")
    seen, done = _tensors(learner, demos)
    random = np.random.default_rng(seed)
    steps = random.permutation(len(demos))
    tested, learned = np.split(steps, [max(int(TESTED * len(demos)), 1)])
    learned = learned if len(learned) else tested
    optimizer = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE)
    best, best_state, waited, made = float("inf"), policy.state_dict(), 0, 0
    policy.set_training_mode(True)
    for _ in range(rounds):
        made += 1
        order = random.permutation(learned)
        for first in range(0, len(order), BATCH):
            loss = _surprise(policy, seen, done, order[first : first + BATCH])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            now = _surprise(policy, seen, done, tested).item()
        waited = 0 if now < best else waited + 1
        if now < best:
            best = now
            best_state = {name: value.clone() for name, value in policy.state_dict().items()}
        if waited == PATIENCE:
            break
    policy.load_state_dict(best_state)
    policy.set_training_mode(False)
    return f"{len(demos.ends)} episodes, {len(demos):,} steps, {made} rounds, surprise {best:.3f}"


def _tensors(learner: Learner, demos: Demos) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """What the policy sees: scaled, and images by channels."""
    seen: Any = demos.seen
    if learner.scaling is not None:
        for key, statistics in learner.scaling.obs_rms.items():
            statistics.update(seen[key])
        seen = learner.scaling.normalize_obs(seen)
    policy: Any = learner.model.policy
    tensors: dict[str, torch.Tensor] = {}
    for key, space in policy.observation_space.spaces.items():
        values = seen[key]
        if values.shape[1:] != space.shape:
            values = values.transpose(0, 3, 1, 2)
        tensors[key] = torch.as_tensor(values, device=policy.device)
    done = demos.done[:, 0] if demos.done.dtype == np.int64 and demos.done.shape[1] == 1 else None
    return tensors, torch.as_tensor(demos.done if done is None else done, device=policy.device)


def _surprise(
    policy: ActorCriticPolicy, seen: dict[str, torch.Tensor], done: torch.Tensor, rows: np.ndarray
) -> torch.Tensor:
    """How unlikely the policy finds what the expert did: the mean of -log p."""
    given: Any = {key: values[rows] for key, values in seen.items()}
    _, likely, _ = policy.evaluate_actions(given, done[rows])
    return -likely.mean()
