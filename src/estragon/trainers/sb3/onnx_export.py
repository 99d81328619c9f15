"""A policy as an ONNX file for games, written only if it does what its model does."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm

from estragon.support.errors import UserError
from estragon.support.files import write_whole
from estragon.trainers.onnx_file import (
    CHECKED_BATCHES,
    IR_VERSION,
    OPSET,
    OUTPUT,
    STATE_IN,
    STATE_OUT,
    TOLERANCE,
    onnx_library,
    session_of,
    traced,
)
from estragon.trainers.sb3.onnx_policy import OnnxPolicy, sent_shape
from estragon.trainers.spaces import is_image

CHECKED_STEPS = 5


def export(
    model: BaseAlgorithm,
    algo: str,
    path: Path,
    *,
    scales: dict[str, np.ndarray] | None = None,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    as_array: bool = False,
    verify: bool = True,
) -> None:
    """Write the policy of a model, if it does what the model does.

    Args:
        model: whose policy it is.
        algo: its algorithm's name.
        path: the file.
        scales: of its observations, if it was trained with any.
        opset: the version of the operators.
        ir_version: the version of the file format.
        as_array: take all observations as one input `obs`, side by side.
        verify: whether to compare; needs onnxruntime.
    """
    onnx = onnx_library(opset, ir_version)
    device = model.device
    model.policy.to("cpu")
    model.policy.set_training_mode(False)
    try:
        policy = OnnxPolicy(model, algo, scales, as_array=as_array).eval()
        inputs = [torch.zeros(2, *shape) for shape in policy.input_shapes()]
        inputs.append(torch.zeros((2, policy.state_size) if policy.state_size else 2))
        names = [*policy.input_names, STATE_IN]
        found = onnx.load_from_string(traced(policy, inputs, names, opset))
        found.ir_version = ir_version
        found.producer_name = "estragon"
        onnx.checker.check_model(found)
        data = found.SerializeToString()
        if verify:
            compare(data, policy, model, scales)
    finally:
        model.policy.to(device)
    write_whole(path, data)


def compare(
    data: bytes, policy: OnnxPolicy, model: Any, scales: dict[str, np.ndarray] | None
) -> None:
    """Play the file beside the model; an error where they would do different things."""
    session = session_of(data)
    random = np.random.default_rng(0)
    for batch in CHECKED_BATCHES:
        state = np.zeros((batch, policy.state_size) if policy.state_size else batch, np.float32)
        memory, starts = None, np.ones(batch, bool)
        for _ in range(CHECKED_STEPS):
            sent, seen = _drawn(policy, batch, random, scales)
            feed = dict(zip(policy.input_names, sent, strict=True)) | {STATE_IN: state}
            output, state = session.run([OUTPUT, STATE_OUT], feed)
            actions, memory = model.predict(seen, memory, starts, deterministic=True)
            starts = np.zeros(batch, bool)
            if worst := _difference(output, actions, model.action_space):
                raise UserError(f"the ONNX file would not do what the model does ({worst})")


def _drawn(
    policy: OnnxPolicy,
    batch: int,
    random: np.random.Generator,
    scales: dict[str, np.ndarray] | None,
) -> tuple[list[np.ndarray], Any]:
    """Observations by chance, as a game sends them and as the model sees them."""
    sent: list[np.ndarray] = []
    seen: dict[str, np.ndarray] = {}
    for key, part in policy.parts.items():
        if isinstance(part, spaces.Discrete):
            drawn = random.integers(int(part.n), size=(batch, 1))
            seen[key] = drawn[:, 0]
        elif is_image(part):
            drawn = random.integers(256, size=(batch, *sent_shape(part)))
            seen[key] = drawn.transpose(0, 3, 1, 2).astype(np.uint8)
        else:
            drawn = random.normal(size=(batch, *(part.shape or ()))).astype(np.float32)
            seen[key] = drawn
            if scales is not None and f"obs/{key}/mean" in scales:
                spread = np.sqrt(scales[f"obs/{key}/var"] + scales["epsilon"])
                limit = scales["clip"]
                scaled = (drawn - scales[f"obs/{key}/mean"]) / spread
                seen[key] = np.clip(scaled, -limit, limit).astype(np.float32)
        sent.append(drawn.astype(np.float32))
    if policy.input_names != list(policy.parts):
        sent = [np.concatenate([each.reshape(batch, -1) for each in sent], axis=1)]
    only = next(iter(seen.values()))
    return sent, seen if policy.is_dict else only


def _difference(output: np.ndarray, actions: np.ndarray, does: spaces.Space[Any]) -> str:
    """How far apart they are, or nothing."""
    if not np.isfinite(output).all():
        return "its outputs are no numbers"
    if isinstance(does, spaces.Box):
        apart = float(np.abs(np.clip(output, -1.0, 1.0) - actions).max())
        return f"actions apart by {apart:.2g}" if apart > TOLERANCE else ""
    sizes = [int(does.n)] if isinstance(does, spaces.Discrete) else does.nvec.tolist()  # type: ignore[attr-defined]
    chosen = actions.reshape(len(output), -1)
    place = 0
    for column, size in enumerate(sizes):
        part = output[:, place : place + size]
        place += size
        lost = part.max(axis=1) - part[np.arange(len(part)), chosen[:, column]]
        if lost.max() > TOLERANCE:
            return f"other choices by {lost.max():.2g}"
    return ""
