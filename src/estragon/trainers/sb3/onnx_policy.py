"""The part of a model that acts, as one network: observations and a state in, actions out.

The outputs are what games of Godot RL Agents expect: the logits (or values) of discrete choices, or
the numbers of continuous actions, not clipped. What scales observations and turns images is inside.
"""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import nn

from estragon.support.errors import UserError
from estragon.trainers.spaces import is_image


class OnnxPolicy(nn.Module):
    """What is exported."""

    def __init__(
        self,
        model: BaseAlgorithm,
        algo: str,
        scales: dict[str, np.ndarray] | None,
        *,
        as_array: bool = False,
    ) -> None:
        """Take the policy of a model.

        Args:
            model: whose policy it is.
            algo: the algorithm's name.
            scales: of its observations, if it was trained with any.
            as_array: take all observations as one input, side by side.
        """
        super().__init__()
        _check_actions(model.action_space)
        self.policy: Any = model.policy
        self.parts = parts_of(model.observation_space)
        self.is_dict = isinstance(model.observation_space, spaces.Dict)
        self._algo, self._as_array = algo, as_array
        self._clip = 0.0
        for index, key in enumerate(self.parts):
            if scales is not None and f"obs/{key}/mean" in scales:
                spread = np.sqrt(scales[f"obs/{key}/var"] + scales["epsilon"])
                self.register_buffer(f"mean_{index}", _tensor(scales[f"obs/{key}/mean"]))
                self.register_buffer(f"spread_{index}", _tensor(spread))
                self._clip = float(scales["clip"])

    @property
    def input_names(self) -> list[str]:
        """Of the observations."""
        return ["obs"] if self._as_array else list(self.parts)

    @property
    def state_size(self) -> int:
        """Numbers of a memory; 0 if it has none, and passes on what it is given."""
        memory = getattr(self.policy, "lstm_actor", None)
        return 2 * memory.num_layers * memory.hidden_size if memory is not None else 0

    def input_shapes(self) -> list[tuple[int, ...]]:
        """Of one agent's observations, as a game sends them."""
        shapes = [sent_shape(part) for part in self.parts.values()]
        return [(sum(int(np.prod(shape)) for shape in shapes),)] if self._as_array else shapes

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Observations, then the state; (batch, actions) and the next state."""
        *seen, state = inputs
        given = self._cut(seen[0]) if self._as_array else seen
        prepared = {
            key: self._prepare(index, part, value)
            for index, ((key, part), value) in enumerate(
                zip(self.parts.items(), given, strict=True)
            )
        }
        observation = prepared if self.is_dict else next(iter(prepared.values()))
        if self._algo == "dqn":
            net = self.policy.q_net
            features = net.extract_features(observation, net.features_extractor)
            return net.q_net(features), state
        if self._algo in ("sac", "td3", "ddpg"):
            actor = self.policy.actor
            features = actor.extract_features(observation, actor.features_extractor)
            if self._algo == "sac":
                return torch.tanh(actor.mu(actor.latent_pi(features))), state
            return actor.mu(features), state
        policy = self.policy
        extractor = getattr(policy, "pi_features_extractor", policy.features_extractor)
        features = policy.extract_features(observation, extractor)
        if isinstance(features, tuple):
            features = features[0]
        if self._algo == "recurrent_ppo":
            features, state = _remember(policy.lstm_actor, features, state)
        return policy.action_net(policy.mlp_extractor.forward_actor(features)), state

    def _cut(self, row: torch.Tensor) -> list[torch.Tensor]:
        found, place = [], 0
        for part in self.parts.values():
            shape = sent_shape(part)
            size = int(np.prod(shape))
            found.append(row[:, place : place + size].reshape(-1, *shape))
            place += size
        return found

    def _prepare(self, index: int, part: spaces.Space[Any], value: torch.Tensor) -> torch.Tensor:
        if isinstance(part, spaces.Discrete):
            return value[:, 0]
        if is_image(part):
            return value.permute(0, 3, 1, 2)
        if hasattr(self, f"mean_{index}"):
            scaled = (value - getattr(self, f"mean_{index}")) / getattr(self, f"spread_{index}")
            return torch.clamp(scaled, -self._clip, self._clip)
        return value


def parts_of(space: spaces.Space[Any]) -> dict[str, spaces.Space[Any]]:
    """By the name of the input, what is seen."""
    return dict(space.spaces) if isinstance(space, spaces.Dict) else {"obs": space}


def sent_shape(part: spaces.Space[Any]) -> tuple[int, ...]:
    """A game sends images by rows of pixels; the policy has them by channels."""
    if isinstance(part, spaces.Discrete):
        return (1,)
    shape = tuple(part.shape or ())
    return (*shape[1:], shape[0]) if is_image(part) else shape


def _remember(
    memory: nn.LSTM, features: torch.Tensor, state: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step of an LSTM, in plain products; a state is hidden, then cell, layer by layer."""
    size, layers = memory.hidden_size, memory.num_layers
    hidden, cells = [], []
    for layer in range(layers):
        before = state[:, layer * size : (layer + 1) * size]
        cell = state[:, (layers + layer) * size : (layers + layer + 1) * size]
        gates = nn.functional.linear(
            features, getattr(memory, f"weight_ih_l{layer}"), getattr(memory, f"bias_ih_l{layer}")
        ) + nn.functional.linear(
            before, getattr(memory, f"weight_hh_l{layer}"), getattr(memory, f"bias_hh_l{layer}")
        )
        take, forget, new, give = (gates[:, part * size : (part + 1) * size] for part in range(4))
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(take) * torch.tanh(new)
        features = torch.sigmoid(give) * torch.tanh(cell)
        hidden.append(features)
        cells.append(cell)
    return features, torch.cat([*hidden, *cells], dim=1)


def _check_actions(does: spaces.Space[Any]) -> None:
    if isinstance(does, spaces.Box) and ((does.low != -1.0).any() or (does.high != 1.0).any()):
        raise UserError(f"games take actions from -1 to 1, the model gives {does}")


def _tensor(values: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(values, dtype=torch.float32)
