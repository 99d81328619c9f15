"""A model in a file: Stable-Baselines3's own zip, with what is needed to go on from it inside.

`PPO.load` reads ours as any other. We never do: theirs holds pickled objects, which run code when
they are opened. Ours are made anew from `estragon.json`, and given back their tensors.
"""

import io
import pickle
import sys
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from estragon.support.errors import UserError
from estragon.support.files import check_archive, write_whole
from estragon.trainers.sb3.algorithms import ALGORITHMS, Algorithm
from estragon.trainers.sb3.detect import detect
from estragon.trainers.sb3.settings import PolicyType

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

ABOUT, SCALES = "estragon.json", "normalize.npz"
COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls")
LARGEST = 2**36


class About(msgspec.Struct, frozen=True):
    """What made a model, in plain words; part of its file."""

    algo: str
    policy_type: PolicyType
    layers: tuple[int, ...]
    hyperparameters: dict[str, float | int]
    linear_lr_schedule: bool
    sees: dict[str, Any]
    does: dict[str, Any]
    counters: dict[str, int] = {}
    format: int = 1


class ModelFile:
    """A file that was looked into, but not opened yet."""

    def __init__(self, path: Path, asked: str | None = None) -> None:
        """Look whose it is; `asked` is the algorithm that somebody expects."""
        self.path = path if path.suffix or path.exists() else path.with_suffix(".zip")
        self._data = self._read()
        with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
            names = set(archive.namelist())
            self.about = self._read_about(archive) if ABOUT in names else None
            self.scales = _read_scales(archive.read(SCALES)) if SCALES in names else None
            if "data" not in names:
                raise UserError(f"{self.path} is no model of Stable-Baselines3")
            found = self.about.algo if self.about else detect(archive) or asked
        if found is None:
            known = ", ".join(ALGORITHMS)
            raise UserError(f"{self.path}: cannot tell the algorithm; give --algo ({known})")
        if asked is not None and asked != found:
            raise UserError(f"{self.path} was trained with {found}, not {asked}")
        if found not in ALGORITHMS:
            raise UserError(f"{self.path}: made by a newer Estragon, with {found}")
        self.algorithm: Algorithm = ALGORITHMS[found]

    @property
    def is_ours(self) -> bool:
        """Whether it can be read without running anything in it."""
        return self.about is not None

    @property
    def steps(self) -> int:
        """How many it has learned from, as far as the file says."""
        return self.about.counters.get("num_timesteps", 0) if self.about else 0

    def restore(self, model: "BaseAlgorithm") -> None:
        """Give a new model the tensors and counts of this file, which is ours."""
        from stable_baselines3.common.save_util import (
            load_from_zip_file,
            recursive_getattr,
            recursive_setattr,
        )

        if self.about is None:
            raise ValueError(f"{self.path} is somebody else's")
        try:
            _, parameters, variables = load_from_zip_file(
                io.BytesIO(self._data), load_data=False, device=model.device
            )
            # An entropy that is learned has an optimizer of its own; one that is given has none.
            known = model.get_parameters()
            kept = {name: parameters[name] for name in parameters if name in known}
            model.set_parameters(kept, exact_match=False, device=model.device)
        except (RuntimeError, ValueError, KeyError, pickle.UnpicklingError) as error:
            raise UserError(f"{self.path} does not fit this game: {error}") from error
        found: dict[str, Any] = variables or {}
        for name, tensor in found.items():
            if tensor is not None and recursive_getattr(model, name, None) is not None:
                recursive_setattr(model, f"{name}.data", tensor.data)
        for name in COUNTERS:
            if hasattr(model, name) and name in self.about.counters:
                setattr(model, name, self.about.counters[name])

    def unpickle(self, env: "VecEnv | None", device: str, changed: dict[str, Any]) -> Any:
        """Open a file of somebody else, with a warning."""
        print(
            f"WARNING: {self.path} was not made by Estragon: opening it runs the code in it, "
            "whatever that does; use it only if you trust where it comes from",
            file=sys.stderr,
            flush=True,
        )
        try:
            return self.algorithm.cls.load(io.BytesIO(self._data), env, device, **changed)
        except Exception as error:
            raise UserError(f"cannot use {self.path} here: {error}") from error

    def _read(self) -> bytes:
        try:
            data = self.path.read_bytes()
            check_archive(data, LARGEST)
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror or error}") from error
        except (ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
            raise UserError(f"{self.path} is no model: {error}") from error
        return data

    def _read_about(self, archive: zipfile.ZipFile) -> About:
        try:
            return msgspec.json.decode(archive.read(ABOUT), type=About)
        except msgspec.DecodeError as error:
            raise UserError(f"{self.path}: {ABOUT} in it: {error}") from error


def save(
    model: "BaseAlgorithm", path: Path, about: About | None, scales: dict[str, np.ndarray] | None
) -> None:
    """Write a model, whole; one of somebody else stays one."""
    buffer = io.BytesIO()
    model.save(buffer)
    with zipfile.ZipFile(buffer, "a") as archive:
        if about is not None:
            counters = {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)}
            about = msgspec.structs.replace(about, counters=counters)
            archive.writestr(ABOUT, msgspec.json.format(msgspec.json.encode(about), indent=2))
        if scales is not None:
            packed = io.BytesIO()
            np.savez(packed, **scales)  # type: ignore[arg-type]
            archive.writestr(SCALES, packed.getvalue())
    write_whole(path, buffer.getvalue())


def _read_scales(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)
