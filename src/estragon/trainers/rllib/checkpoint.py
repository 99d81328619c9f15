"""Checkpoints: RLlib's own directory, with what is needed to resume it safely inside.

`Algorithm.from_checkpoint` reads ours like any other. We never use it: RLlib's files hold pickled
objects, which run code when they are opened. We build the algorithm from `estragon.json`, and
restore the tensors of `estragon.pt`. What plain RLlib wrote has neither, and is only opened if the
user trusts it.
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
from gymnasium import spaces

from estragon.support.errors import UserError
from estragon.support.files import cannot_write, check_archive, write_whole
from estragon.trainers.metrics import Counters
from estragon.trainers.spaces import action_layout, to_plain

ABOUT, STATE = "estragon.json", "estragon.pt"
RLLIB_FILE = "rllib_checkpoint.json"
MAX_BYTES = 2**36
CLASS_FILE = "class_and_ctor_args.pkl"
MODULES = Path("learner_group", "learner", "rl_module")


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

    def unpickle_modules(self, *, trust: bool) -> dict[str, tuple[Any, str, PolicySpaces]]:
        """Network, algorithm and spaces of each policy of a checkpoint that plain RLlib wrote."""
        if not trust:
            raise UserError(
                f"{self.path} was not made by Estragon: loading it runs code that is stored in it; "
                "use --trust if you trust its author"
            )
        from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule

        try:
            with (self.path / CLASS_FILE).open("rb") as stream:
                algo = pickle.load(stream)["class"].__name__.lower()  # noqa: S301 - trusted
            modules = MultiRLModule.from_checkpoint(str((self.path / MODULES).absolute()))
            found = {name: (module, algo, _spaces_of(module)) for name, module in modules.items()}
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"cannot use {self.path} here: {error}") from error
        if not found:
            raise UserError(f"{self.path} has no policies")
        return found


def _spaces_of(module: Any) -> PolicySpaces:
    """What a network observes and does, under names of ours; RLlib scales actions to -1..1."""
    sees, does = module.observation_space, module.action_space
    if not isinstance(sees, spaces.Box) or sees.dtype != np.float32:
        raise UserError(f"its network sees {sees}; only numbers in a row can be exported")
    if isinstance(does, spaces.Box):
        does = spaces.Box(-1.0, 1.0, does.shape, np.float32)
    layout = action_layout(does)
    names = [f"action_{n}" for n in range(len(layout))] if len(layout) > 1 else ["action"]
    actions = [
        (name, each["action_type"], each["size"]) for name, each in zip(names, layout, strict=True)
    ]
    row = spaces.Box(-np.inf, np.inf, sees.shape, np.float32)
    return PolicySpaces(to_plain(spaces.Dict({"obs": row})), to_plain(does), tuple(actions))


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
