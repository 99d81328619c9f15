"""Proximal policy optimisation of one role: advantages, loss, gradient steps.

The gradient of the loss is derived by hand and computed in one pass over the rows, several times
faster than autograd's chain of small operations; a test compares it with `ppo_loss`, the formula.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from estragon.selfplay.config import PPOConfig
from estragon.selfplay.kernels import transform_rows
from estragon.selfplay.policy import Critic, Policy
from estragon.tag.compile import kernel
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import Rules

LOSS_TERMS = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")
POLICY_LOSS, VALUE_LOSS, ENTROPY, KL, CLIP_FRACTION = range(5)
SMALLEST_VARIANCE = 1e-2
"""Added to every variance, so that features that hardly ever change are not blown up."""
IDENTITY = np.zeros(1, dtype=np.uint8)
WARM_START_COUNT = 1e6
"""How many observations count as seen by a policy that was trained before."""


class Batch(NamedTuple):
    """The rollout of one role, one row per decision of a learning agent."""

    features: np.ndarray
    """(rows, observation size) float32."""
    actions: np.ndarray
    """(rows, 2) int64: move and jump."""
    log_probs: np.ndarray
    advantages: np.ndarray
    values: np.ndarray
    privileged: np.ndarray
    """(rows, PRIVILEGED) float32, what only a critic sees; (rows, 0) without one."""


class Moments(NamedTuple):
    """Sums over observations in the heading frame, for the normalisation."""

    rows: int
    sums: np.ndarray
    squares: np.ndarray


@kernel
def compute_gae(
    rewards: np.ndarray,
    values: np.ndarray,
    ended: np.ndarray,
    swapped: np.ndarray,
    gamma: float,
    gae_lambda: float,
    advantages: np.ndarray,
) -> None:
    """Generalised advantage estimation for both roles at once.

    An agent whose role changes continues with the values of its new role: its return is what it
    earns in both. Nothing flows across the end of an episode.

    Args:
        rewards: (2, steps, arenas) float32, by the role that acted.
        values: (2, steps + 1, arenas) float32.
        ended: (steps, arenas) bool: the episode ended with this step.
        swapped: (steps, arenas) bool: the roles changed hands with this step.
        gamma, gae_lambda: the discount, and lambda of the estimator.
        advantages: (2, steps, arenas) float32 to fill.
    """
    steps, arenas = ended.shape
    for a in range(arenas):
        following = np.zeros(2)
        for t in range(steps - 1, -1, -1):
            current = np.zeros(2)
            for role in range(2):
                advantage = rewards[role, t, a] - values[role, t, a]
                if not ended[t, a]:
                    next_role = 1 - role if swapped[t, a] else role
                    advantage += gamma * values[next_role, t + 1, a]
                    advantage += gamma * gae_lambda * following[next_role]
                current[role] = advantage
                advantages[role, t, a] = advantage
            following = current


class Normaliser:
    """Mean and variance over everything seen, merged batch by batch in float64."""

    def __init__(self, size: int) -> None:
        """Start with mean 0 and variance 1, as if seen once."""
        self.count = 1.0
        self.sums = np.zeros(size)
        self.squares = np.ones(size)

    def warm_start(self, mean: np.ndarray, scale: np.ndarray) -> None:
        """Continue from this mean and scale, as if much had been seen."""
        self.count = WARM_START_COUNT
        self.sums = mean.astype(np.float64) * WARM_START_COUNT
        variance = np.maximum(scale.astype(np.float64) ** 2 - SMALLEST_VARIANCE, 0.0)
        self.squares = (variance + mean.astype(np.float64) ** 2) * WARM_START_COUNT

    def add(self, batches: Iterable[Moments]) -> None:
        """Count what was seen in these batches."""
        for batch in batches:
            self.count += batch.rows
            self.sums += batch.sums
            self.squares += batch.squares

    @property
    def mean(self) -> np.ndarray:
        """(size,) float32."""
        mean: np.ndarray = (self.sums / self.count).astype(np.float32)
        return mean

    @property
    def scale(self) -> np.ndarray:
        """(size,) float32, above 0."""
        variance = self.squares / self.count - (self.sums / self.count) ** 2
        scale: np.ndarray = np.sqrt(np.maximum(variance, 0.0) + SMALLEST_VARIANCE)
        return scale.astype(np.float32)


class Minibatch(NamedTuple):
    """The rows of one gradient step."""

    actions: torch.Tensor
    """(rows, 2) int64: the move and jump that were drawn."""
    old_log_probs: torch.Tensor
    """(rows,) their log-probability when they were drawn."""
    advantages: torch.Tensor
    """(rows,) normalised."""
    returns: torch.Tensor
    """(rows,) targets of the value."""


def ppo_loss(
    outputs: torch.Tensor, minibatch: Minibatch, config: PPOConfig
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss, and its LOSS_TERMS, for outputs (rows, n_moves + 2) of the policy as it is now."""
    actions, old_log_probs, advantages, returns = minibatch
    n_moves = outputs.shape[1] - 2
    log_moves = torch.log_softmax(outputs[:, :n_moves], dim=1)
    jump = outputs[:, n_moves]
    log_jump = -nn.functional.softplus(torch.where(actions[:, 1] > 0, -jump, jump))
    log_ratio = log_moves.gather(1, actions[:, :1]).squeeze(1) + log_jump - old_log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - config.clip, 1.0 + config.clip)
    policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
    value_loss = (outputs[:, -1] - returns).square().mean()
    entropy = -(log_moves.exp() * log_moves).sum(dim=1)
    entropy = (entropy + nn.functional.softplus(jump) - jump * torch.sigmoid(jump)).mean()
    loss = policy_loss + config.value_coef * value_loss - config.entropy * entropy
    kl = (ratio - 1.0 - log_ratio).mean()
    clip_fraction = ((ratio - 1.0).abs() > config.clip).float().mean()
    return loss, torch.stack([policy_loss, value_loss, entropy, kl, clip_fraction]).detach()


@kernel
def ppo_loss_gradient(
    outputs: np.ndarray,
    actions: np.ndarray,
    old_log_probs: np.ndarray,
    advantages: np.ndarray,
    returns: np.ndarray,
    clip: float,
    value_coef: float,
    entropy_weight: float,
    gradient: np.ndarray,
    terms: np.ndarray,
) -> None:
    """The gradient of `ppo_loss` with respect to the outputs, and its LOSS_TERMS.

    Args:
        outputs: (rows, n_moves + 2) float32.
        actions, old_log_probs, advantages, returns: a Minibatch.
        clip, value_coef, entropy_weight: of the config.
        gradient: (rows, n_moves + 2) float32 to fill.
        terms: (5,) float64 to fill.
    """
    rows, n_moves = outputs.shape[0], outputs.shape[1] - 2
    share = 1.0 / rows
    probs = np.empty(n_moves)
    log_probs = np.empty(n_moves)
    terms[:] = 0.0
    for row in range(rows):
        row_outputs, move, jumps = outputs[row], actions[row, 0], actions[row, 1] > 0
        largest = row_outputs[0]
        for k in range(1, n_moves):
            largest = max(largest, row_outputs[k])
        total = 0.0
        for k in range(n_moves):
            log_probs[k] = row_outputs[k] - largest
            probs[k] = math.exp(log_probs[k])
            total += probs[k]
        log_total, entropy = math.log(total), 0.0
        for k in range(n_moves):
            log_probs[k] -= log_total
            probs[k] /= total
            entropy -= probs[k] * log_probs[k]
        jump = row_outputs[n_moves]
        jump_taken = jump if jumps else -jump
        softplus = math.log1p(math.exp(-abs(jump_taken))) + max(-jump_taken, 0.0)
        jump_prob = 1.0 / (1.0 + math.exp(-jump))
        log_ratio = log_probs[move] - softplus - old_log_probs[row]
        ratio = math.exp(log_ratio)
        advantage = advantages[row]
        too_high = advantage > 0.0 and ratio > 1.0 + clip
        too_low = advantage < 0.0 and ratio < 1.0 - clip
        bounded = min(max(ratio, 1.0 - clip), 1.0 + clip)
        push = 0.0 if too_high or too_low else -share * advantage * ratio
        for k in range(n_moves):
            grad = -push * probs[k]
            grad += share * entropy_weight * probs[k] * (log_probs[k] + entropy)
            gradient[row, k] = grad
        gradient[row, move] += push
        grad = push * ((1.0 if jumps else 0.0) - jump_prob)
        grad += share * entropy_weight * jump * jump_prob * (1.0 - jump_prob)
        gradient[row, n_moves] = grad
        error = row_outputs[n_moves + 1] - returns[row]
        gradient[row, n_moves + 1] = 2.0 * share * value_coef * error
        jump_entropy = math.log1p(math.exp(-abs(jump))) + max(jump, 0.0) - jump * jump_prob
        terms[POLICY_LOSS] -= share * min(ratio * advantage, bounded * advantage)
        terms[VALUE_LOSS] += share * error * error
        terms[ENTROPY] += share * (entropy + jump_entropy)
        terms[KL] += share * (ratio - 1.0 - log_ratio)
        terms[CLIP_FRACTION] += share * (abs(ratio - 1.0) > clip)


class Losses(NamedTuple):
    """The statistics of an update; means over its gradient steps."""

    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    clip_fraction: float
    explained_variance: float
    advantage_mean: float
    advantage_std: float
    gradient_steps: int


class Learner:
    """One role's policy, its optimizer and its normalisation."""

    def __init__(
        self,
        start: FrozenPolicy,
        rules: Rules,
        config: PPOConfig,
        device: torch.device,
        seed: int = 0,
    ) -> None:
        """Start with the weights of `start`, and a critic drawn from `seed`."""
        self.policy = Policy(start, rules).to(device)
        self.actor = self.policy if device.type == "cpu" else Policy(start, rules)
        self.normaliser = Normaliser(rules.observation.size)
        self.optimizer = torch.optim.Adam(
            self.policy.parameters(), lr=config.learning_rate, eps=1e-5, fused=True
        )
        self.critic = Critic(rules.observation.size, config.critic_hidden, seed).to(device)
        self.critic_optimizer = torch.optim.Adam(
            self.critic.parameters(), lr=config.learning_rate, eps=1e-5, fused=True
        )
        self._config = config
        self._device = device

    def update(
        self,
        batches: list[Batch],
        moments: list[Moments],
        learning_rate: float,
        rng: np.random.Generator,
        entropy: float | None = None,
        symmetries: np.ndarray = IDENTITY,
    ) -> Losses:
        """Optimise on a rollout, then update the normalisation for the next one.

        A row counts as one of its images under a symmetry of the game, drawn for each row. It was
        played with the same probability as its image would have been by the policy's own image, so
        its log-probability is the right one for the ratio.

        Args:
            batches, moments: of the rollout.
            learning_rate: of Adam.
            rng: draws the minibatches.
            entropy: coefficient; by default the initial one.
            symmetries: (any,) uint8, as `transform_rows` reads them.
        """
        config, device = self._config, self._device
        if entropy is not None:
            config = replace(config, entropy=entropy)
        rollout = Batch(*(np.concatenate(parts) for parts in zip(*batches, strict=True)))
        if len(symmetries) > 1:
            self._transform(rollout, rng.choice(symmetries, len(rollout.features)))
        features, actions, old_log_probs, advantages, values, privileged = (
            torch.from_numpy(column).to(device) for column in rollout
        )
        returns = advantages + values
        std = advantages.std()
        normal = (advantages - advantages.mean()) / (std + 1e-8)
        columns = (actions, old_log_probs, normal, returns)
        for group in self.optimizer.param_groups + self.critic_optimizer.param_groups:
            group["lr"] = learning_rate
        rows = len(features)
        parts = max(1, round(rows / config.minibatch))
        steps: list[np.ndarray] = []
        for _ in range(config.epochs):
            order = torch.from_numpy(rng.permutation(rows)).to(device)
            for chosen in order.chunk(parts):
                minibatch = Minibatch(*(column.index_select(0, chosen) for column in columns))
                seen = features.index_select(0, chosen)
                outputs, terms = self._step(seen, minibatch, config)
                if privileged.shape[1]:
                    errors = minibatch.returns - outputs[:, -1].detach()
                    known = privileged.index_select(0, chosen)
                    terms[VALUE_LOSS] = self._step_critic(seen, known, errors, config)
                steps.append(terms)
            if steps[-1][KL] > config.target_kl:
                break
        unexplained = float((returns - values).var() / (returns.var() + 1e-8))
        self._update_normalisation(moments)
        means = dict(zip(LOSS_TERMS, np.mean(steps, axis=0).tolist(), strict=True))
        return Losses(
            **means,
            explained_variance=1.0 - unexplained,
            advantage_mean=float(advantages.mean()),
            advantage_std=float(std),
            gradient_steps=len(steps),
        )

    def warm_start(self, policy: Policy) -> None:
        """Continue from a policy that was trained before, with its normalisation."""
        self.policy.load_state_dict(policy.state_dict())
        self.normaliser.warm_start(policy.mean.numpy(), policy.scale.numpy())
        self._sync_actor()

    def _transform(self, rollout: Batch, codes: np.ndarray) -> None:
        """Replace every row by its image under a symmetry."""
        mean, scale, moves = (
            array.cpu().numpy()
            for array in (self.policy.mean, self.policy.scale, self.policy.moves)
        )
        images = np.abs(moves[:, None] - moves * np.array([1.0, -1.0])).sum(axis=2).argmin(axis=1)
        rows = rollout.features, rollout.privileged, rollout.actions
        transform_rows(*rows, mean, scale, images, codes)

    def _step_critic(
        self,
        features: torch.Tensor,
        privileged: torch.Tensor,
        errors: torch.Tensor,
        config: PPOConfig,
    ) -> float:
        """One gradient step towards the errors of the policy's values; returns the loss."""
        self.critic_optimizer.zero_grad(set_to_none=True)
        loss = (self.critic(features, privileged) - errors).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(self.critic.parameters(), config.max_grad_norm)
        self.critic_optimizer.step()
        return float(loss.detach())

    def _step(
        self, features: torch.Tensor, minibatch: Minibatch, config: PPOConfig
    ) -> tuple[torch.Tensor, np.ndarray]:
        """One gradient step; returns the outputs before it and its LOSS_TERMS."""
        outputs = self.policy.outputs(features)
        self.optimizer.zero_grad(set_to_none=True)
        if outputs.device.type == "cpu":
            gradient = torch.empty_like(outputs)
            terms = np.empty(len(LOSS_TERMS))
            ppo_loss_gradient(
                outputs.detach().numpy(),
                minibatch.actions.numpy(),
                minibatch.old_log_probs.numpy(),
                minibatch.advantages.numpy(),
                minibatch.returns.numpy(),
                config.clip,
                config.value_coef,
                config.entropy,
                gradient.numpy(),
                terms,
            )
            outputs.backward(gradient)  # type: ignore[no-untyped-call]
        else:
            loss, tensor = ppo_loss(outputs, minibatch, config)
            loss.backward()  # type: ignore[no-untyped-call]
            terms = tensor.cpu().numpy()
        nn.utils.clip_grad_norm_(self.policy.parameters(), config.max_grad_norm)
        self.optimizer.step()
        return outputs, terms

    def _update_normalisation(self, moments: list[Moments]) -> None:
        """Normalise the next rollout by everything seen so far."""
        self.normaliser.add(moments)
        self.policy.mean.copy_(torch.from_numpy(self.normaliser.mean))
        self.policy.scale.copy_(torch.from_numpy(self.normaliser.scale))
        self._sync_actor()

    def _sync_actor(self) -> None:
        """Copy the policy to the CPU where it is learned elsewhere."""
        if self.actor is not self.policy:
            self.actor.load_state_dict(self.policy.state_dict())

    def save(self) -> dict[str, object]:
        """Its state, as tensors and plain data."""
        return {
            "policy": self.policy.state_dict(),
            "optimiser": self.optimizer.state_dict(),
            "critic": self.critic.state_dict(),
            "critic_optimiser": self.critic_optimizer.state_dict(),
            "count": self.normaliser.count,
            "sums": torch.from_numpy(self.normaliser.sums),
            "squares": torch.from_numpy(self.normaliser.squares),
        }

    def restore(self, saved: dict[str, object]) -> None:
        """Load what `save` gave."""
        self.policy.load_state_dict(saved["policy"])  # type: ignore[arg-type]
        self.optimizer.load_state_dict(saved["optimiser"])  # type: ignore[arg-type]
        if "critic" in saved:  # a run from before there were critics has none
            self.critic.load_state_dict(saved["critic"])  # type: ignore[arg-type]
            self.critic_optimizer.load_state_dict(saved["critic_optimiser"])  # type: ignore[arg-type]
        self._sync_actor()
        self.normaliser.count = float(saved["count"])  # type: ignore[arg-type]
        self.normaliser.sums[...] = saved["sums"].numpy()  # type: ignore[attr-defined]
        self.normaliser.squares[...] = saved["squares"].numpy()  # type: ignore[attr-defined]
