"""One role's learner: it learns what pays, stops when it has moved enough, and goes on exactly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from estragon.selfplay.config import PPOConfig
from estragon.selfplay.ppo import Learner, Losses
from estragon.selfplay.rollout import Batch, Moments
from tests.selfplay.staging import CONFIG, CPU, beginners, differences, short_rules, through_a_file

RULES = short_rules()
SIZE = RULES.observation.size
ROWS = 512
REWARDED = 3
EASY = replace(CONFIG, epochs=4, minibatch=128, learning_rate=3e-3, divergence_limit=1e6)
NOTHING_SEEN: list[Moments] = []


def learner_of(config: PPOConfig = EASY) -> Learner:
    return Learner(beginners(RULES)["seeker"], RULES, config, CPU)


def log_chances(learner: Learner, features: np.ndarray) -> torch.Tensor:
    """Of each move: (rows, choices)."""
    with torch.no_grad():
        scores = learner.policy.score(torch.from_numpy(features))
    return torch.log_softmax(scores[:, :-2], dim=1)


def values(learner: Learner, features: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        found: np.ndarray = learner.policy.score(torch.from_numpy(features))[:, -1].numpy()
    return found


def played(learner: Learner, seed: int) -> Batch:
    """What the policy does on rows of its own, where one move and jumping pay."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(ROWS, SIZE)).astype(np.float32)
    with torch.no_grad():
        scores = learner.policy.score(torch.from_numpy(features))
    generator = torch.Generator().manual_seed(seed)
    moves = torch.softmax(scores[:, :-2], dim=1)
    jumps = torch.sigmoid(scores[:, -2:-1])
    picks = torch.cat(
        [
            torch.multinomial(moves, 1, generator=generator),
            torch.bernoulli(jumps, generator=generator).long(),
        ],
        dim=1,
    )
    chances = moves.gather(1, picks[:, :1]) * torch.where(picks[:, 1:] > 0, jumps, 1.0 - jumps)
    earned = (picks[:, 0] == REWARDED).float() + (picks[:, 1] > 0).float()
    guessed = scores[:, -1]
    return Batch(
        features,
        picks.numpy(),
        chances.log().squeeze(1).numpy(),
        (earned - guessed).numpy(),
        guessed.numpy(),
        np.ones(ROWS, dtype=np.float32),
    )


def update(learner: Learner, seed: int, rate: float = 3e-3) -> Losses:
    return learner.update([played(learner, seed)], NOTHING_SEEN, rate, np.random.default_rng(seed))


def test_rows_of_no_weight_teach_the_policy_nothing() -> None:
    config = replace(EASY, value_weight=0.0, entropy=0.0)
    for weight in (0.0, 1.0):
        learner = learner_of(config)
        before = through_a_file(learner.policy.layers.state_dict())
        batch = played(learner, 1)
        batch.weights[...] = weight
        learner.update([batch], NOTHING_SEEN, 3e-3, np.random.default_rng(1))
        changed = bool(differences(before, learner.policy.layers.state_dict()))
        assert changed == (weight > 0.0)


def test_it_learns_what_pays_and_what_that_is_worth() -> None:
    learner = learner_of()
    rows = np.random.default_rng(99).normal(size=(ROWS, SIZE)).astype(np.float32)
    chance_before = float(log_chances(learner, rows)[:, REWARDED].exp().mean())
    losses = [update(learner, seed) for seed in range(15)]
    chances = log_chances(learner, rows).exp().mean(dim=0)
    assert chances[REWARDED] > 2.0 * chance_before
    assert int(chances.argmax()) == REWARDED
    with torch.no_grad():
        jump = torch.sigmoid(learner.policy.score(torch.from_numpy(rows))[:, -2]).mean()
    assert float(jump) > 0.5
    assert losses[-1].value_loss < 0.5 * losses[0].value_loss
    assert losses[-1].entropy < losses[0].entropy


def test_what_does_not_pay_is_done_less() -> None:
    learner = learner_of()
    batch = played(learner, 0)
    before = log_chances(learner, batch.features)[:, REWARDED].exp().mean()
    worse = batch._replace(advantages=-1.0 * (batch.picks[:, 0] == REWARDED).astype(np.float32))
    learner.update([worse], NOTHING_SEEN, 3e-3, np.random.default_rng(0))
    assert log_chances(learner, batch.features)[:, REWARDED].exp().mean() < before


def test_values_come_closer_to_the_returns() -> None:
    learner = learner_of()
    batch = played(learner, 0)
    returns = batch.advantages + batch.values
    before = ((values(learner, batch.features) - returns) ** 2).mean()
    learner.update([batch], NOTHING_SEEN, 3e-3, np.random.default_rng(0))
    assert ((values(learner, batch.features) - returns) ** 2).mean() < 0.9 * before


def test_every_epoch_goes_through_all_rows() -> None:
    for batches in (1, 2):
        learner = learner_of()
        parts = [played(learner, seed) for seed in range(batches)]
        losses = learner.update(parts, NOTHING_SEEN, 3e-3, np.random.default_rng(0))
        assert losses.gradient_steps == EASY.epochs * batches * ROWS // EASY.minibatch


def test_it_stops_when_it_has_moved_far_enough() -> None:
    learner = learner_of(replace(EASY, divergence_limit=0.0))
    assert update(learner, 0).gradient_steps == ROWS // EASY.minibatch, "after one epoch"
    moved = [update(learner_of(replace(EASY, divergence_limit=limit)), 0) for limit in (1e-3, 1e6)]
    assert moved[0].gradient_steps < moved[1].gradient_steps
    assert moved[0].kl < moved[1].kl


def test_advantages_are_told_as_they_were() -> None:
    learner = learner_of()
    batch = played(learner, 0)
    shifted = batch._replace(advantages=(5.0 + 3.0 * batch.advantages).astype(np.float32))
    losses = learner.update([shifted], NOTHING_SEEN, 3e-3, np.random.default_rng(0))
    assert losses.advantage_mean == pytest.approx(float(shifted.advantages.mean()), rel=1e-5)
    assert losses.advantage_std == pytest.approx(float(shifted.advantages.std(ddof=1)), rel=1e-4)
    perfect = batch._replace(advantages=np.zeros(ROWS, dtype=np.float32))
    losses = learner.update([perfect], NOTHING_SEEN, 3e-3, np.random.default_rng(0))
    assert losses.explained_variance == pytest.approx(1.0, abs=1e-3)


def test_shifted_and_stretched_advantages_teach_the_same() -> None:
    learners = (
        learner_of(replace(EASY, value_weight=0.0)),
        learner_of(replace(EASY, value_weight=0.0)),
    )
    batch = played(learners[0], 0)
    other = batch._replace(advantages=(7.0 * batch.advantages + 2.0).astype(np.float32))
    for learner, part in zip(learners, (batch, other), strict=True):
        learner.update([part], NOTHING_SEEN, 3e-3, np.random.default_rng(0))
    one, two = (log_chances(learner, batch.features).numpy() for learner in learners)
    np.testing.assert_allclose(one, two, atol=1e-3)


def test_the_learning_rate_is_the_one_given() -> None:
    still, moving = learner_of(), learner_of()
    before = through_a_file(still.policy.layers.state_dict())
    update(still, 0, rate=0.0)
    update(moving, 0)
    assert not differences(still.policy.layers.state_dict(), before)
    assert differences(moving.policy.layers.state_dict(), before)


def test_the_normalisation_is_renewed_for_the_next_play() -> None:
    learner = learner_of()
    seen = np.random.default_rng(0).normal(2.0, 3.0, (1000, SIZE))
    moments = Moments(len(seen), seen.sum(axis=0), (seen**2).sum(axis=0))
    losses = [
        one.update([played(one, 0)], some, 3e-3, np.random.default_rng(0))
        for one, some in ((learner, [moments, moments]), (learner_of(), NOTHING_SEEN))
    ]
    assert losses[0] == losses[1], "what was played was seen with the old one"
    np.testing.assert_array_equal(learner.policy.mean.numpy(), learner.normaliser.mean)
    np.testing.assert_array_equal(learner.policy.scale.numpy(), learner.normaliser.scale)
    np.testing.assert_allclose(learner.normaliser.mean, seen.mean(axis=0), atol=0.01)


def everything(learner: Learner) -> dict[str, Any]:
    return through_a_file(learner.save())


def test_the_same_generator_gives_the_same_bits() -> None:
    learners = [learner_of() for _ in range(3)]
    batch = played(learners[0], 0)
    for learner, seed in zip(learners, (1, 1, 2), strict=True):
        learner.update([batch], NOTHING_SEEN, 3e-3, np.random.default_rng(seed))
    one, same, other = map(everything, learners)
    assert not differences(one, same)
    assert differences(one, other)


def test_a_saved_learner_goes_on_to_the_same_bits() -> None:
    learner, other = learner_of(), learner_of()
    moments = [Moments(10, np.arange(SIZE, dtype=np.float64), np.full(SIZE, 100.0))]
    learner.update([played(learner, 0)], moments, 3e-3, np.random.default_rng(0))
    other.restore(everything(learner))
    assert not differences(everything(learner), everything(other))
    for seed in (1, 2):
        for own in (learner, other):
            own.update([played(own, seed)], moments, 2e-3, np.random.default_rng(seed))
    assert not differences(everything(learner), everything(other))
    assert differences(everything(learner), everything(learner_of()))
