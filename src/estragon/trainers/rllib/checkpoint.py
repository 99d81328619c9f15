"""Checkpoints: RLlib's own directory, with what is needed to resume it safely inside.

`Algorithm.from_checkpoint` reads ours like any other. We never use it: RLlib's files hold pickled
objects, which run code when they are opened. We build the algorithm from `estragon.json`, and
restore the tensors of `estragon.pt`.
"""

import dataclasses
import io
import pickle
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import torch
import tree

from estragon.support.errors import UserError
from estragon.support.files import cannot_write, check_archive, write_whole
from estragon.trainers.metrics import Counters

ABOUT, STATE = "estragon.json", "estragon.pt"
RLLIB_FILE = "rllib_checkpoint.json"
MAX_BYTES = 2**36


class PolicySpaces(msgspec.Struct, frozen=True):
    """What a policy observes and does, as plain data."""

    sees: dict[str, Any]
    does: dict[str, Any]
    actions: tuple[tuple[str, str, int], ...]


class About(msgspec.Struct, frozen=True):
    """How a checkpoint was made, as plain data; its `estragon.json`."""

    algo: str
    settings: dict[str, Any]
    model: dict[str, Any]
    policies: dict[str, PolicySpaces]
    iteration: int = 0
    timesteps: int = 0
    """Of all agents."""
    env_steps: int = 0
    """Of all games."""
    episodes: int = 0
    checkpoints: int = 0
    models: dict[str, dict[str, Any]] = {}
    """By policy, what differs from `model`."""
    parameters: dict[str, Any] | None = None
    """The curriculum and the draws, as `RunCurriculum.save` gave them."""
    format: int = 1

    def counters(self) -> Counters:
        """The totals to continue from."""
        return Counters(**{f.name: getattr(self, f.name) for f in dataclasses.fields(Counters)})


class Checkpoint:
    """A checkpoint directory."""

    def __init__(self, path: Path) -> None:
        """Read how it was made; `about` is None if Estragon did not make it."""
        self.path, self.about = path, None
        try:
            self.about = msgspec.json.decode((path / ABOUT).read_bytes(), type=About)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UserError(f"cannot read {path / ABOUT}: {error.strerror or error}") from error
        except msgspec.DecodeError as error:
            raise UserError(f"{path / ABOUT}: {error}") from error

    @classmethod
    def find(cls, path: Path, number: int | None = None) -> Self:
        """The checkpoint at a path, or of a run directory the latest, or the one of a number."""
        if not path.is_dir():
            what = "is not a directory" if path.exists() else "does not exist"
            raise UserError(f"{path} {what}; expected a checkpoint or a run directory")
        if number is None and is_checkpoint(path):
            return cls(path)
        found = {
            number_of(each): each for each in path.rglob("checkpoint_*") if is_checkpoint(each)
        }
        if not found:
            raise UserError(f"no checkpoints found in {path}")
        if number is not None and number not in found:
            known = ", ".join(map(str, sorted(found)))
            raise UserError(f"no checkpoint {number} in {path}; choose one of {known}")
        return cls(found[max(found) if number is None else number])

    def state(self) -> dict[str, Any]:
        """Networks and optimizers, by `rl_module` and `optimizer`."""
        path = self.path / STATE
        try:
            data = path.read_bytes()
            check_archive(data, MAX_BYTES)
            found: dict[str, Any] = torch.load(io.BytesIO(data), weights_only=True)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from error
        except (ValueError, RuntimeError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
            raise UserError(f"{path} is damaged: {error}") from error
        arrays: dict[str, Any] = tree.map_structure(
            lambda leaf: leaf.numpy() if isinstance(leaf, torch.Tensor) else leaf, found
        )
        return arrays


def save(algorithm: Any, path: Path, about: About) -> None:
    """Write the checkpoint of an algorithm, completely or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as temporary:
            staged = Path(temporary).absolute() / "staged"
            algorithm.save_to_path(str(staged))
            learner = algorithm.learner_group.get_state()["learner"]
            state = {key: learner[key] for key in ("rl_module", "optimizer") if key in learner}
            stream = io.BytesIO()
            arrays = (np.ndarray, np.generic)
            torch.save(
                tree.map_structure(
                    lambda x: torch.as_tensor(x) if isinstance(x, arrays) else x, state
                ),
                stream,
            )
            write_whole(staged / STATE, stream.getvalue())
            write_whole(staged / ABOUT, msgspec.json.format(msgspec.json.encode(about), indent=2))
            staged.rename(path)
    except OSError as error:
        raise cannot_write(path, error) from error


def is_checkpoint(path: Path) -> bool:
    """Whether RLlib or Estragon wrote it."""
    return (path / RLLIB_FILE).is_file() or (path / ABOUT).is_file()


def number_of(path: Path) -> int:
    """10 for checkpoint_000010."""
    found = re.search(r"(\d+)$", path.name)
    return int(found[1]) if found else -1
