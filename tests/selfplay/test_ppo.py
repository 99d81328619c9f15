"""The loss, its hand-derived gradient, the normalisation and the learner."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from estragon.selfplay.config import PPOConfig
from estragon.selfplay.kernels import PRIVILEGED
from estragon.selfplay.ppo import (
    CLIP_FRACTION,
    ENTROPY,
    KL,
    LOSS_TERMS,
    POLICY_LOSS,
    SMALLEST_VARIANCE,
    VALUE_LOSS,
    Batch,
    Learner,
    Losses,
    Minibatch,
    Moments,
    Normaliser,
    ppo_loss,
    ppo_loss_gradient,
)
from tests.selfplay.staging import CONFIG, CPU, beginners, differences, short_rules, through_a_file

CHOICES = 7
LOSS_CONFIG = replace(PPOConfig(), clip=0.2, entropy=0.01, value_coef=0.5)


class Rows:
    """Rows of scores, and what was done and earned with earlier ones."""

    def __init__(self, seed: int, rows: int = 200, spread: float = 2.0) -> None:
        random = np.random.default_rng(seed)
        self.scores = random.normal(0.0, spread, (rows, CHOICES + 2)).astype(np.float32)
        moves, jumps = random.integers(CHOICES, size=rows), random.integers(2, size=rows)
        self.picks = np.stack([moves, jumps], axis=1)
        self.advantages = random.normal(size=rows).astype(np.float32)
        self.returns = random.normal(size=rows).astype(np.float32)
        self.before = self.log_probs()
        self.before += random.normal(0.0, 0.5, rows).astype(np.float32)

    def log_probs(self) -> np.ndarray:
        """Of what was picked, by the scores as they are."""
        scores = torch.from_numpy(self.scores).double()
        moves = torch.log_softmax(scores[:, :CHOICES], dim=1).numpy()
        jump = scores[:, CHOICES].numpy()
        jumps = -np.logaddexp(0.0, np.where(self.picks[:, 1] > 0, -jump, jump))
        chances = moves[np.arange(len(jump)), self.picks[:, 0]] + jumps
        return np.asarray(chances, dtype=np.float32)

    def by_formula(self, config: PPOConfig) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and measures from torch, in double precision."""
        scores = torch.from_numpy(self.scores).double().requires_grad_()
        columns = (self.before, self.advantages, self.returns)
        tensors = (torch.from_numpy(column).double() for column in columns)
        minibatch = Minibatch(torch.from_numpy(self.picks), *tensors)
        loss, measures = ppo_loss(scores, minibatch, config)
        (gradient,) = torch.autograd.grad(loss, scores)
        return gradient.numpy(), measures.numpy()

    def by_pass(self, config: PPOConfig) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and measures from the kernel."""
        gradient = np.full(self.scores.shape, np.nan, dtype=np.float32)
        measures = np.full(len(LOSS_TERMS), np.nan)
        ppo_loss_gradient(
            self.scores,
            self.picks,
            self.before,
            self.advantages,
            self.returns,
            config.clip,
            config.value_coef,
            config.entropy,
            gradient,
            measures,
        )
        return gradient, measures

    def agree(self, config: PPOConfig = LOSS_CONFIG) -> None:
        gradient, measures = self.by_pass(config)
        expected, expected_measures = self.by_formula(config)
        smallest = 1e-6 / len(self.scores)
        np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=smallest)
        np.testing.assert_allclose(measures, expected_measures, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_that_of_the_formula(seed: int) -> None:
    Rows(seed).agree()


@pytest.mark.parametrize("seed", range(3))
def test_with_extreme_scores(seed: int) -> None:
    rows = Rows(seed)
    rows.scores[::3, :-1] = np.sign(rows.scores[::3, :-1]) * 30.0
    rows.scores[1::3, CHOICES] *= 15.0
    rows.before = rows.log_probs() + np.float32(0.1)
    assert np.abs(rows.scores[:, CHOICES]).max() >= 30.0
    rows.agree()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("shift", [3.0, -3.0])
def test_with_ratios_far_outside_the_clip(sign: float, shift: float) -> None:
    """On both split, for good and bad advantages: held back on two of the four, not on the others.

    A chance that has become 20 times larger is held back if that was good; if it was bad, the
    gradient brings it back.
    """
    rows = Rows(7)
    rows.before = rows.log_probs() - np.float32(shift)
    rows.advantages = np.float32(sign) * np.abs(rows.advantages)
    rows.agree()
    config = replace(LOSS_CONFIG, entropy=0.0)
    gradient, measures = rows.by_pass(config)
    assert measures[CLIP_FRACTION] == pytest.approx(1.0)
    held = sign * shift > 0.0
    assert bool((gradient[:, : CHOICES + 1] == 0.0).all()) == held


@pytest.mark.parametrize("jumps", [0, 1])
def test_jumps_both_ways(jumps: int) -> None:
    rows = Rows(8)
    rows.picks[:, 1] = jumps
    rows.before = rows.log_probs()
    rows.agree()
    gradient, _ = rows.by_pass(replace(LOSS_CONFIG, entropy=0.0))
    pushed = np.sign(gradient[:, CHOICES]) * np.sign(rows.advantages)
    assert (pushed == (-1.0 if jumps else 1.0)).all()


def test_with_float32_on_another_device_it_is_the_same_to_its_precision() -> None:
    rows = Rows(9)
    scores = torch.from_numpy(rows.scores).requires_grad_()
    columns = (rows.picks, rows.before, rows.advantages, rows.returns)
    loss, measures = ppo_loss(scores, Minibatch(*map(torch.from_numpy, columns)), LOSS_CONFIG)
    loss.backward()  # type: ignore[no-untyped-call]
    gradient, expected = rows.by_pass(LOSS_CONFIG)
    assert scores.grad is not None
    np.testing.assert_allclose(scores.grad.numpy(), gradient, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(measures.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_the_measures_are_what_they_are_called() -> None:
    rows = Rows(10)
    _, measures = rows.by_pass(LOSS_CONFIG)
    change = rows.log_probs().astype(np.float64) - rows.before
    ratio = np.exp(change)
    bounded = np.clip(ratio, 0.8, 1.2)
    policy_loss = -np.minimum(ratio * rows.advantages, bounded * rows.advantages).mean()
    assert measures[POLICY_LOSS] == pytest.approx(policy_loss, abs=1e-5)
    error = rows.scores[:, -1].astype(np.float64) - rows.returns
    assert measures[VALUE_LOSS] == pytest.approx((error**2).mean(), rel=1e-5)
    assert measures[KL] == pytest.approx((ratio - 1.0 - change).mean(), rel=1e-4)
    assert measures[CLIP_FRACTION] == pytest.approx((np.abs(ratio - 1.0) > 0.2).mean())
    chances = np.exp(rows.scores[:, :CHOICES].astype(np.float64))
    chances /= chances.sum(axis=1, keepdims=True)
    jump = 1.0 / (1.0 + np.exp(-rows.scores[:, CHOICES].astype(np.float64)))
    chaos = -(chances * np.log(chances)).sum(axis=1)
    chaos -= jump * np.log(jump) + (1.0 - jump) * np.log(1.0 - jump)
    assert measures[ENTROPY] == pytest.approx(chaos.mean(), rel=1e-5)


def test_the_entropy_is_in_the_loss() -> None:
    """Its gradient grows with its weight, and a step along it makes choices more even."""
    rows = Rows(11)
    plain, _ = rows.by_pass(replace(LOSS_CONFIG, entropy=0.0))
    some, before = rows.by_pass(replace(LOSS_CONFIG, entropy=0.1))
    more, _ = rows.by_pass(replace(LOSS_CONFIG, entropy=0.2))
    assert np.abs(some - plain)[:, : CHOICES + 1].max() > 1e-5
    np.testing.assert_allclose(more - plain, 2.0 * (some - plain), atol=1e-8)
    np.testing.assert_array_equal(some[:, -1], plain[:, -1])
    rows.scores -= 10.0 * (some - plain) * len(rows.scores)
    _, after = rows.by_pass(LOSS_CONFIG)
    assert after[ENTROPY] > before[ENTROPY] + 0.01


def test_the_values_weight_is_in_the_loss() -> None:
    rows = Rows(12)
    one, _ = rows.by_pass(replace(LOSS_CONFIG, value_coef=0.5))
    two, _ = rows.by_pass(replace(LOSS_CONFIG, value_coef=1.0))
    np.testing.assert_allclose(two[:, -1], 2.0 * one[:, -1], rtol=1e-6)
    np.testing.assert_array_equal(two[:, :-1], one[:, :-1])
    error = rows.scores[:, -1].astype(np.float64) - rows.returns
    np.testing.assert_allclose(one[:, -1], error / len(error), rtol=1e-5, atol=1e-9)


ROWS, SIZE = 20_000, 5


def seen() -> np.ndarray:
    random = np.random.default_rng(0)
    rows: np.ndarray = random.normal(
        [0.0, 3.0, -8.0, 0.5, 0.0], [1.0, 2.0, 0.1, 1.0, 0.0], (ROWS, SIZE)
    )
    return rows


def merged(batches: list[np.ndarray], calls: int) -> Normaliser:
    normaliser = Normaliser(SIZE)
    moments = [Moments(len(rows), rows.sum(axis=0), (rows**2).sum(axis=0)) for rows in batches]
    for part in np.array_split(np.arange(len(moments)), calls):
        normaliser.add(moments[number] for number in part)
    return normaliser


def test_batches_merge_to_the_mean_and_variance_of_all_rows() -> None:
    rows = seen()
    mean = rows.mean(axis=0)
    uneven = np.split(rows, [1, 10, 500, 501, 9000])
    for normaliser in (merged([rows], 1), merged(uneven, 1), merged(uneven, 6)):
        little = (1.0 + mean**2) / ROWS  # the imagined first row
        assert (np.abs(normaliser.mean - mean) < little).all()
        variance = normaliser.scale.astype(np.float64) ** 2 - SMALLEST_VARIANCE
        assert (np.abs(variance - rows.var(axis=0)) < 1.01 * little + 1e-5).all()
        assert normaliser.mean.dtype == normaliser.scale.dtype == np.float32


def test_with_the_imagined_first_row_it_is_exact() -> None:
    """Which has mean 0 and mean square 1."""
    rows = seen()
    normaliser = merged(np.array_split(rows, 7), 3)
    mean = rows.sum(axis=0) / (ROWS + 1)
    square = ((rows**2).sum(axis=0) + 1.0) / (ROWS + 1)
    np.testing.assert_allclose(normaliser.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(
        normaliser.scale, np.sqrt(square - mean**2 + SMALLEST_VARIANCE), rtol=1e-6
    )


def test_before_anything_is_seen_it_changes_next_to_nothing() -> None:
    normaliser = Normaliser(SIZE)
    assert normaliser.mean.tolist() == [0.0] * SIZE
    np.testing.assert_allclose(normaliser.scale, 1.0, atol=0.01)


def test_what_never_changes_is_not_blown_up() -> None:
    normaliser = merged([np.full((ROWS, SIZE), 4.0)], 1)
    assert (normaliser.scale >= np.sqrt(SMALLEST_VARIANCE) * 0.99).all()
    assert np.isfinite(normaliser.scale).all()


RULES = short_rules()
PPO_SIZE = RULES.observation.size
PPO_ROWS = 512
REWARDED = 3
EASY = replace(CONFIG, epochs=4, minibatch=128, learning_rate=3e-3, target_kl=1e6)
NOTHING_SEEN: list[Moments] = []


def learner_of(config: PPOConfig = EASY) -> Learner:
    return Learner(beginners(RULES)["seeker"], RULES, config, CPU)


def log_probs(learner: Learner, features: np.ndarray) -> torch.Tensor:
    """Of each move: (rows, choices)."""
    with torch.no_grad():
        scores = learner.policy.outputs(torch.from_numpy(features))
    return torch.log_softmax(scores[:, :-2], dim=1)


def values(learner: Learner, features: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        found: np.ndarray = learner.policy.outputs(torch.from_numpy(features))[:, -1].numpy()
    return found


def played(learner: Learner, seed: int) -> Batch:
    """What the policy does on rows of its own, where one move and jumping pay."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(PPO_ROWS, PPO_SIZE)).astype(np.float32)
    with torch.no_grad():
        scores = learner.policy.outputs(torch.from_numpy(features))
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
        np.empty((len(features), 0), dtype=np.float32),
    )


def update(learner: Learner, seed: int, rate: float = 3e-3) -> Losses:
    return learner.update([played(learner, seed)], NOTHING_SEEN, rate, np.random.default_rng(seed))


def test_it_learns_what_pays_and_what_that_is_worth() -> None:
    learner = learner_of()
    rows = np.random.default_rng(99).normal(size=(PPO_ROWS, PPO_SIZE)).astype(np.float32)
    chance_before = float(log_probs(learner, rows)[:, REWARDED].exp().mean())
    losses = [update(learner, seed) for seed in range(15)]
    chances = log_probs(learner, rows).exp().mean(dim=0)
    assert chances[REWARDED] > 2.0 * chance_before
    assert int(chances.argmax()) == REWARDED
    with torch.no_grad():
        jump = torch.sigmoid(learner.policy.outputs(torch.from_numpy(rows))[:, -2]).mean()
    assert float(jump) > 0.5
    assert losses[-1].value_loss < 0.5 * losses[0].value_loss
    assert losses[-1].entropy < losses[0].entropy


def test_what_does_not_pay_is_done_less() -> None:
    learner = learner_of()
    batch = played(learner, 0)
    before = log_probs(learner, batch.features)[:, REWARDED].exp().mean()
    worse = batch._replace(advantages=-1.0 * (batch.actions[:, 0] == REWARDED).astype(np.float32))
    learner.update([worse], NOTHING_SEEN, 3e-3, np.random.default_rng(0))
    assert log_probs(learner, batch.features)[:, REWARDED].exp().mean() < before


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
        assert losses.gradient_steps == EASY.epochs * batches * PPO_ROWS // EASY.minibatch


def test_it_stops_when_it_has_moved_far_enough() -> None:
    learner = learner_of(replace(EASY, target_kl=0.0))
    assert update(learner, 0).gradient_steps == PPO_ROWS // EASY.minibatch, "after one epoch"
    moved = [update(learner_of(replace(EASY, target_kl=limit)), 0) for limit in (1e-3, 1e6)]
    assert moved[0].gradient_steps < moved[1].gradient_steps
    assert moved[0].kl < moved[1].kl


def test_advantages_are_told_as_they_were() -> None:
    learner = learner_of()
    batch = played(learner, 0)
    shifted = batch._replace(advantages=(5.0 + 3.0 * batch.advantages).astype(np.float32))
    losses = learner.update([shifted], NOTHING_SEEN, 3e-3, np.random.default_rng(0))
    assert losses.advantage_mean == pytest.approx(float(shifted.advantages.mean()), rel=1e-5)
    assert losses.advantage_std == pytest.approx(float(shifted.advantages.std(ddof=1)), rel=1e-4)
    perfect = batch._replace(advantages=np.zeros(PPO_ROWS, dtype=np.float32))
    losses = learner.update([perfect], NOTHING_SEEN, 3e-3, np.random.default_rng(0))
    assert losses.explained_variance == pytest.approx(1.0, abs=1e-3)


def test_shifted_and_stretched_advantages_teach_the_same() -> None:
    learners = (
        learner_of(replace(EASY, value_coef=0.0)),
        learner_of(replace(EASY, value_coef=0.0)),
    )
    batch = played(learners[0], 0)
    other = batch._replace(advantages=(7.0 * batch.advantages + 2.0).astype(np.float32))
    for learner, part in zip(learners, (batch, other), strict=True):
        learner.update([part], NOTHING_SEEN, 3e-3, np.random.default_rng(0))
    one, two = (log_probs(learner, batch.features).numpy() for learner in learners)
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
    seen = np.random.default_rng(0).normal(2.0, 3.0, (1000, PPO_SIZE))
    moments = Moments(len(seen), seen.sum(axis=0), (seen**2).sum(axis=0))
    losses = [
        one.update([played(one, 0)], some, 3e-3, np.random.default_rng(0))
        for one, some in ((learner, [moments, moments]), (learner_of(), NOTHING_SEEN))
    ]
    assert losses[0] == losses[1], "what was played was seen with the old one"
    np.testing.assert_array_equal(learner.policy.mean.numpy(), learner.normaliser.mean)
    np.testing.assert_array_equal(learner.policy.scale.numpy(), learner.normaliser.scale)
    np.testing.assert_allclose(learner.normaliser.mean, seen.mean(axis=0), atol=0.01)


def informed(learner: Learner, seed: int) -> Batch:
    """A batch whose returns depend on what only the critic knows."""
    batch = played(learner, seed)
    known = np.random.default_rng(seed + 100).normal(size=(PPO_ROWS, PRIVILEGED))
    returns = known[:, 0].astype(np.float32)
    return batch._replace(privileged=known.astype(np.float32), advantages=returns - batch.values)


def test_the_critic_learns_what_the_policy_cannot_know() -> None:
    learner = learner_of()
    losses = [
        learner.update([informed(learner, seed)], NOTHING_SEEN, 3e-3, np.random.default_rng(seed))
        for seed in range(30)
    ]
    assert losses[0].value_loss > 0.5
    assert losses[-1].value_loss < 0.5 * losses[0].value_loss
    blind = learner_of()
    before = through_a_file(blind.critic.state_dict())
    update(blind, 0)
    assert not differences(blind.critic.state_dict(), before), "nothing to learn from"


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
    moments = [Moments(10, np.arange(PPO_SIZE, dtype=np.float64), np.full(PPO_SIZE, 100.0))]
    learner.update([informed(learner, 0)], moments, 3e-3, np.random.default_rng(0))
    other.restore(everything(learner))
    assert not differences(everything(learner), everything(other))
    for seed in (1, 2):
        for own in (learner, other):
            own.update([played(own, seed)], moments, 2e-3, np.random.default_rng(seed))
    assert not differences(everything(learner), everything(other))
    assert differences(everything(learner), everything(learner_of()))
