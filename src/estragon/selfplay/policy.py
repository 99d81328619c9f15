"""A policy that learns: the network of `FrozenPolicy` in torch, and how it plays."""

from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from estragon.selfplay.kernels import (
    FEW_ROWS,
    PRIVILEGED,
    PolicyArrays,
    act,
    extract_features,
    sample_actions,
)
from estragon.tag.frozen import CLIP, TURNED_FIELDS, FrozenPolicy
from estragon.tag.rules import ROLES, Role, Rules

Weights = dict[str, torch.Tensor]
USUAL_LAYERS = 3
"""`kernels.act` knows no others."""


class Policy(nn.Module):
    """An actor-critic with one trunk: logits of the moves, the logit of jumping, and a value."""

    mean: torch.Tensor
    scale: torch.Tensor
    moves: torch.Tensor

    def __init__(self, start: FrozenPolicy, rules: Rules) -> None:
        """Copy the weights of `start`."""
        super().__init__()
        self.rules = rules
        self.role: Role = start.role
        self.layers = nn.ModuleList()
        for weight, bias in start.weights:
            layer = nn.Linear(*weight.shape)
            with torch.no_grad():
                layer.weight.copy_(torch.from_numpy(weight.T))
                layer.bias.copy_(torch.from_numpy(bias))
            self.layers.append(layer)
        for name in ("mean", "scale", "moves"):
            self.register_buffer(name, torch.from_numpy(getattr(start, name).copy()))

    @property
    def _parameters_of_layers(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        layers = cast("list[nn.Linear]", list(self.layers))
        return [(layer.weight, layer.bias) for layer in layers]

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Outputs (rows, moves + 2) for world-axes observations (rows, size)."""
        return self.outputs(self.features(observations))

    def features(self, observations: torch.Tensor) -> torch.Tensor:
        """Normalised observations in the heading frame; `kernels.extract_features` in torch."""
        turned = observations.clone()
        if self.rules.has_heading:
            forward = self.rules.field("forward").start
            x, z = observations[:, forward], observations[:, forward + 1]
            for name in TURNED_FIELDS:
                start = self.rules.field(name).start
                own_x, own_z = observations[:, start], observations[:, start + 2]
                turned[:, start] = own_x * x + own_z * z
                turned[:, start + 2] = own_z * x - own_x * z
        return ((turned - self.mean) / self.scale).clamp(-CLIP, CLIP)

    def outputs(self, features: torch.Tensor) -> torch.Tensor:
        """The network itself: (rows, moves + 2) for features (rows, size)."""
        *hidden, last = self._parameters_of_layers
        values = features
        for weight, bias in hidden:
            values = functional.linear(values, weight, bias).relu_()
        return functional.linear(values, *last)

    def arrays(self) -> PolicyArrays:
        """A copy of its parameters for `kernels.act`."""
        found = [_array(self.mean), _array(self.scale), _array(self.moves)]
        for weight, bias in self._parameters_of_layers:
            found += [_array(weight.T), _array(bias)]
        return PolicyArrays(self.rules.has_heading, *found)

    def freeze(self, name: str, trained_steps: int) -> FrozenPolicy:
        """A copy that only plays."""
        return FrozenPolicy(
            self.role,
            self.rules,
            mean=_array(self.mean),
            scale=_array(self.scale),
            moves=_array(self.moves),
            weights=[
                (_array(weight.T), _array(bias)) for weight, bias in self._parameters_of_layers
            ],
            name=name,
            trained_steps=trained_steps,
        )

    def copy_weights(self) -> Weights:
        """A copy of its state on the CPU."""
        return {name: value.detach().cpu().clone() for name, value in self.state_dict().items()}


class Critic(nn.Module):
    """Corrects the value of a policy by what only a critic knows: where the opponent is.

    It helps to learn and is not part of the policy. It starts without any correction, so a policy
    that was trained before can be trained further.
    """

    def __init__(self, size: int, hidden: int, seed: int) -> None:
        """Start with random weights; `size` is that of the policy's features."""
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.layers = nn.ModuleList()
        for rows, columns in pairwise([size + PRIVILEGED, hidden, hidden, 1]):
            layer = nn.Linear(rows, columns)
            nn.init.orthogonal_(layer.weight, 2.0**0.5, generator=random)
            nn.init.zeros_(layer.bias)
            self.layers.append(layer)
        nn.init.zeros_(cast("nn.Linear", self.layers[-1]).weight)

    def forward(self, features: torch.Tensor, privileged: torch.Tensor) -> torch.Tensor:
        """Corrections (...) for features (..., size) and privileged ones (..., PRIVILEGED)."""
        values = torch.cat([features, privileged], dim=-1)
        for layer in self.layers[:-1]:
            values = layer(values).relu_()
        result: torch.Tensor = self.layers[-1](values).squeeze(-1)
        return result


def blank_policies(rules: Rules, hidden: int) -> list[Policy]:
    """A seeker and a hider to load weights into."""
    return [Policy(FrozenPolicy.untrained(rules, role, 0, hidden), rules) for role in ROLES]


def _array(tensor: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy()).copy()


class Sample(NamedTuple):
    """Sampled actions, one row per observation."""

    features: np.ndarray
    """(rows, size) float32."""
    values: np.ndarray
    actions: np.ndarray
    """(rows, 2) int64: move and jump."""
    log_probs: np.ndarray
    env_actions: np.ndarray
    """(rows, 3) float32, in world axes."""


class PolicyPlayer:
    """A policy that plays without learning: it samples, or takes the most likely action."""

    name = "policy"

    def __init__(self, policy: Policy, rng: np.random.Generator | None) -> None:
        """Play `policy`; without `rng`, deterministically."""
        self.policy = policy
        self._rng = rng
        usual = len(policy.layers) == USUAL_LAYERS
        self.arrays = policy.arrays() if rng is not None and usual else None

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        return self.sample(observations).env_actions

    @torch.no_grad()
    def sample(self, observations: np.ndarray) -> Sample:
        """Actions for observations (rows, observation size) float32, and how they came about."""
        rows, size = observations.shape
        seen = observations.reshape(rows, 1, size)
        agents = np.zeros(rows, dtype=np.int64)
        features = np.empty((rows, size), dtype=np.float32)
        values, log_probs = np.empty((2, rows), dtype=np.float32)
        actions = np.empty((rows, 2), dtype=np.int64)
        env_actions = np.empty((rows, 1, 3), dtype=np.float32)
        if self._rng is None:
            uniforms = np.full((rows, 2), 0.5, dtype=np.float32)
        else:
            uniforms = self._rng.random((rows, 2), dtype=np.float32)
        if self.arrays is not None and (rows <= FEW_ROWS or not self.arrays.has_heading):
            filled = features, values, actions, log_probs, env_actions
            act(seen, agents, self.arrays, uniforms, *filled)
        else:
            policy = self.policy
            extract_features(seen, agents, policy.mean.numpy(), policy.scale.numpy(), features)
            outputs = policy.outputs(torch.from_numpy(features)).numpy()
            values[:] = outputs[:, -1]
            moves = policy.moves.numpy()
            if self._rng is None:
                outputs = _most_likely(outputs, len(moves))
            drawn = actions, log_probs, env_actions
            sample_actions(outputs, uniforms, moves, seen, agents, *drawn)
        return Sample(features, values, actions, log_probs, env_actions[:, 0])


def _most_likely(outputs: np.ndarray, moves: int) -> np.ndarray:
    """Outputs that leave nothing to chance."""
    sharp = np.full_like(outputs, -1e4)
    sharp[np.arange(len(outputs)), outputs[:, :moves].argmax(axis=1)] = 0.0
    sharp[:, moves] = np.where(outputs[:, moves] > 0.0, 100.0, -100.0)
    return sharp
