"""The learning network and the one that only plays are the same network."""

import numpy as np
import torch

from estragon.selfplay.policy import Policy, PolicyPlayer
from tests.selfplay.staging import beginners, observations, short_rules

RULES = short_rules()


def seen() -> np.ndarray:
    both = observations(RULES, count=256)
    return np.ascontiguousarray(both[:, 0])


def test_a_policy_begins_as_its_start_and_freezes_to_it() -> None:
    start = beginners(RULES)["hider"]
    start.mean, start.scale = start.mean + 0.5, start.scale * 2.0
    policy = Policy(start, RULES)
    frozen = policy.freeze("somebody", 77)
    assert (frozen.role, frozen.name, frozen.trained_steps) == ("hider", "somebody", 77)
    for one, other in zip(frozen.weights, start.weights, strict=True):
        assert all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))
    with torch.no_grad():
        scores = policy(torch.from_numpy(seen())).numpy()
    np.testing.assert_allclose(scores, frozen.scores(seen()), atol=1e-4)


def test_a_frozen_policy_does_not_change_with_its_source() -> None:
    policy = Policy(beginners(RULES)["seeker"], RULES)
    frozen = policy.freeze("then", 0)
    before = frozen.scores(seen())
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(1.0)
        policy.mean += 1.0
    assert np.array_equal(frozen.scores(seen()), before)


def test_a_player_without_chance_plays_the_best_move() -> None:
    frozen = beginners(RULES)["seeker"]
    choices = len(frozen.moves)
    frozen.weights[-1][1][choices] -= np.median(frozen.scores(seen())[:, choices])
    player = PolicyPlayer(Policy(frozen, RULES), None)
    scores = frozen.scores(seen())
    runner_up, best = np.sort(scores[:, :choices], axis=1)[:, -2:].T
    clear = (best - runner_up > 1e-5) & (np.abs(scores[:, choices]) > 1e-5)
    assert clear.mean() > 0.9
    actions = player.act(seen())
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions[clear], frozen.act(seen())[clear], atol=1e-6)
    assert 0.0 < actions[:, 2].mean() < 1.0


def test_a_player_with_chance_plays_as_its_generator_says() -> None:
    policy = Policy(beginners(RULES)["seeker"], RULES)
    one, same, other = (
        PolicyPlayer(policy, np.random.default_rng(seed)).act(seen()) for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert len(np.unique(one.round(4), axis=0)) > 100
