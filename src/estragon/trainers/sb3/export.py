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

from estragon.onnx.metadata import about_policy
from estragon.onnx.torch_export import (
    IR_VERSION,
    OPSET,
    OUTPUT,
    STATE_IN,
    STATE_OUT,
    export_policy,
    recurrent_step,
    session_of,
    state_size,
)
from estragon.support.errors import UserError
from estragon.support.files import write_whole
from estragon.trainers.sb3.model_file import Arrays
from estragon.trainers.spaces import (
    action_layout,
    as_ports,
    check_outputs,
    checked_observations,
    game_shape,
    is_image,
)


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
        data = export_policy(
            policy, inputs, names, opset=opset, ir_version=ir_version, about=policy.about()
        )
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
        self._actions, self._steps = action_layout(actions), int(model.num_timesteps)
        space = model.observation_space
        self.is_dict = isinstance(space, spaces.Dict)
        self.parts: dict[str, Any] = dict(space.spaces) if self.is_dict else {"obs": space}  # type: ignore[attr-defined]
        """The observation space of each input."""
        for key, part in self.parts.items():
            if not isinstance(part, spaces.Box | spaces.Discrete):
                raise UserError(f"games send numbers, images and choices, not '{key}' as {part}")
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
        return (batch,) if lstm is None else (batch, state_size(lstm))

    def about(self) -> dict[str, str]:
        """The metadata of the file."""
        scaled = [key for index, key in enumerate(self.parts) if hasattr(self, f"mean_{index}")]
        return about_policy(
            algorithm=self._algo,
            trainer="stable-baselines3",
            observations={"obs": {"space": "box", "size": [sum(self._sizes)]}}
            if self._as_array
            else as_ports(self.parts, self.input_shapes),
            actions=self._actions,
            normalization=f"in the graph: {', '.join(scaled)}" if scaled else "none",
            memory=sum(self.state_shape(1)[1:]),
            training_steps=self._steps,
            packages=("stable-baselines3", "torch"),
        )

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
            features, state = recurrent_step(policy.lstm_actor, features, state)
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


def compare(data: bytes, policy: ExportedPolicy, model: Any, normalization: Arrays | None) -> None:
    """Run the file and the model on random observations; UserError if their actions differ."""
    session = session_of(data)
    layout = [(each["action_type"], each["size"]) for each in action_layout(model.action_space)]
    shapes = [game_shape(part) for part in policy.parts.values()]
    random = np.random.default_rng(0)
    for begins, drawn in checked_observations(policy.parts, shapes, random):
        batch = len(drawn[0])
        if begins:
            state = np.zeros(policy.state_shape(batch), np.float32)
            lstm_states, episode_starts = None, np.ones(batch, bool)
        sent, seen = _sent_and_seen(policy, drawn, normalization)
        feed = dict(zip(policy.input_names, sent, strict=True)) | {STATE_IN: state}
        output, state = session.run([OUTPUT, STATE_OUT], feed)
        actions, lstm_states = model.predict(seen, lstm_states, episode_starts, deterministic=True)
        episode_starts = np.zeros(batch, bool)
        check_outputs(output, actions.reshape(batch, -1), layout)


def _sent_and_seen(
    policy: ExportedPolicy, sent: list[np.ndarray], normalization: Arrays | None
) -> tuple[list[np.ndarray], Any]:
    """Observations as a game sends them, and as the model sees them."""
    batch = len(sent[0])
    seen: dict[str, np.ndarray] = {}
    for (key, part), drawn in zip(policy.parts.items(), sent, strict=True):
        values = drawn
        if isinstance(part, spaces.Discrete):
            values = drawn[:, 0].astype(int)
        elif is_image(part):
            values = drawn.transpose(0, 3, 1, 2).astype(np.uint8)
        elif normalization is not None and f"obs/{key}/mean" in normalization:
            mean, std = _mean_and_std(normalization, key)
            limit = normalization["clip"]
            values = np.clip((drawn - mean) / std, -limit, limit).astype(np.float32)
        seen[key] = values
    if policy.input_names != list(policy.parts):
        sent = [np.concatenate([each.reshape(batch, -1) for each in sent], axis=1)]
    return sent, seen if policy.is_dict else seen["obs"]


def _mean_and_std(normalization: Arrays, key: str) -> tuple[np.ndarray, np.ndarray]:
    variance = normalization[f"obs/{key}/var"] + normalization["epsilon"]
    return normalization[f"obs/{key}/mean"], np.sqrt(variance)
