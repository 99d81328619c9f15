"""Actors that only play."""

import numpy as np
import pytest

from estragon.live.batcher import PolicyActor, RandomActor
from estragon.live.protocol import ActionRequest, Decision
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import ROLES, Role, load_rules

RULES = load_rules()
SIZE = RULES.observation.size
IS_SEEKER = RULES.field("is_seeker").start


def observations(arenas: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.standard_normal((arenas, 2, SIZE)).astype(np.float32)


def decision(arenas: int, seed: int, seekers: list[int]) -> Decision:
    return Decision(0, None, np.array(seekers, dtype=np.int8), observations(arenas, seed))


def policies() -> dict[Role, FrozenPolicy]:
    return {role: FrozenPolicy.untrained(RULES, role, seed) for seed, role in enumerate(ROLES)}


def test_random_is_the_same_with_the_same_seed() -> None:
    asked = [(1, decision(2, 0, [0, 0])), (2, decision(3, 1, [0, 0, 0]))]
    first, second, other = (RandomActor(seed).decide(asked) for seed in (7, 7, 8))
    assert [actions.shape for actions in first] == [(2, 2, 3), (3, 2, 3)]
    for one, same, different in zip(first, second, other, strict=True):
        np.testing.assert_array_equal(one, same)
        assert (one != different).any()


def test_random_stays_within_what_actions_are() -> None:
    actions = RandomActor(0).draw(10_000)
    assert actions.dtype == np.float32
    assert np.abs(actions).max() <= 1.0
    assert actions[:, :2].min() < -0.99
    assert set(actions[:, 2].tolist()) == {0.0, 1.0}
    assert actions[:, 2].mean() == pytest.approx(0.125, abs=0.02)


def test_who_is_it_plays_the_seeker() -> None:
    trained = policies()
    actor = PolicyActor(trained, RULES, 0)
    asked = [(1, decision(2, 0, [0, 1])), (2, decision(3, 1, [1, 1, 0]))]
    for (_, one), actions in zip(asked, actor.decide(asked), strict=True):
        for arena, seeker in enumerate(one.seekers):
            for agent in (0, 1):
                role: Role = "seeker" if agent == seeker else "hider"
                expected = trained[role].act(one.observations[arena, agent][None])[0]
                np.testing.assert_allclose(actions[arena, agent], expected, atol=1e-6)


def test_in_json_the_observation_says_the_role() -> None:
    trained = policies()
    actor = PolicyActor(trained, RULES, 0)
    rows = observations(3, 5).reshape(6, SIZE)
    rows[:, IS_SEEKER] = [1, 0, 0, 1, 0, 1]
    actions = actor.act([ActionRequest(1, "a", None, row) for row in rows])
    for row, action in zip(rows, actions, strict=True):
        role: Role = "seeker" if row[IS_SEEKER] else "hider"
        np.testing.assert_allclose(action, trained[role].act(row[None])[0], atol=1e-6)


def test_a_role_without_a_policy_plays_at_random() -> None:
    seeker = policies()["seeker"]
    actor = PolicyActor({"seeker": seeker}, RULES, 0)
    assert actor.describe() == "seeker of untrained seeker (0 steps), hider at random"
    asked = [(1, decision(4, 0, [0, 0, 0, 0]))]
    (actions,) = actor.decide(asked)
    np.testing.assert_allclose(actions[:, 0], seeker.act(asked[0][1].observations[:, 0]), atol=1e-6)
    assert len(np.unique(actions[:, 1], axis=0)) == 4
