"""A trained policy that only plays: read from `.npz` and run with numpy alone.

The network sees the world in the agent's heading frame and answers in it; both turns are part of
the policy, so that everything outside speaks world axes.
"""

import io
import json
import zipfile
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from estragon.errors import UserError
from estragon.files import write_whole
from estragon.tag.rules import ACTION_SIZE, Rules

LARGEST_FILE = 64 * 2**20
CLIP = 10.0
"""Normalised observations are cut off here."""
NOT_A_POLICY = (
    ValueError,
    KeyError,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    msgspec.MsgspecError,
)
"""All that numpy, zipfile and msgspec raise at a file that is not theirs."""
TURNED_FIELDS = ("position", "velocity", "last_seen_relative")

Role = Literal["seeker", "hider"]


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    """What a policy file says of itself."""

    format: Literal["estragon-policy"]
    version: Annotated[int, Meta(ge=1, le=1)]
    role: Role
    observation_version: int
    observation_size: int
    layers: Annotated[int, Meta(ge=1, le=16)]
    activation: Literal["tanh", "relu"]


class FrozenPolicy:
    """A multi-layer perceptron over normalised, heading-frame observations."""

    def __init__(
        self,
        header: Header,
        mean: np.ndarray,
        scale: np.ndarray,
        weights: list[tuple[np.ndarray, np.ndarray]],
        rules: Rules,
        name: str,
    ) -> None:
        """Make a policy from its parts; `load` and `untrained` are the usual ways."""
        self.header = header
        self.name = name
        self.mean, self.scale, self.weights = mean, scale, weights
        self._forward = rules.field("forward").start
        self._turned = [rules.field(field).start for field in TURNED_FIELDS]

    @classmethod
    def untrained(cls, rules: Rules, role: Role, seed: int, hidden: int = 64) -> "FrozenPolicy":
        """A policy as learning finds it: random weights, no experience."""
        random = np.random.default_rng(seed)
        sizes = [rules.observation.size, hidden, hidden, ACTION_SIZE]
        weights = [
            (
                (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32),
                np.zeros(columns, dtype=np.float32),
            )
            for rows, columns in pairwise(sizes)
        ]
        header = Header(
            format="estragon-policy",
            version=1,
            role=role,
            observation_version=rules.observation.version,
            observation_size=rules.observation.size,
            layers=len(weights),
            activation="tanh",
        )
        size = rules.observation.size
        mean, scale = np.zeros(size, dtype=np.float32), np.ones(size, dtype=np.float32)
        return cls(header, mean, scale, weights, rules, f"untrained {role}")

    @classmethod
    def load(cls, path: Path, rules: Rules) -> "FrozenPolicy":
        """Read a policy file, refusing what is damaged, foreign, or made for other eyes."""
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
        weights = _checked_weights(path, header, arrays)
        return cls(header, arrays["mean"], arrays["scale"], weights, rules, str(path))

    def save(self, path: Path) -> None:
        """Write the policy as one whole `.npz` file."""
        arrays: dict[str, Any] = {"mean": self.mean, "scale": self.scale}
        for layer, (weight, bias) in enumerate(self.weights):
            arrays[f"weight_{layer}"], arrays[f"bias_{layer}"] = weight, bias
        stream = io.BytesIO()
        header = json.dumps(msgspec.to_builtins(self.header))
        np.savez(stream, header=np.array(header), **arrays)
        write_whole(path, stream.getvalue())

    def act(self, observations: np.ndarray) -> np.ndarray:
        """The policy's own choice, without noise: (rows, 3) float32 for (rows, size) float32."""
        forward_x = observations[:, self._forward]
        forward_z = observations[:, self._forward + 1]
        seen = observations.copy()
        for start in self._turned:
            x, z = observations[:, start], observations[:, start + 2]
            seen[:, start] = x * forward_x + z * forward_z
            seen[:, start + 2] = z * forward_x - x * forward_z
        values = np.clip((seen - self.mean) / self.scale, -CLIP, CLIP)
        for layer, (weight, bias) in enumerate(self.weights):
            values = values @ weight + bias
            if layer < len(self.weights) - 1:
                values = (
                    np.tanh(values) if self.header.activation == "tanh" else np.maximum(values, 0)
                )
        ahead, aside = values[:, 0], values[:, 1]
        actions = np.empty((len(observations), ACTION_SIZE), dtype=np.float32)
        actions[:, 0] = ahead * forward_x - aside * forward_z
        actions[:, 1] = ahead * forward_z + aside * forward_x
        actions[:, 2] = values[:, 2]
        return np.clip(actions, -1.0, 1.0)


def _read(path: Path) -> tuple[Header, dict[str, np.ndarray]]:
    """The header and arrays of a policy file; never unpickles anything."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"{path}: larger than any policy of ours ({LARGEST_FILE >> 20} MB)")
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read policy {path}: {error.strerror or error}") from error
    try:
        arrays = _read_arrays(data)
        return msgspec.json.decode(str(arrays.pop("header")), type=Header), arrays
    except NOT_A_POLICY as error:
        raise UserError(f"{path} is not an Estragon policy (.npz), or it is damaged") from error


def _read_arrays(data: bytes) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(member.file_size for member in archive.infolist()) > LARGEST_FILE:
            raise ValueError("unpacks to more than any policy of ours")
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ValueError("holds something other than arrays")
    return arrays


def _checked_weights(
    path: Path, header: Header, arrays: dict[str, np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    names = {"mean", "scale"}
    names |= {f"{part}_{n}" for part in ("weight", "bias") for n in range(header.layers)}
    if set(arrays) != names or any(array.dtype != np.float32 for array in arrays.values()):
        raise UserError(f"{path}: expected float32 arrays {', '.join(sorted(names))}")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise UserError(f"{path}: holds numbers that are not finite")
    weights = [(arrays[f"weight_{n}"], arrays[f"bias_{n}"]) for n in range(header.layers)]
    size = header.observation_size
    fits = arrays["mean"].shape == arrays["scale"].shape == (size,)
    fits = fits and bool((arrays["scale"] > 0).all())
    for weight, bias in weights:
        fits = fits and weight.ndim == 2 and weight.shape == (size, len(bias)) and bias.ndim == 1
        size = weight.shape[-1] if weight.ndim else 0
    if not fits or size != ACTION_SIZE:
        raise UserError(f"{path}: its layers do not fit together")
    return weights
