"""A policy that only plays: it chooses among moves in its heading frame, and speaks world axes."""

import numpy as np
import pytest

from estragon.tag.arenas import Arenas
from estragon.tag.frozen import TURNED_FIELDS, FrozenPolicy, moves_in_heading_frame
from estragon.tag.rules import load_rules

RULES = load_rules()
FORWARD = RULES.field("forward")


@pytest.fixture
def policy() -> FrozenPolicy:
    return FrozenPolicy.untrained(RULES, "seeker", seed=1)


def seen_by_seekers(count: int = 256) -> np.ndarray:
    """What (count,) seekers see somewhere in the middle of a match."""
    arenas = Arenas(count, seed=8)
    arenas.reset()
    random = np.random.default_rng(0)
    for _ in range(12):
        arenas.step(random.uniform(-1.0, 1.0, (count, 2, 3)).astype(np.float32))
    return arenas.observations[:, 0].copy()


def turned(observations: np.ndarray, degrees: float) -> np.ndarray:
    """The same scenes, turned as a whole in the world's axes."""
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    other = observations.copy()
    starts = [(FORWARD.start, FORWARD.start + 1)]
    starts += [(RULES.field(name).start, RULES.field(name).start + 2) for name in TURNED_FIELDS]
    for x, z in starts:
        other[:, x] = cosine * observations[:, x] - sine * observations[:, z]
        other[:, z] = sine * observations[:, x] + cosine * observations[:, z]
    return other


def test_moves_are_unit_vectors_in_mirrored_pairs_and_standing_still() -> None:
    moves = moves_in_heading_frame()
    assert moves.dtype == np.float32
    lengths = np.linalg.norm(moves, axis=1)
    np.testing.assert_allclose(lengths[:-1], 1.0, atol=1e-6)
    assert lengths[-1] == 0.0
    known = {(round(float(ahead), 5), round(float(aside), 5)) for ahead, aside in moves}
    assert len(known) == len(moves)
    assert {(ahead, -aside) for ahead, aside in known} == known
    assert (1.0, 0.0) in known


def test_actions_are_moves_in_world_axes_and_jumps(policy: FrozenPolicy) -> None:
    seen = seen_by_seekers()
    scores = policy.scores(seen)
    choices = len(policy.moves)
    scores[:, choices] -= np.median(scores[:, choices])
    actions = policy.act(seen)
    assert actions.shape == (len(seen), 3)
    assert actions.dtype == np.float32
    assert np.abs(actions).max() <= 1.0
    ahead, aside = policy.moves[scores[:, :choices].argmax(axis=1)].T
    x, z = seen[:, FORWARD].T
    np.testing.assert_allclose(actions[:, 0] * x + actions[:, 1] * z, ahead, atol=1e-6)
    np.testing.assert_allclose(actions[:, 1] * x - actions[:, 0] * z, aside, atol=1e-6)
    assert len(np.unique(ahead)) > 1, "it reacts to what it sees"


def test_it_jumps_where_the_score_is_above_zero(policy: FrozenPolicy) -> None:
    seen = seen_by_seekers()
    choices = len(policy.moves)
    jump = policy.scores(seen)[:, choices]
    policy.weights[-1][1][choices] -= np.median(jump)
    above = policy.scores(seen)[:, choices] > 0.0
    assert 0 < above.sum() < len(above)
    assert np.array_equal(policy.act(seen)[:, 2], above)


@pytest.mark.parametrize("degrees", [90.0, 180.0, 33.0, -120.0])
def test_it_sees_and_acts_in_its_heading_frame(policy: FrozenPolicy, degrees: float) -> None:
    """Turn the whole scene, but not the facing it is told: its choice turns with the vectors."""
    policy.weights[0][0][FORWARD] = 0.0
    seen = seen_by_seekers()
    other = turned(seen, degrees)
    one, two = policy.scores(seen)[:, : len(policy.moves)], policy.scores(other)
    np.testing.assert_allclose(one, two[:, : len(policy.moves)], atol=1e-5)
    runner_up, best = np.sort(one, axis=1)[:, -2:].T
    clear = best - runner_up > 1e-4
    assert clear.sum() > 0.9 * len(seen)
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    before, after = policy.act(seen)[clear], policy.act(other)[clear]
    np.testing.assert_allclose(after[:, 0], cosine * before[:, 0] - sine * before[:, 1], atol=1e-6)
    np.testing.assert_allclose(after[:, 1], sine * before[:, 0] + cosine * before[:, 1], atol=1e-6)
    assert np.array_equal(after[:, 2], before[:, 2])


def test_a_turned_scene_without_the_turn_would_be_another(policy: FrozenPolicy) -> None:
    """The test above has teeth: turn only one vector, and the scores are others."""
    policy.weights[0][0][FORWARD] = 0.0
    seen = seen_by_seekers()
    other = seen.copy()
    velocity = RULES.field("velocity").start
    other[:, [velocity, velocity + 2]] = turned(seen, 90.0)[:, [velocity, velocity + 2]]
    assert np.abs(policy.scores(seen) - policy.scores(other)).max() > 1e-4


def test_normalisation_is_of_turned_observations_and_cut_off(policy: FrozenPolicy) -> None:
    seen = seen_by_seekers(16)
    whole = policy.scores(seen)
    policy.mean, policy.scale = policy.mean + 0.5, policy.scale * 0.25
    first_weight, first_bias = policy.weights[0]
    policy.weights[0] = (first_weight * 0.25, first_bias + 0.5 * first_weight.sum(axis=0))
    np.testing.assert_allclose(policy.scores(seen), whole, atol=1e-4)
    policy.scale = np.full_like(policy.scale, 1e-6)
    assert np.abs(policy.scores(seen)).max() < 1e3


def test_untrained_it_has_no_preference(policy: FrozenPolicy) -> None:
    scores = policy.scores(seen_by_seekers())
    choices = len(policy.moves)
    assert np.abs(scores[:, :choices]).max() < 0.5
    jumps = 1.0 / (1.0 + np.exp(-scores[:, choices]))
    assert 0.02 < jumps.mean() < 0.5
    other = FrozenPolicy.untrained(RULES, "seeker", seed=2)
    assert not np.array_equal(other.weights[0][0], policy.weights[0][0])
    again = FrozenPolicy.untrained(RULES, "seeker", seed=1)
    assert all(
        np.array_equal(one, two)
        for own, same in zip(policy.weights, again.weights, strict=True)
        for one, two in zip(own, same, strict=True)
    )
