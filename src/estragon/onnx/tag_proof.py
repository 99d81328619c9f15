"""Whether a model of a tag policy plays as the policy itself does, in every engine."""

import numpy as np

from estragon.onnx.engines import Engine
from estragon.support.errors import UserError
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import Layout
from estragon.tag.rules import ACTION_SIZE, AGENTS, Rules

ABSOLUTE, RELATIVE = 1e-5, 1e-4
"""How far two engines may be apart."""
UNDECIDED = 1e-4
"""Scores so close that rounding may decide which is larger, as a share of the largest score."""
SEED = 1
ARENAS, DECISIONS = 64, 48
ODD_SHARE = 8
"""For so many observations of matches there is one that no match would bring."""


def sample_observations(policy: FrozenPolicy, rules: Rules, layouts: list[Layout]) -> np.ndarray:
    """What a policy sees when it plays against chance, and some nonsense: (rows, size) float32."""
    from estragon.tag.arenas import Arenas

    random = np.random.default_rng(SEED)
    arenas = Arenas(ARENAS, rules=rules, layout=layouts, seed=SEED)
    observations = arenas.reset()
    seen = []
    for _ in range(DECISIONS):
        own = arenas.is_seeker if policy.role == "seeker" else ~arenas.is_seeker
        seen.append(observations[own].copy())
        actions = random.uniform(-1.0, 1.0, (ARENAS, AGENTS, ACTION_SIZE)).astype(np.float32)
        actions[own] = policy.act(seen[-1])
        observations = arenas.step(actions).observations
    played = np.concatenate(seen)
    odd = random.normal(0.0, 3.0, (len(played) // ODD_SHARE, played.shape[1]))
    return np.concatenate([played, odd.astype(np.float32)])


def check_model(name: str, engine: Engine, policy: FrozenPolicy, observations: np.ndarray) -> float:
    """UserError unless the loaded model acts as the policy does; returns the largest difference.

    Where two moves, or to jump and not to jump, have the same score but for rounding, either will
    do.
    """
    rows = len(observations)
    found = engine.run({"obs": observations, "state_ins": np.zeros(rows, dtype=np.float32)})
    decided = _is_decided(policy, observations)
    expected = policy.act(observations)[decided]
    value = policy.scores(observations)[:, -1]
    worst = 0.0
    for what, ours, right in (
        ("acts", found["output"][decided], expected),
        ("judges", found["value"][:, 0], value),
    ):
        error = np.abs(ours.astype(np.float64) - right)
        if not (error <= ABSOLUTE + RELATIVE * np.abs(right)).all():
            raise UserError(
                f"{name} {what} otherwise than the policy, by {np.nanmax(error):.2g}; not written"
            )
        worst = max(worst, float(error.max(initial=0.0)))
    return worst


def _is_decided(policy: FrozenPolicy, observations: np.ndarray) -> np.ndarray:
    scores = policy.scores(observations).astype(np.float64)
    choices = len(policy.moves)
    second, best = np.sort(scores[:, :choices], axis=1)[:, -2:].T
    margin = UNDECIDED * np.abs(scores).max(axis=1)
    decided: np.ndarray = (best - second > margin) & (np.abs(scores[:, choices]) > margin)
    return decided
