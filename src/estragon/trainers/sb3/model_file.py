"""A model on disk: SB3's zip with the data to build it again, and its replay buffer beside it.

`PPO.load` reads our files like any other, but unpickles objects in them, which can run any code. We
read our own files without that: the model is built from `estragon.json` and given its tensors. A
file without `estragon.json` can be read for export where `foreign` understands it; to learn or to
play, it is unpickled, and only with --trust.
"""

import io
import pickle
import zipfile
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import DictReplayBuffer
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.save_util import (
    load_from_zip_file,
    recursive_getattr,
    recursive_setattr,
)
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from estragon.support.errors import UserError
from estragon.support.files import check_archive, write_whole, writing_whole
from estragon.trainers.sb3.algorithms import ALGORITHMS, ModelSpec, Sb3Algorithm
from estragon.trainers.sb3.foreign import PickledError, attributes_of, load_foreign

SPEC, NORMALIZATION, PARAMETERS = "estragon.json", "normalize.npz", "parameters.json"
POLICY = "policy.onnx"
READ = ("data", SPEC, NORMALIZATION, PARAMETERS)
COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls")
MAX_BYTES, MAX_READ = 2**33, 2**28
"""Of a whole model unpacked, and of what is read before its tensors."""
NOT_A_MODEL = (
    ValueError,
    EOFError,
    NotImplementedError,
    msgspec.DecodeError,
    zipfile.BadZipFile,
    zlib.error,
)
REPLAY_ARRAYS = ("actions", "rewards", "dones", "timeouts")
REPLAY_OBSERVATIONS = ("observations", "next_observations")
Arrays = dict[str, np.ndarray]


class ModelFile:
    """A file whose plain data was read; its model is loaded later.

    The suffix of the path may be left out. `asked` is the algorithm that the user expects; with
    `trust`, objects in a foreign file may be unpickled, which runs their code. Without it, a
    foreign file can only be read `for_export`.
    """

    def __init__(
        self,
        path: Path,
        asked: str | None = None,
        *,
        trust: bool = False,
        for_export: bool = False,
    ) -> None:
        self.path = path if path.suffix or path.exists() else path.with_suffix(".zip")
        try:
            if self.path.stat().st_size > MAX_BYTES:
                raise ValueError(f"larger than {MAX_BYTES >> 30} GB")
            self._data = self.path.read_bytes()
            check_archive(self._data, MAX_BYTES)
            with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
                if sum(each.file_size for each in archive.infolist() if each.filename in READ) > (
                    MAX_READ
                ):
                    raise ValueError(f"its description is larger than {MAX_READ >> 20} MB")
                members = {name: archive.read(name) for name in archive.namelist() if name in READ}
            if "data" not in members:
                raise ValueError("not saved by Stable-Baselines3")
            self.spec = None
            if SPEC in members:
                self.spec = msgspec.json.decode(members[SPEC], type=ModelSpec)
            """None for a file that Estragon did not make, or made from such a file."""
            self.parameters: dict[str, Any] | None = None
            """Its curriculum and draws, as `RunCurriculum.save` gave them."""
            if PARAMETERS in members:
                self.parameters = msgspec.json.decode(members[PARAMETERS], type=dict[str, Any])
            self.normalization: Arrays | None = None
            if NORMALIZATION in members:
                self.normalization = dict(
                    np.load(io.BytesIO(members[NORMALIZATION]), allow_pickle=False)
                )
            self._attributes = attributes_of(members["data"])
            found = self.spec.algo if self.spec else _detect_algorithm(self._attributes) or asked
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror or error}") from error
        except NOT_A_MODEL as error:
            raise UserError(f"{self.path} is not a model: {error}") from error
        if found is None:
            known = ", ".join(ALGORITHMS)
            raise UserError(f"{self.path}: unknown algorithm; use --algo ({known})")
        if asked is not None and asked != found:
            raise UserError(f"{self.path} was trained with {found}, not {asked}")
        if found not in ALGORITHMS:
            raise UserError(f"{self.path}: made by a newer Estragon, with {found}")
        self.algorithm: Sb3Algorithm = ALGORITHMS[found]
        self._trust = trust
        if self.spec is None and not trust and not for_export:
            raise self._needs_trust()

    @property
    def steps(self) -> int:
        """Steps that it was trained for, if the file says so."""
        return self.spec.counters.get("num_timesteps", 0) if self.spec else 0

    def restore(self, model: BaseAlgorithm) -> None:
        """Give a model that was built from the spec its tensors and counters."""
        if self.spec is None:
            raise ValueError(f"{self.path} has no spec")
        try:
            _, parameters, variables = load_from_zip_file(
                io.BytesIO(self._data), load_data=False, device=model.device
            )
            # A learned entropy coefficient has an optimizer of its own; a given one has none.
            known = model.get_parameters()
            kept = {name: parameters[name] for name in parameters if name in known}
            model.set_parameters(kept, exact_match=False, device=model.device)
        except (RuntimeError, ValueError, KeyError, pickle.UnpicklingError) as error:
            raise UserError(f"{self.path} does not fit this game: {error}") from error
        found: dict[str, Any] = variables or {}
        for name, tensor in found.items():
            if tensor is not None and recursive_getattr(model, name, None) is not None:
                recursive_setattr(model, f"{name}.data", tensor.data)
        for name, value in self.spec.counters.items():
            if name in COUNTERS and hasattr(model, name):
                setattr(model, name, value)

    def load_for_export(self) -> BaseAlgorithm:
        """The model without games: it can act, but not learn."""
        if self.spec is None:
            try:
                return load_foreign(self._data, self._attributes, self.algorithm)
            except PickledError as error:
                if not self._trust:
                    raise self._needs_trust(f" ({error})") from error
            except UserError as error:
                raise UserError(f"{self.path}: {error}") from error
            return self.unpickle(None, "cpu", {})
        model = self.spec.build_without_env()
        self.restore(model)
        return model

    def _needs_trust(self, why: str = "") -> UserError:
        return UserError(
            f"{self.path} was not made by Estragon{why}: loading it runs code that is stored in "
            "it; use --trust if you trust its author"
        )

    def unpickle(self, env: VecEnv | None, device: str, changed: dict[str, Any]) -> BaseAlgorithm:
        """Load a trusted file with SB3 itself."""
        if not self._trust:
            raise self._needs_trust()
        try:
            return self.algorithm.cls.load(io.BytesIO(self._data), env, device, **changed)
        except Exception as error:
            raise UserError(f"cannot use {self.path} here: {error}") from error


def save_model(
    model: BaseAlgorithm,
    path: Path,
    spec: ModelSpec | None,
    normalization: Arrays | None,
    parameters: dict[str, Any] | None = None,
    policy: bytes | None = None,
) -> None:
    """Write a model, and its replay buffer beside it; each file at once.

    `policy` is the same as ONNX: the addon's `GodotRLModel` loads it from the .zip.
    """
    buffer = getattr(model, "replay_buffer", None)
    if isinstance(buffer, DictReplayBuffer):
        save_replay(buffer, replay_path(path))
    stream = io.BytesIO()
    model.save(stream)
    with zipfile.ZipFile(stream, "a") as archive:
        if spec is not None:
            counters = {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)}
            spec = msgspec.structs.replace(spec, counters=counters)
            archive.writestr(SPEC, msgspec.json.format(msgspec.json.encode(spec), indent=2))
        if parameters is not None:
            archive.writestr(PARAMETERS, msgspec.json.encode(parameters))
        if policy is not None:
            archive.writestr(POLICY, policy, zipfile.ZIP_STORED)
        if normalization is not None:
            packed = io.BytesIO()
            np.savez(packed, **normalization)  # type: ignore[arg-type]
            archive.writestr(NORMALIZATION, packed.getvalue())
    write_whole(path, stream.getvalue())


def normalized(env: VecEnv, gamma: float, saved: Arrays | None) -> VecNormalize:
    """The games with normalized rewards and float observations; resumes from saved statistics."""
    space = env.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {}
    keys = [key for key, part in parts.items() if part.dtype == np.float32]
    found = VecNormalize(env, norm_obs=bool(keys), gamma=gamma, norm_obs_keys=keys)
    if saved is None:
        return found
    for name, statistics in _statistics(found).items():
        for part in ("mean", "var", "count"):
            value = saved.get(f"{name}/{part}")
            if value is None or np.shape(value) != np.shape(getattr(statistics, part)):
                raise UserError(f"the saved normalization does not fit '{name}' of this game")
            setattr(statistics, part, float(value) if part == "count" else value.copy())
    return found


def get_normalization(env: VecNormalize) -> Arrays:
    """Running means and variances, by name."""
    found = {
        f"{name}/{part}": np.asarray(getattr(statistics, part))
        for name, statistics in _statistics(env).items()
        for part in ("mean", "var", "count")
    }
    return found | {"epsilon": np.asarray(env.epsilon), "clip": np.asarray(env.clip_obs)}


def replay_path(model: Path) -> Path:
    """The file of a model's replay buffer."""
    return model.with_suffix(".replay.npz")


def save_replay(buffer: DictReplayBuffer, path: Path) -> None:
    """Write a replay buffer as plain arrays, the oldest step first."""
    rows: Any = slice(0, buffer.pos)
    if buffer.full:
        rows = np.roll(np.arange(buffer.buffer_size), -buffer.pos)
    with writing_whole(path) as stream:
        np.savez(stream, **_replay_arrays(buffer, rows))  # type: ignore[arg-type]


def load_replay(buffer: DictReplayBuffer, path: Path) -> None:
    """Fill an empty replay buffer, with the newest steps if there are too many."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = dict(file)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    for name, array in _replay_arrays(buffer, slice(0, 0)).items():
        if name not in found or found[name].shape[1:] != array.shape[1:]:
            raise UserError(
                f"{path}: {name} is of another game or number of agents; move the file away to "
                "start with an empty replay buffer"
            )
    count = min(len(found["rewards"]), buffer.buffer_size)
    for name, array in _replay_arrays(buffer, slice(0, count)).items():
        array[:] = found[name][len(found[name]) - count :]
    buffer.pos, buffer.full = count % buffer.buffer_size, count == buffer.buffer_size


def _replay_arrays(buffer: DictReplayBuffer, rows: Any) -> Arrays:
    found = {name: getattr(buffer, name)[rows] for name in REPLAY_ARRAYS}
    for name in REPLAY_OBSERVATIONS:
        found |= {f"{name}/{key}": each[rows] for key, each in getattr(buffer, name).items()}
    return found


def _statistics(env: VecNormalize) -> dict[str, RunningMeanStd]:
    observed: Any = env.obs_rms if env.norm_obs else {}
    return {f"obs/{key}": each for key, each in observed.items()} | {"reward": env.ret_rms}


def _detect_algorithm(data: dict[str, Any]) -> str | None:
    """By the attributes that SB3 saved as JSON; None if they fit no known algorithm."""
    policy = str(data.get("policy_class", ""))
    if "clip_range" in data:
        if "maskable" in policy:
            return "maskable_ppo"
        return "recurrent_ppo" if "_last_lstm_states" in data or "recurrent" in policy else "ppo"
    if "policy_delay" in data:
        policy_kwargs = data.get("policy_kwargs", {})
        one = isinstance(policy_kwargs, dict) and policy_kwargs.get("n_critics") == 1
        return "ddpg" if one and data["policy_delay"] == 1 else "td3"
    signs = {"gae_lambda": "a2c", "exploration_fraction": "dqn", "target_entropy": "sac"}
    return next((algo for name, algo in signs.items() if name in data), None)
