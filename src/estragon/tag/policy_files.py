"""Policies on disk: `.npz`, which numpy alone reads, and `.pt`, the same for torch.

A file holds one role, or both. Reading one never runs code that it brings along.
"""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from estragon.support.errors import UserError
from estragon.support.files import check_archive, write_whole
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import Role, Rules

LARGEST_FILE = 64 * 2**20
TRAINED = {
    "seeker": Path("trainer", "policy_seeker.npz"),
    "hider": Path("trainer", "policy_hider.npz"),
}
"""Policies that play where no player is named and these files exist; else the bots below."""
DEFAULT_BOTS = {"seeker": "bot:chaser", "hider": "bot:evader"}


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    """What a policy file says of itself."""

    format: Literal["estragon-policy"]
    version: Annotated[int, Meta(ge=2, le=2)]
    observation_version: int
    observation_size: int
    layers: Annotated[int, Meta(ge=1, le=16)]
    activation: Literal["relu"]
    trained_steps: dict[Role, int]
    """Agent-steps each role in the file has learned from."""


def save_policies(path: Path, policies: Mapping[Role, FrozenPolicy], rules: Rules) -> None:
    """Write one whole file with these roles, in the format that its name ends with."""
    header = Header(
        format="estragon-policy",
        version=2,
        observation_version=rules.observation.version,
        observation_size=rules.observation.size,
        layers=max(len(policy.weights) for policy in policies.values()),
        activation="relu",
        trained_steps={role: policy.trained_steps for role, policy in policies.items()},
    )
    arrays: dict[str, np.ndarray] = {}
    for role, policy in policies.items():
        arrays |= {f"{role}.{name}": array for name, array in _parts(policy).items()}
    text = json.dumps(msgspec.to_builtins(header))
    write_whole(path, _pack_pt(text, arrays) if path.suffix == ".pt" else _pack_npz(text, arrays))


def load_policies(path: Path, rules: Rules) -> dict[Role, FrozenPolicy]:
    """Read a policy file; one that is damaged or made for other observations is an error."""
    header, arrays = _read(path)
    if (header.observation_version, header.observation_size) != (
        rules.observation.version,
        rules.observation.size,
    ):
        raise UserError(
            f"{path}: made for observation version {header.observation_version} of size "
            f"{header.observation_size}; this game has version {rules.observation.version} of "
            f"size {rules.observation.size}: train it again"
        )
    _check_arrays(path, header, arrays)
    return {
        role: FrozenPolicy(
            role,
            rules,
            mean=arrays[f"{role}.mean"],
            scale=arrays[f"{role}.scale"],
            moves=arrays[f"{role}.moves"],
            weights=_weights(role, header, arrays),
            name=str(path),
            trained_steps=steps,
        )
        for role, steps in header.trained_steps.items()
    }


def load_policy(path: Path, rules: Rules, role: Role) -> FrozenPolicy:
    """Read the policy of one role from a file that holds it."""
    policies = load_policies(path, rules)
    if role not in policies:
        raise UserError(f"{path} was trained as {next(iter(policies))}, not as {role}")
    return policies[role]


def trained_steps(path: Path) -> dict[str, int]:
    """By role in a file, the agent-steps it has learned from."""
    return {str(role): steps for role, steps in _read(path)[0].trained_steps.items()}


def _parts(policy: FrozenPolicy) -> dict[str, np.ndarray]:
    parts = {"mean": policy.mean, "scale": policy.scale, "moves": policy.moves}
    for layer, (weight, bias) in enumerate(policy.weights):
        parts[f"weight_{layer}"], parts[f"bias_{layer}"] = weight, bias
    return parts


def _pack_npz(header: str, arrays: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    contents: dict[str, Any] = {"header": np.array(header), **arrays}
    np.savez(stream, **contents)
    return stream.getvalue()


def _pack_pt(header: str, arrays: dict[str, np.ndarray]) -> bytes:
    import torch  # only for its own format

    stream = io.BytesIO()
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    torch.save({"header": header, **tensors}, stream)
    return stream.getvalue()


def _read(path: Path) -> tuple[Header, dict[str, np.ndarray]]:
    """The header and arrays of a policy file; never unpickles anything but plain tensors."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"{path}: larger than a policy may be ({LARGEST_FILE >> 20} MB)")
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read policy {path}: {error.strerror or error}") from error
    try:
        check_archive(data, LARGEST_FILE)
        header, arrays = _unpack_pt(data) if path.suffix == ".pt" else _unpack_npz(data)
        return msgspec.json.decode(header, type=Header), arrays
    except UserError:
        raise
    except Exception as error:  # numpy, torch and pickle raise all sorts at what is not theirs
        raise UserError(f"{path} is not an Estragon policy, or it is damaged") from error


def _unpack_npz(data: bytes) -> tuple[str, dict[str, np.ndarray]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = str(arrays.pop("header"))
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ValueError("holds something other than arrays")
    return header, arrays


def _unpack_pt(data: bytes) -> tuple[str, dict[str, np.ndarray]]:
    try:
        import torch
    except ImportError as error:
        raise UserError("a .pt policy needs torch; the .npz beside it does not") from error

    contents = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    header = contents.pop("header")
    return header, {name: tensor.numpy() for name, tensor in contents.items()}


def _weights(
    role: Role, header: Header, arrays: dict[str, np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    layers = range(header.layers)
    return [(arrays[f"{role}.weight_{n}"], arrays[f"{role}.bias_{n}"]) for n in layers]


def _check_arrays(path: Path, header: Header, arrays: dict[str, np.ndarray]) -> None:
    """Every array that is needed and no other, finite, and of shapes that fit together."""
    parts = ["mean", "scale", "moves"]
    parts += [f"{part}_{n}" for part in ("weight", "bias") for n in range(header.layers)]
    names = {f"{role}.{part}" for role in header.trained_steps for part in parts}
    if set(arrays) != names or any(array.dtype != np.float32 for array in arrays.values()):
        raise UserError(f"{path}: expected float32 arrays {', '.join(sorted(names))}")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise UserError(f"{path}: contains values that are not finite")
    if not header.trained_steps or not all(
        _fits(role, header, arrays) for role in header.trained_steps
    ):
        raise UserError(f"{path}: its layer shapes do not fit together")


def _fits(role: Role, header: Header, arrays: dict[str, np.ndarray]) -> bool:
    size = header.observation_size
    mean, scale, moves = (arrays[f"{role}.{part}"] for part in ("mean", "scale", "moves"))
    if not mean.shape == scale.shape == (size,) or not bool((scale > 0).all()):
        return False
    if moves.ndim != 2 or moves.shape[0] < 1 or moves.shape[1] != 2:
        return False
    for weight, bias in _weights(role, header, arrays):
        if bias.ndim != 1 or weight.shape != (size, len(bias)):
            return False
        size = len(bias)
    return size == len(moves) + 2
