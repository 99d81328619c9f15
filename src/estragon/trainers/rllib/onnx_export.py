"""Policies as ONNX files for games; a file is written only if it acts as its policy does.

The outputs are what games with the Godot RL Agents addon expect, in the order of the game's
actions: logits (or values) of choices, and of continuous actions the means, then the log standard
deviations if the policy has any.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ACTOR, ENCODER_OUT
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
from estragon.trainers.rllib.checkpoint import Checkpoint
from estragon.trainers.rllib.env import flatten
from estragon.trainers.rllib.training import TrainedPolicy, load_policies
from estragon.trainers.spaces import as_ports, check_outputs, checked_observations, is_image

SEQ_LENS = "seq_lens"


def export_checkpoint(
    path: Path,
    folder: Path,
    *,
    policy: str | None = None,
    number: int | None = None,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    verify: bool = True,
    trust: bool = False,
) -> list[Path]:
    """Write `<policy>.onnx` for every policy of a checkpoint, or for one.

    The path may be a run directory; `number` is which of its checkpoints, by default the latest.
    With `trust`, it may be a checkpoint of plain RLlib.
    """
    policies = load_policies(Checkpoint.find(path, number), trust=trust)
    if policy is not None and policy not in policies:
        raise UserError(f"--policy: no {policy}; choose one of {', '.join(policies)}")
    contents = {
        folder / f"{name}.onnx": exported(each, opset, ir_version, verify=verify)
        for name, each in policies.items()
        if policy in (None, name)
    }
    for target, content in contents.items():
        write_whole(target, content)
    return list(contents)


def exported(
    policy: TrainedPolicy,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    *,
    verify: bool = True,
) -> bytes:
    """The content of a file, compared with the policy unless not to `verify`."""
    network = OnnxPolicy(policy).eval()
    shapes = [_input_shape(part) for part in policy.sees.spaces.values()]
    layout = [{"key": key, "action_type": kind, "size": size} for key, kind, size in policy.actions]
    data = export_policy(
        network,
        [*(torch.zeros(2, *shape) for shape in shapes), torch.zeros(network.state_shape(2))],
        [*policy.sees.spaces, STATE_IN],
        opset=opset,
        ir_version=ir_version,
        unused_inputs=[SEQ_LENS],
        about=about_policy(
            algorithm=policy.algo,
            trainer="rllib",
            observations=as_ports(policy.sees.spaces, shapes),
            actions=layout,
            normalization="none",
            memory=sum(network.state_shape(1)[1:]),
            training_steps=policy.steps,
            packages=("ray", "torch"),
        ),
    )
    if verify:
        compare(session_of(data), policy, network)
    return data


class OnnxPolicy(nn.Module):
    """A policy as one network: observations and a state in, action numbers and the state out."""

    def __init__(self, policy: TrainedPolicy) -> None:
        super().__init__()
        self.module: Any = policy.module
        self.parts = policy.sees.spaces
        self.algo = policy.algo
        self.columns = _columns(policy) if self.algo in ("ppo", "appo", "impala") else None
        encoder: Any = self.module.pi_encoder if self.algo == "sac" else self.module.encoder
        if self.module.is_stateful() and hasattr(encoder.config, "shared"):
            encoder = encoder.encoder if encoder.config.shared else encoder.actor_encoder
        self.encoder = encoder
        self.cell = getattr(encoder, "lstm", getattr(encoder, "gru", None))

    def state_shape(self, batch: int) -> tuple[int, ...]:
        """(batch, state size) of a recurrent policy, else (batch,): a state that is passed on."""
        return (batch,) if self.cell is None else (batch, state_size(self.cell))

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Observations, then the state; returns (batch, actions) and the next state."""
        *seen, state = inputs
        rows = [_flat(part, value) for part, value in zip(self.parts.values(), seen, strict=True)]
        encoded, state = self._encode(rows[0] if len(rows) == 1 else torch.cat(rows, dim=1), state)
        if self.algo == "dqn":
            return self._q_values(encoded), state
        logits = self.module.pi(encoded)
        if self.algo == "sac":
            return torch.tanh(logits[:, : logits.shape[1] // 2]), state
        return logits if self.columns is None else logits[:, self.columns], state

    def _encode(self, row: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.cell is None:
            encoded = self.encoder({Columns.OBS: row})[ENCODER_OUT]
            return encoded[ACTOR] if isinstance(encoded, dict) else encoded, state
        if self.encoder.tokenizer is not None:
            row = self.encoder.tokenizer({Columns.OBS: row})[ENCODER_OUT]
        return recurrent_step(self.cell, row, state)

    def _q_values(self, encoded: torch.Tensor) -> torch.Tensor:
        module = self.module
        values: torch.Tensor = module.af(encoded)
        if module.num_atoms > 1:
            # A distribution over returns for each choice; its mean is the choice's value.
            values = values.reshape(-1, int(module.action_space.n), module.num_atoms)
        if module.uses_dueling:
            base = module.vf(encoded)
            values = values - values.mean(dim=-1, keepdim=True)
            values = values + (base[:, None] if module.num_atoms > 1 else base)
        if module.num_atoms > 1:
            returns = torch.linspace(module.v_min, module.v_max, module.num_atoms)
            values = (torch.softmax(values, dim=-1) * returns).sum(dim=-1)
        return values


def _input_shape(part: spaces.Space[Any]) -> tuple[int, ...]:
    """Of one agent's observation, as a game sends it."""
    return (1,) if isinstance(part, spaces.Discrete) else tuple(part.shape or ())


def _flat(part: spaces.Space[Any], value: torch.Tensor) -> torch.Tensor:
    """As `env.flatten`, with the operators of the graph."""
    if isinstance(part, spaces.Discrete):
        choices = torch.arange(int(part.n), dtype=torch.float32)
        return 1.0 - torch.clamp(torch.abs(value - choices), 0.0, 1.0)
    if is_image(part):
        return value / 255.0
    return value.reshape(-1, int(torch.tensor(part.shape).prod()))


def _columns(policy: TrainedPolicy) -> list[int] | None:
    """Where the logits of each action are, in the game's order; None: in that order."""
    if isinstance(policy.does, spaces.Discrete | spaces.MultiDiscrete):
        return None
    found: list[int] = []
    if isinstance(policy.does, spaces.Box):
        means, place = int(policy.does.shape[0]), 0
        for _, _, size in policy.actions:
            found += [*range(place, place + size), *range(means + place, means + place + size)]
            place += size
        return found
    # Mixed actions are a Dict, whose keys RLlib sorts.
    places, place = {}, 0
    for key, kind, size in sorted(policy.actions):
        places[key] = range(place, place + (2 * size if kind == "continuous" else size))
        place = places[key].stop
    return [column for key, _, _ in policy.actions for column in places[key]]


def compare(session: Any, policy: TrainedPolicy, network: OnnxPolicy) -> None:
    """Raise an error if the file and the policy act differently."""
    parts = policy.sees.spaces
    layout = [(kind, size) for _, kind, size in policy.actions]
    shapes = [_input_shape(part) for part in parts.values()]
    random = np.random.default_rng(0)
    for begins, drawn in checked_observations(parts, shapes, random):
        batch = len(drawn[0])
        if begins:
            state: Any = np.zeros(network.state_shape(batch), np.float32)
            states: list[Any] = [None] * batch
        sent = dict(zip(parts, drawn, strict=True))
        typed = {key: values.astype(parts[key].dtype) for key, values in sent.items()}
        seen = [
            flatten(policy.sees, {key: values[row] for key, values in typed.items()})
            for row in range(batch)
        ]
        decided, states = policy.act(np.stack(seen), states)
        actions = [
            np.concatenate([np.ravel(action[key]) for key, _, _ in policy.actions])
            if isinstance(action, dict)
            else np.ravel(action)
            for action in decided
        ]
        feed = sent | {STATE_IN: state, SEQ_LENS: np.ones(batch, np.float32)}
        output, state = session.run([OUTPUT, STATE_OUT], feed)
        check_outputs(output, np.stack(actions), layout)
