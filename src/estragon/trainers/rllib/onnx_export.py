"""Policies as ONNX files for games, each written only if it does what its policy does."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from estragon.support.errors import UserError
from estragon.support.files import write_whole
from estragon.trainers.onnx_file import (
    CHECKED_BATCHES,
    IR_VERSION,
    OPSET,
    OUTPUT,
    STATE_IN,
    TOLERANCE,
    onnx_library,
    session_of,
    traced,
)
from estragon.trainers.rllib.checkpoint import Checkpoint
from estragon.trainers.rllib.onnx_policy import LENGTHS, OnnxPolicy
from estragon.trainers.rllib.player import Player, players_of
from estragon.trainers.rllib.sight import plain
from estragon.trainers.spaces import is_image


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

    Args:
        path: of a checkpoint, or of a run.
        folder: where to write.
        policy: the only one to write.
        number: which checkpoint of a run; by default the latest.
        opset: the version of the operators.
        ir_version: the version of the file format.
    """
    players = players_of(Checkpoint.find(path, number))
    if policy is not None and policy not in players:
        raise UserError(f"--policy: no {policy}; there is {', '.join(players)}")
    wanted = {name: each for name, each in players.items() if policy in (None, name)}
    data = {name: exported(each, opset, ir_version) for name, each in wanted.items()}
    written = []
    for name, content in data.items():
        written.append(folder / f"{name}.onnx")
        write_whole(written[-1], content)
    return written


def exported(player: Player, opset: int = OPSET, ir_version: int = IR_VERSION) -> bytes:
    """A file's content, after comparing it with the policy."""
    onnx = onnx_library(opset, ir_version)
    policy = OnnxPolicy(player).eval()
    inputs = [torch.zeros(2, *shape) for shape in policy.input_shapes()]
    names = [*policy.parts, STATE_IN]
    found = onnx.load_from_string(traced(policy, [*inputs, torch.zeros(2)], names, opset))
    lengths = onnx.helper.make_tensor_value_info(LENGTHS, onnx.TensorProto.FLOAT, ["batch"])
    found.graph.input.append(lengths)
    found.ir_version = ir_version
    found.producer_name = "estragon"
    onnx.checker.check_model(found)
    data: bytes = found.SerializeToString()
    compare(session_of(data), player)
    return data


def compare(session: Any, player: Player) -> None:
    """Let the file and the policy decide; an error where they would do different things."""
    random = np.random.default_rng(0)
    parts = player.sees.spaces
    for batch in CHECKED_BATCHES:
        sent = {key: _drawn(part, batch, random) for key, part in parts.items()}
        seen = np.stack([_seen(player.sees, sent, row) for row in range(batch)])
        feed = sent | {name: np.ones(batch, np.float32) for name in (STATE_IN, LENGTHS)}
        (output,) = session.run([OUTPUT], feed)
        if not np.isfinite(output).all():
            raise UserError("the ONNX file gives what is no number")
        for row, action in enumerate(player.act(seen)):
            if (apart := _difference(output[row], action, player)) > TOLERANCE:
                raise UserError(
                    f"the ONNX file would not do what the policy does (apart by {apart:.2g})"
                )


def _drawn(part: spaces.Space[Any], batch: int, random: np.random.Generator) -> np.ndarray:
    if isinstance(part, spaces.Discrete):
        return random.integers(int(part.n), size=(batch, 1)).astype(np.float32)
    shape = (batch, *(part.shape or ()))
    if is_image(part):
        return random.integers(256, size=shape).astype(np.float32)
    return random.normal(size=shape).astype(np.float32)


def _seen(sees: spaces.Dict, sent: dict[str, np.ndarray], row: int) -> np.ndarray:
    """One row in the plain form that a policy sees."""
    parts = {
        key: int(sent[key][row, 0]) if isinstance(part, spaces.Discrete) else sent[key][row]
        for key, part in sees.spaces.items()
    }
    return plain(sees, parts)


def _difference(output: np.ndarray, action: Any, player: Player) -> float:
    """How far a game that decodes the output is from the action, as games do it."""
    spread = sum(size for _, kind, size in player.role.actions if kind == "continuous")
    total = sum(size for _, _, size in player.role.actions)
    spreads = spread > 0 and len(output) == total + spread
    flat = np.asarray(action).reshape(-1) if not isinstance(action, dict) else None
    place = taken = 0
    worst = 0.0
    for key, kind, size in player.role.actions:
        part = output[place : place + size]
        place += size
        width = size if kind == "continuous" else 1
        meant = np.asarray(action[key]).reshape(-1) if flat is None else flat[taken : taken + width]
        taken += width
        if kind == "continuous":
            place += size if spreads else 0
            worst = max(worst, float(np.abs(np.clip(part, -1.0, 1.0) - meant).max()))
        else:
            worst = max(worst, float(part.max() - part[int(meant[0])]))
    return worst
