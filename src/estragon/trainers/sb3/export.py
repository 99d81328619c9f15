"""A policy as an ONNX file for games, written only if it acts like its model.

Its outputs are what games of Godot RL Agents expect: the logits (or values) of discrete choices, or
the numbers of continuous actions, not clipped. Normalization and image layout are in the graph.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import nn

from estragon.onnx.torch_export import (
    CHECKED_BATCHES,
    IR_VERSION,
    OPSET,
    OUTPUT,
    STATE_IN,
    STATE_OUT,
    export_policy,
    session_of,
)
from estragon.support.errors import UserError
from estragon.support.files import write_whole
from estragon.trainers.sb3.model_file import Arrays
from estragon.trainers.spaces import check_outputs, is_image, random_numbers

CHECKED_STEPS = 5


def export(
    model: BaseAlgorithm,
    algo: str,
    path: Path,
    *,
    normalization: Arrays | None = None,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    as_array: bool = False,
    verify: bool = True,
) -> None:
    """Write the policy of a model, if it acts like the model; the arguments are `exported`'s."""
    options: dict[str, Any] = {"opset": opset, "ir_version": ir_version, "as_array": as_array}
    options |= {"normalization": normalization, "verify": verify}
    write_whole(path, exported(model, algo, **options))


def exported(
    model: BaseAlgorithm,
    algo: str,
    *,
    normalization: Arrays | None = None,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    as_array: bool = False,
    verify: bool = True,
) -> bytes:
    """The policy of a model as ONNX, if it acts like the model.

    With `as_array`, all observations are concatenated in one input `obs`; `verify` needs
    onnxruntime.
    """
    device = model.device
    model.policy.to("cpu")
    model.policy.set_training_mode(False)
    try:
        policy = ExportedPolicy(model, algo, normalization, as_array).eval()
        inputs = [torch.zeros(2, *shape) for shape in policy.input_shapes]
        inputs.append(torch.zeros(policy.state_shape(2)))
        names = [*policy.input_names, STATE_IN]
        data = export_policy(policy, inputs, names, opset=opset, ir_version=ir_version)
        if verify:
            compare(data, policy, model, normalization)
    finally:
        model.policy.to(device)
    return data


class ExportedPolicy(nn.Module):
    """The acting part of a model as one network: observations and a state in, actions out."""

    def __init__(
        self, model: BaseAlgorithm, algo: str, normalization: Arrays | None, as_array: bool = False
    ) -> None:
        super().__init__()
        actions = model.action_space
        if isinstance(actions, spaces.Box) and not (
            (actions.low == -1.0).all() and (actions.high == 1.0).all()
        ):
            raise UserError(f"games take actions from -1 to 1, the model has {actions}")
        self.policy: Any = model.policy
        space = model.observation_space
        self.is_dict = isinstance(space, spaces.Dict)
        self.parts: dict[str, Any] = dict(space.spaces) if self.is_dict else {"obs": space}  # type: ignore[attr-defined]
        """The observation space of each input."""
        shapes = [game_shape(part) for part in self.parts.values()]
        self._sizes = [int(np.prod(shape)) for shape in shapes]
        self.input_names = ["obs"] if as_array else list(self.parts)
        self.input_shapes = [(sum(self._sizes),)] if as_array else shapes
        self._algo, self._as_array = algo, as_array
        self._clip = 0.0
        for index, key in enumerate(self.parts):
            if normalization is not None and f"obs/{key}/mean" in normalization:
                mean, std = _mean_and_std(normalization, key)
                self.register_buffer(f"mean_{index}", torch.as_tensor(mean, dtype=torch.float32))
                self.register_buffer(f"std_{index}", torch.as_tensor(std, dtype=torch.float32))
                self._clip = float(normalization["clip"])

    def state_shape(self, batch: int) -> tuple[int, ...]:
        """(batch, state size) of a recurrent policy, else (batch,): a state that is passed on."""
        lstm = getattr(self.policy, "lstm_actor", None)
        return (batch,) if lstm is None else (batch, 2 * lstm.num_layers * lstm.hidden_size)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Observations, then the state; returns (batch, actions) and the next state."""
        *given, state = inputs
        if self._as_array:
            row, ends = given[0], np.cumsum(self._sizes).tolist()
            given = [
                row[:, end - size : end].reshape(-1, *game_shape(part))
                for part, size, end in zip(self.parts.values(), self._sizes, ends, strict=True)
            ]
        prepared = {
            key: self._prepare(index, self.parts[key], value)
            for index, (key, value) in enumerate(zip(self.parts, given, strict=True))
        }
        observation = prepared if self.is_dict else prepared["obs"]
        policy = self.policy
        if self._algo == "dqn":
            net = policy.q_net
            return net.q_net(net.extract_features(observation, net.features_extractor)), state
        if self._algo in ("sac", "td3", "ddpg"):
            actor = policy.actor
            features = actor.extract_features(observation, actor.features_extractor)
            if self._algo == "sac":
                return torch.tanh(actor.mu(actor.latent_pi(features))), state
            return actor.mu(features), state
        extractor = getattr(policy, "pi_features_extractor", policy.features_extractor)
        features = policy.extract_features(observation, extractor)
        if isinstance(features, tuple):
            features = features[0]
        if self._algo == "recurrent_ppo":
            features, state = _lstm_step(policy.lstm_actor, features, state)
        return policy.action_net(policy.mlp_extractor.forward_actor(features)), state

    def _prepare(self, index: int, part: spaces.Space[Any], value: torch.Tensor) -> torch.Tensor:
        if isinstance(part, spaces.Discrete):
            return value[:, 0]
        if is_image(part):
            return value.permute(0, 3, 1, 2)
        if hasattr(self, f"mean_{index}"):
            scaled = (value - getattr(self, f"mean_{index}")) / getattr(self, f"std_{index}")
            return torch.clamp(scaled, -self._clip, self._clip)
        return value


def game_shape(part: spaces.Space[Any]) -> tuple[int, ...]:
    """Shape of an observation as a game sends it: images have their channels last."""
    if isinstance(part, spaces.Discrete):
        return (1,)
    shape = tuple(part.shape or ())
    return (*shape[1:], shape[0]) if is_image(part) else shape


def compare(data: bytes, policy: ExportedPolicy, model: Any, normalization: Arrays | None) -> None:
    """Run the file and the model on random observations; UserError if their actions differ."""
    session = session_of(data)
    random = np.random.default_rng(0)
    match model.action_space:
        case spaces.Box() as box:
            layout = [("continuous", int(box.shape[0]))]
        case space:
            sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec)
            layout = [("discrete", int(size)) for size in sizes]
    for batch in CHECKED_BATCHES:
        state = np.zeros(policy.state_shape(batch), np.float32)
        lstm_states, episode_starts = None, np.ones(batch, bool)
        for _ in range(CHECKED_STEPS):
            sent, seen = _random_observations(policy, batch, random, normalization)
            feed = dict(zip(policy.input_names, sent, strict=True)) | {STATE_IN: state}
            output, state = session.run([OUTPUT, STATE_OUT], feed)
            actions, lstm_states = model.predict(
                seen, lstm_states, episode_starts, deterministic=True
            )
            episode_starts = np.zeros(batch, bool)
            check_outputs(output, actions.reshape(batch, -1), layout)


def _random_observations(
    policy: ExportedPolicy, batch: int, random: np.random.Generator, normalization: Arrays | None
) -> tuple[list[np.ndarray], Any]:
    """Observations as a game sends them, and as the model sees them."""
    sent: list[np.ndarray] = []
    seen: dict[str, np.ndarray] = {}
    for key, part in policy.parts.items():
        drawn = random_numbers(part, (batch, *game_shape(part)), random)
        sent.append(drawn)
        if isinstance(part, spaces.Discrete):
            drawn = drawn[:, 0].astype(int)
        elif is_image(part):
            drawn = drawn.transpose(0, 3, 1, 2).astype(np.uint8)
        elif normalization is not None and f"obs/{key}/mean" in normalization:
            mean, std = _mean_and_std(normalization, key)
            limit = normalization["clip"]
            drawn = np.clip((drawn - mean) / std, -limit, limit).astype(np.float32)
        seen[key] = drawn
    if policy.input_names != list(policy.parts):
        sent = [np.concatenate([each.reshape(batch, -1) for each in sent], axis=1)]
    return sent, seen if policy.is_dict else seen["obs"]


def _mean_and_std(normalization: Arrays, key: str) -> tuple[np.ndarray, np.ndarray]:
    variance = normalization[f"obs/{key}/var"] + normalization["epsilon"]
    return normalization[f"obs/{key}/mean"], np.sqrt(variance)


def _lstm_step(
    lstm: nn.LSTM, features: torch.Tensor, state: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step of an LSTM in plain products; a state is hidden, then cell, layer by layer."""
    size, layers = lstm.hidden_size, lstm.num_layers
    hidden, cells = [], []
    for layer in range(layers):
        before = state[:, layer * size : (layer + 1) * size]
        cell = state[:, (layers + layer) * size : (layers + layer + 1) * size]
        gates = nn.functional.linear(
            features, getattr(lstm, f"weight_ih_l{layer}"), getattr(lstm, f"bias_ih_l{layer}")
        ) + nn.functional.linear(
            before, getattr(lstm, f"weight_hh_l{layer}"), getattr(lstm, f"bias_hh_l{layer}")
        )
        # torch's order: input, forget, cell and output gates
        i, f, g, o = (gates[:, part * size : (part + 1) * size] for part in range(4))
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        features = torch.sigmoid(o) * torch.tanh(cell)
        hidden.append(features)
        cells.append(cell)
    return features, torch.cat([*hidden, *cells], dim=1)
