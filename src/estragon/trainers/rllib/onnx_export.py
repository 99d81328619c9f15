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
from torch import nn

from estragon.onnx.torch_export import (
    CHECKED_BATCHES,
    IR_VERSION,
    OPSET,
    OUTPUT,
    STATE_IN,
    export_policy,
    session_of,
)
from estragon.support.errors import UserError
from estragon.support.files import write_whole
from estragon.trainers.rllib.checkpoint import Checkpoint
from estragon.trainers.rllib.env import flatten
from estragon.trainers.rllib.training import TrainedPolicy, load_policies
from estragon.trainers.spaces import check_outputs, is_image, random_numbers

SEQ_LENS = "seq_lens"


def export_checkpoint(
    path: Path,
    folder: Path,
    *,
    policy: str | None = None,
    number: int | None = None,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
) -> list[Path]:
    """Write `<policy>.onnx` for every policy of a checkpoint, or for one.

    The path may be a run directory; `number` is which of its checkpoints, by default the latest.
    """
    policies = load_policies(Checkpoint.find(path, number))
    if policy is not None and policy not in policies:
        raise UserError(f"--policy: no {policy}; choose one of {', '.join(policies)}")
    contents = {
        folder / f"{name}.onnx": exported(each, opset, ir_version)
        for name, each in policies.items()
        if policy in (None, name)
    }
    for target, content in contents.items():
        write_whole(target, content)
    return list(contents)


def exported(policy: TrainedPolicy, opset: int = OPSET, ir_version: int = IR_VERSION) -> bytes:
    """The content of a file, compared with the policy."""
    inputs = [torch.zeros(2, *_input_shape(part)) for part in policy.sees.spaces.values()]
    data = export_policy(
        OnnxPolicy(policy).eval(),
        [*inputs, torch.zeros(2)],
        [*policy.sees.spaces, STATE_IN],
        opset=opset,
        ir_version=ir_version,
        unused_inputs=[SEQ_LENS],
    )
    compare(session_of(data), policy)
    return data


class OnnxPolicy(nn.Module):
    """A policy as one network: observations and a state in, action numbers and the state out."""

    def __init__(self, policy: TrainedPolicy) -> None:
        super().__init__()
        self.module: Any = policy.module
        self.parts = policy.sees.spaces
        self.algo = policy.algo
        self.columns = _columns(policy) if self.algo in ("ppo", "appo", "impala") else None

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Observations, then the state, which is returned as it is."""
        *seen, state = inputs
        rows = [_flat(part, value) for part, value in zip(self.parts.values(), seen, strict=True)]
        batch = {Columns.OBS: rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)}
        if self.algo == "dqn":
            return self._q_values(self.module.encoder(batch)["encoder_out"]), state
        if self.algo == "sac":
            logits = self.module.pi(self.module.pi_encoder(batch)["encoder_out"])
            return torch.tanh(logits[:, : logits.shape[1] // 2]), state
        logits = self.module.pi(self.module.encoder(batch)["encoder_out"]["actor"])
        return logits if self.columns is None else logits[:, self.columns], state

    def _q_values(self, encoded: torch.Tensor) -> torch.Tensor:
        if self.module.num_atoms > 1:
            raise UserError("dqn with num_atoms above 1 cannot be exported as ONNX")
        values: torch.Tensor = self.module.af(encoded)
        if self.module.uses_dueling:
            values = values - values.mean(dim=-1, keepdim=True) + self.module.vf(encoded)
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


def compare(session: Any, policy: TrainedPolicy) -> None:
    """Raise an error if the file and the policy act differently on random observations."""
    random = np.random.default_rng(0)
    layout = [(kind, size) for _, kind, size in policy.actions]
    for batch in CHECKED_BATCHES:
        sent = {
            key: random_numbers(part, (batch, *_input_shape(part)), random)
            for key, part in policy.sees.spaces.items()
        }
        typed = {key: values.astype(policy.sees[key].dtype) for key, values in sent.items()}
        seen = [
            flatten(policy.sees, {key: values[row] for key, values in typed.items()})
            for row in range(batch)
        ]
        actions = [
            np.concatenate([np.ravel(action[key]) for key, _, _ in policy.actions])
            if isinstance(action, dict)
            else np.ravel(action)
            for action in policy.act(np.stack(seen))
        ]
        feed = sent | {name: np.ones(batch, np.float32) for name in (STATE_IN, SEQ_LENS)}
        (output,) = session.run([OUTPUT], feed)
        check_outputs(output, np.stack(actions), layout)
