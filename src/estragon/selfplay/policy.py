"""A policy that learns: the network of `FrozenPolicy` in torch."""

from typing import cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from estragon.selfplay.kernels import Numbers
from estragon.tag.frozen import CLIP, TURNED_FIELDS, FrozenPolicy
from estragon.tag.rules import Role, Rules


class Policy(nn.Module):
    """Scores for each move and for jumping, and a value, from one trunk."""

    mean: torch.Tensor
    scale: torch.Tensor
    moves: torch.Tensor

    def __init__(self, start: FrozenPolicy, rules: Rules) -> None:
        """Begin as `start`."""
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
        """Scores (rows, choices + 2) for world-axes observations (rows, size), turns included."""
        return self.score(self.features(observations))

    def features(self, observations: torch.Tensor) -> torch.Tensor:
        """Observations in the heading frame, normalised; `kernels.prepare` does the same."""
        turned = observations.clone()
        if not self.rules.has_heading:
            return self._normalise(turned)
        forward = self.rules.field("forward").start
        x, z = observations[:, forward], observations[:, forward + 1]
        for name in TURNED_FIELDS:
            start = self.rules.field(name).start
            own_x, own_z = observations[:, start], observations[:, start + 2]
            turned[:, start] = own_x * x + own_z * z
            turned[:, start + 2] = own_z * x - own_x * z
        return self._normalise(turned)

    def _normalise(self, turned: torch.Tensor) -> torch.Tensor:
        return ((turned - self.mean) / self.scale).clamp(-CLIP, CLIP)

    def score(self, features: torch.Tensor) -> torch.Tensor:
        """The network itself: (rows, choices + 2) for features (rows, size)."""
        *hidden, last = self._parameters_of_layers
        values = features
        for weight, bias in hidden:
            values = functional.linear(values, weight, bias).relu_()
        return functional.linear(values, *last)

    def numbers(self) -> Numbers:
        """Its numbers as they are now, for `kernels.decide_few`."""
        found = [_array(self.mean), _array(self.scale), _array(self.moves)]
        for weight, bias in self._parameters_of_layers:
            found += [_array(weight.T), _array(bias)]
        return Numbers(self.rules.has_heading, *found)

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


def _array(tensor: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy()).copy()
