"""What an off-policy algorithm remembers, in a file of plain arrays beside its model."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.buffers import DictReplayBuffer

from estragon.support.errors import UserError
from estragon.support.files import writing_whole

FLAT = ("actions", "rewards", "dones", "timeouts")
SEEN = ("observations", "next_observations")


def path_beside(model: Path) -> Path:
    """Where the memory of a model is."""
    return model.with_suffix(".replay.npz")


def save_replay(buffer: DictReplayBuffer, path: Path) -> None:
    """Write it, whole, the oldest step first."""
    with writing_whole(path) as stream:
        np.savez(stream, **_arrays(buffer, _in_order(buffer)))  # type: ignore[arg-type]


def load_replay(buffer: DictReplayBuffer, path: Path) -> int:
    """Fill an empty one; returns how many steps of every agent it holds then."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = dict(file)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    own = _arrays(buffer, slice(0, 0))
    for name, array in own.items():
        if name not in found or found[name].shape[1:] != array.shape[1:]:
            raise UserError(
                f"{path}: {name} is of another game or number of agents; move the file away to "
                "begin with an empty memory"
            )
    count = min(len(found["rewards"]), buffer.buffer_size)
    for name, array in _arrays(buffer, slice(0, count)).items():
        array[:] = found[name][-count:] if count else array
    buffer.pos, buffer.full = count % buffer.buffer_size, count == buffer.buffer_size
    return count


def _in_order(buffer: DictReplayBuffer) -> Any:
    if not buffer.full:
        return slice(0, buffer.pos)
    return np.roll(np.arange(buffer.buffer_size), -buffer.pos)


def _arrays(buffer: DictReplayBuffer, rows: Any) -> dict[str, np.ndarray]:
    found = {name: getattr(buffer, name)[rows] for name in FLAT}
    for name in SEEN:
        found |= {f"{name}/{key}": each[rows] for key, each in getattr(buffer, name).items()}
    return found
