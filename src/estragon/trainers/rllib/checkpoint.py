"""A checkpoint: RLlib's own folder, with what is needed to go on from it inside.

`Algorithm.from_checkpoint` reads ours as any other. We never do: theirs hold pickled objects, which
run code when they are opened. Ours are made anew from `estragon.json`, and given back the tensors
of `estragon.pt`.
"""

import contextlib
import dataclasses
import io
import pickle
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import torch

from estragon.support.errors import UserError
from estragon.support.files import cannot_write, check_archive, write_whole
from estragon.trainers.run import Counters

ABOUT, STATE = "estragon.json", "estragon.pt"
OF_RLLIB = "rllib_checkpoint.json"
LARGEST = 2**36


class Role(msgspec.Struct, frozen=True):
    """What a policy sees and does, in plain words."""

    sees: dict[str, Any]
    does: dict[str, Any]
    actions: tuple[tuple[str, str, int], ...]


class About(msgspec.Struct, frozen=True):
    """What made a checkpoint, in plain words; part of its folder."""

    algo: str
    settings: dict[str, Any]
    model: dict[str, Any]
    policies: dict[str, Role]
    iteration: int = 0
    timesteps: int = 0
    """Of all agents."""
    env_steps: int = 0
    """Of all games."""
    episodes: int = 0
    checkpoints: int = 0
    models: dict[str, dict[str, Any]] = {}
    """By policy, what differs from `model`."""
    format: int = 1

    def counters(self) -> Counters:
        """The totals to continue from."""
        return Counters(**{f.name: getattr(self, f.name) for f in dataclasses.fields(Counters)})


class Checkpoint:
    """A folder that was looked into."""

    def __init__(self, path: Path) -> None:
        """Look whose it is."""
        self.path = path
        self.about = self._read_about()

    @classmethod
    def find(cls, path: Path, number: int | None = None) -> Self:
        """The checkpoint in a folder, or the latest (or that number's) of a run."""
        if not path.is_dir():
            what = "is no folder" if path.exists() else "does not exist"
            raise UserError(f"{path} {what}: expected a checkpoint, or the folder of a run")
        if number is None and is_checkpoint(path):
            return cls(path)
        found = {
            number_of(each): each for each in path.rglob("checkpoint_*") if is_checkpoint(each)
        }
        if not found:
            raise UserError(f"no checkpoints found in {path}")
        if number is not None and number not in found:
            known = ", ".join(map(str, sorted(found)))
            raise UserError(f"no checkpoint {number} in {path}; there is {known}")
        return cls(found[max(found) if number is None else number])

    @property
    def algo(self) -> str | None:
        """Its algorithm, if it is ours."""
        return self.about.algo if self.about is not None else None

    def state(self) -> dict[str, Any]:
        """Networks and optimisers by `rl_module` and `optimizer`, if it is ours."""
        path = self.path / STATE
        try:
            data = path.read_bytes()
            check_archive(data, LARGEST)
            found: dict[str, Any] = torch.load(io.BytesIO(data), weights_only=True)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from error
        except (ValueError, RuntimeError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
            raise UserError(f"{path} is damaged: {error}") from error
        arrays: dict[str, Any] = _arrays(found)
        return arrays

    def _read_about(self) -> About | None:
        path = self.path / ABOUT
        try:
            return msgspec.json.decode(path.read_bytes(), type=About)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from error
        except msgspec.DecodeError as error:
            raise UserError(f"{path}: {error}") from error


def save(algorithm: Any, path: Path, about: About) -> None:
    """Write the checkpoint of an algorithm, whole."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        algorithm.save_to_path(str(temporary.absolute()))
        learner = algorithm.learner_group.get_state()["learner"]
        state = {key: learner[key] for key in ("rl_module", "optimizer") if key in learner}
        stream = io.BytesIO()
        torch.save(_tensors(state), stream)
        write_whole(temporary / STATE, stream.getvalue())
        write_whole(temporary / ABOUT, msgspec.json.format(msgspec.json.encode(about), indent=2))
        temporary.chmod(0o755)
        temporary.rename(path)
        temporary = None
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(temporary)


def is_checkpoint(path: Path) -> bool:
    """Whether RLlib wrote it."""
    return (path / OF_RLLIB).is_file() or (path / ABOUT).is_file()


def number_of(path: Path) -> int:
    """Of checkpoint_000010, 10."""
    found = re.search(r"(\d+)$", path.name)
    return int(found[1]) if found else -1


def _tensors(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _tensors(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [_tensors(value) for value in state]
    return torch.as_tensor(state) if isinstance(state, np.ndarray | np.generic) else state


def _arrays(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _arrays(value) for key, value in state.items()}
    if isinstance(state, list):
        return [_arrays(value) for value in state]
    return state.numpy() if isinstance(state, torch.Tensor) else state
