"""The fast gradient is that of the formula, for any scores; the formula has all of PPO in it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from estragon.selfplay.config import PPOConfig
from estragon.selfplay.losses import (
    CLIP_FRACTION,
    ENTROPY,
    KL,
    MEASURES,
    POLICY_LOSS,
    VALUE_LOSS,
    Minibatch,
    loss_by_formula,
    loss_gradient,
)

CHOICES = 7
CONFIG = replace(PPOConfig(), clip=0.2, entropy=0.01, value_weight=0.5)


class Rows:
    """Rows of scores, and what was done and earned with earlier ones."""

    def __init__(self, seed: int, rows: int = 200, spread: float = 2.0) -> None:
        random = np.random.default_rng(seed)
        self.scores = random.normal(0.0, spread, (rows, CHOICES + 2)).astype(np.float32)
        moves, jumps = random.integers(CHOICES, size=rows), random.integers(2, size=rows)
        self.picks = np.stack([moves, jumps], axis=1)
        self.advantages = random.normal(size=rows).astype(np.float32)
        self.returns = random.normal(size=rows).astype(np.float32)
        self.before = self.log_chances()
        self.before += random.normal(0.0, 0.5, rows).astype(np.float32)

    def log_chances(self) -> np.ndarray:
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
        loss, measures = loss_by_formula(scores, minibatch, config)
        (gradient,) = torch.autograd.grad(loss, scores)
        return gradient.numpy(), measures.numpy()

    def by_pass(self, config: PPOConfig) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and measures from the kernel."""
        gradient = np.full(self.scores.shape, np.nan, dtype=np.float32)
        measures = np.full(len(MEASURES), np.nan)
        loss_gradient(
            self.scores,
            self.picks,
            self.before,
            self.advantages,
            self.returns,
            config.clip,
            config.value_weight,
            config.entropy,
            gradient,
            measures,
        )
        return gradient, measures

    def agree(self, config: PPOConfig = CONFIG) -> None:
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
    rows.before = rows.log_chances() + np.float32(0.1)
    assert np.abs(rows.scores[:, CHOICES]).max() >= 30.0
    rows.agree()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("shift", [3.0, -3.0])
def test_with_ratios_far_outside_the_clip(sign: float, shift: float) -> None:
    """On both sides, for good and bad advantages: held back on two of the four, not on the others.

    A chance that has become 20 times larger is held back if that was good; if it was bad, the
    gradient brings it back.
    """
    rows = Rows(7)
    rows.before = rows.log_chances() - np.float32(shift)
    rows.advantages = np.float32(sign) * np.abs(rows.advantages)
    rows.agree()
    config = replace(CONFIG, entropy=0.0)
    gradient, measures = rows.by_pass(config)
    assert measures[CLIP_FRACTION] == pytest.approx(1.0)
    held = sign * shift > 0.0
    assert bool((gradient[:, : CHOICES + 1] == 0.0).all()) == held


@pytest.mark.parametrize("jumps", [0, 1])
def test_jumps_both_ways(jumps: int) -> None:
    rows = Rows(8)
    rows.picks[:, 1] = jumps
    rows.before = rows.log_chances()
    rows.agree()
    gradient, _ = rows.by_pass(replace(CONFIG, entropy=0.0))
    pushed = np.sign(gradient[:, CHOICES]) * np.sign(rows.advantages)
    assert (pushed == (-1.0 if jumps else 1.0)).all()


def test_with_float32_on_another_device_it_is_the_same_to_its_precision() -> None:
    rows = Rows(9)
    scores = torch.from_numpy(rows.scores).requires_grad_()
    columns = (rows.picks, rows.before, rows.advantages, rows.returns)
    loss, measures = loss_by_formula(scores, Minibatch(*map(torch.from_numpy, columns)), CONFIG)
    loss.backward()  # type: ignore[no-untyped-call]
    gradient, expected = rows.by_pass(CONFIG)
    assert scores.grad is not None
    np.testing.assert_allclose(scores.grad.numpy(), gradient, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(measures.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_the_measures_are_what_they_are_called() -> None:
    rows = Rows(10)
    _, measures = rows.by_pass(CONFIG)
    change = rows.log_chances().astype(np.float64) - rows.before
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
    plain, _ = rows.by_pass(replace(CONFIG, entropy=0.0))
    some, before = rows.by_pass(replace(CONFIG, entropy=0.1))
    more, _ = rows.by_pass(replace(CONFIG, entropy=0.2))
    assert np.abs(some - plain)[:, : CHOICES + 1].max() > 1e-5
    np.testing.assert_allclose(more - plain, 2.0 * (some - plain), atol=1e-8)
    np.testing.assert_array_equal(some[:, -1], plain[:, -1])
    rows.scores -= 10.0 * (some - plain) * len(rows.scores)
    _, after = rows.by_pass(CONFIG)
    assert after[ENTROPY] > before[ENTROPY] + 0.01


def test_the_values_weight_is_in_the_loss() -> None:
    rows = Rows(12)
    one, _ = rows.by_pass(replace(CONFIG, value_weight=0.5))
    two, _ = rows.by_pass(replace(CONFIG, value_weight=1.0))
    np.testing.assert_allclose(two[:, -1], 2.0 * one[:, -1], rtol=1e-6)
    np.testing.assert_array_equal(two[:, :-1], one[:, :-1])
    error = rows.scores[:, -1].astype(np.float64) - rows.returns
    np.testing.assert_allclose(one[:, -1], error / len(error), rtol=1e-5, atol=1e-9)
