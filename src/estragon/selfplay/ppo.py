"""Proximal policy optimisation of one role, on whatever was played."""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from estragon.selfplay.config import PPOConfig
from estragon.selfplay.losses import KL, MEASURES, Minibatch, loss_by_formula, loss_gradient
from estragon.selfplay.normaliser import Normaliser
from estragon.selfplay.policy import Policy
from estragon.selfplay.rollout import Batch, Moments
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import Rules


class Losses(NamedTuple):
    """What an update looked like; means over its gradient steps."""

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
    """One role's policy, its optimiser and its normalisation."""

    def __init__(
        self, start: FrozenPolicy, rules: Rules, config: PPOConfig, device: torch.device
    ) -> None:
        """Begin as `start`."""
        self.policy = Policy(start, rules).to(device)
        self.actor = self.policy if device.type == "cpu" else Policy(start, rules)
        self.normaliser = Normaliser(rules.observation.size)
        self.optimiser = torch.optim.Adam(
            self.policy.parameters(), lr=config.learning_rate, eps=1e-5, fused=True
        )
        self._config = config
        self._device = device

    def update(
        self,
        batches: list[Batch],
        moments: list[Moments],
        learning_rate: float,
        random: np.random.Generator,
    ) -> Losses:
        """Learn from what was played, then renew the normalisation for the next play."""
        config, device = self._config, self._device
        features, picks, before, advantages, values, weights = (
            torch.from_numpy(np.concatenate(parts)).to(device)
            for parts in zip(*batches, strict=True)
        )
        returns = advantages + values
        spread = advantages.std()
        normal = (advantages - advantages.mean()) / (spread + 1e-8) * weights
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        rows = len(features)
        parts = max(1, round(rows / config.minibatch))
        seen: list[np.ndarray] = []
        for _ in range(config.epochs):
            order = torch.from_numpy(random.permutation(rows)).to(device)
            for chosen in order.chunk(parts):
                minibatch = Minibatch(
                    *(column.index_select(0, chosen) for column in (picks, before, normal, returns))
                )
                seen.append(self._step(features.index_select(0, chosen), minibatch))
            if seen[-1][KL] > config.divergence_limit:
                break
        unexplained = float((returns - values).var() / (returns.var() + 1e-8))
        self._renew(moments)
        means = dict(zip(MEASURES, np.mean(seen, axis=0).tolist(), strict=True))
        return Losses(
            **means,
            explained_variance=1.0 - unexplained,
            advantage_mean=float(advantages.mean()),
            advantage_std=float(spread),
            gradient_steps=len(seen),
        )

    def take_up(self, policy: Policy) -> None:
        """Go on from a policy that was trained before, with what it had seen."""
        self.policy.load_state_dict(policy.state_dict())
        self.normaliser.take_up(policy.mean.numpy(), policy.scale.numpy())
        if self.actor is not self.policy:
            self.actor.load_state_dict(self.policy.state_dict())

    def _step(self, features: torch.Tensor, minibatch: Minibatch) -> np.ndarray:
        """One gradient step; returns what the loss was made of."""
        config = self._config
        scores = self.policy.score(features)
        self.optimiser.zero_grad(set_to_none=True)
        if scores.device.type == "cpu":
            gradient = torch.empty_like(scores)
            measures = np.empty(len(MEASURES))
            loss_gradient(
                scores.detach().numpy(),
                minibatch.picks.numpy(),
                minibatch.before.numpy(),
                minibatch.advantages.numpy(),
                minibatch.returns.numpy(),
                config.clip,
                config.value_weight,
                config.entropy,
                gradient.numpy(),
                measures,
            )
            scores.backward(gradient)  # type: ignore[no-untyped-call]
        else:
            loss, tensor = loss_by_formula(scores, minibatch, config)
            loss.backward()  # type: ignore[no-untyped-call]
            measures = tensor.cpu().numpy()
        nn.utils.clip_grad_norm_(self.policy.parameters(), config.gradient_limit)
        self.optimiser.step()
        return measures

    def _renew(self, moments: list[Moments]) -> None:
        """Let the next play use what is known now, weights and normalisation."""
        self.normaliser.add(moments)
        self.policy.mean.copy_(torch.from_numpy(self.normaliser.mean))
        self.policy.scale.copy_(torch.from_numpy(self.normaliser.scale))
        if self.actor is not self.policy:
            self.actor.load_state_dict(self.policy.state_dict())

    def save(self) -> dict[str, object]:
        """Everything, as tensors and plain data."""
        return {
            "policy": self.policy.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "count": self.normaliser.count,
            "sums": torch.from_numpy(self.normaliser.sums),
            "squares": torch.from_numpy(self.normaliser.squares),
        }

    def restore(self, saved: dict[str, object]) -> None:
        """Go on from what `save` gave."""
        self.policy.load_state_dict(saved["policy"])  # type: ignore[arg-type]
        self.optimiser.load_state_dict(saved["optimiser"])  # type: ignore[arg-type]
        if self.actor is not self.policy:
            self.actor.load_state_dict(self.policy.state_dict())
        self.normaliser.count = float(saved["count"])  # type: ignore[arg-type]
        self.normaliser.sums[...] = saved["sums"].numpy()  # type: ignore[attr-defined]
        self.normaliser.squares[...] = saved["squares"].numpy()  # type: ignore[attr-defined]
