"""The controller's project folder, `.rlcontroller`: its options, its stop file, its run records."""

import difflib
import json
import re
import sys
import time
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from estragon.support.errors import UserError
from estragon.support.files import append_whole, write_json, write_new

FOLDER = Path(".rlcontroller")
STOP_POLL_SEC = 0.25


class TrainingConfig(msgspec.Struct, frozen=True):
    """`training_config.json`; None: not set."""

    mode: Literal["single_agent", "multi_agent"] | None = None
    env_path: str | None = None
    timesteps: int | None = None
    experiment_name: str | None = None

    sb3_policy_type: Literal["mlp", "cnn", "lstm"] | None = None
    sb3_policy_layers: tuple[int, ...] | None = None
    sb3_viz: bool | None = None
    sb3_speedup: float | None = None
    sb3_n_parallel: int | None = None
    sb3_learning_rate: float | None = None
    sb3_batch_size: int | None = None
    sb3_n_steps: int | None = None
    sb3_gamma: float | None = None
    sb3_gae_lambda: float | None = None
    sb3_ent_coef: float | None = None
    sb3_clip_range: float | None = None
    sb3_vf_coef: float | None = None
    sb3_max_grad_norm: float | None = None

    # Ours; controllers do not write these yet.
    sb3_algo: str | None = None
    sb3_normalize: bool | None = None
    sb3_n_epochs: int | None = None
    sb3_lstm_hidden_size: int | None = None
    sb3_buffer_size: int | None = None
    sb3_learning_starts: int | None = None
    sb3_train_freq: int | None = None
    sb3_gradient_steps: int | None = None
    sb3_tau: float | None = None
    sb3_target_update_interval: int | None = None
    sb3_exploration_fraction: float | None = None
    sb3_exploration_final_eps: float | None = None
    sb3_action_noise: float | None = None

    rllib_algorithm: Literal["ppo", "dqn", "sac", "appo", "impala"] | None = None
    rllib_num_workers: int | None = None
    rllib_train_batch_size: int | None = None
    rllib_sgd_minibatch_size: int | None = None
    rllib_num_sgd_iter: int | None = None
    rllib_rollout_fragment_length: int | None = None
    rllib_env_action_repeat: int | None = None
    rllib_env_speedup: float | None = None
    rllib_checkpoint_frequency: int | None = None
    rllib_stop_mode: Literal["none", "time_seconds", "timesteps"] | None = None
    rllib_stop_file_path: str | None = None

    # Written by some controllers.
    rllib_lr: float | None = None
    rllib_gamma: float | None = None
    rllib_lambda: float | None = None
    rllib_clip_param: float | None = None
    rllib_entropy_coeff: float | None = None
    rllib_vf_loss_coeff: float | None = None
    rllib_grad_clip: float | None = None
    rllib_fcnet_hiddens: tuple[int, ...] | None = None
    rllib_show_window: bool | None = None
    rllib_resume_from: str | None = None
    rllib_stop_time_seconds: float | None = None
    rllib_stop_timesteps_total: int | None = None

    def options(self, prefix: str) -> dict[str, Any]:
        """What it sets for one back end, by key without the back end's prefix."""
        other = {"sb3_": "rllib_", "rllib_": "sb3_"}[prefix]
        found = msgspec.structs.asdict(self)
        return {
            key.removeprefix(prefix): value
            for key, value in found.items()
            if value is not None and key != "mode" and not key.startswith(other)
        }


class Controller:
    """The folder in the current directory, which need not exist."""

    def __init__(self, folder: Path = FOLDER, stop_file: Path | None = None) -> None:
        """Use this folder; the stop file may be elsewhere."""
        self.folder = folder
        self.stop_file = stop_file or folder / "STOP"
        self._checked_at = 0.0

    @property
    def exists(self) -> bool:
        """Whether there is a controller's project here."""
        return self.folder.is_dir()

    def options(self, prefix: str) -> dict[str, Any]:
        """The options of one trainer that its file sets; unknown keys are reported."""
        config, unknown = self.training_config()
        if unknown:
            named = ", ".join(unknown_key(key) for key in unknown)
            print(f"training_config.json: unknown keys, not used: {named}", file=sys.stderr)
        return {key: value for key, value in config.options(prefix).items() if value != ""}

    def training_config(self) -> tuple[TrainingConfig, list[str]]:
        """The content of its file, and the unknown keys in it."""
        path = self.folder / "training_config.json"
        try:
            found = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
            config = msgspec.convert(found, TrainingConfig)
        except FileNotFoundError:
            return TrainingConfig(), []
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from error
        except msgspec.ValidationError as error:
            raise UserError(f"{path}: {str(error).replace('$.', '')}") from error
        except msgspec.DecodeError as error:
            raise UserError(f"{path} is not JSON: {error}") from error
        return config, sorted(set(found) - set(TrainingConfig.__struct_fields__))

    def clear_stop(self) -> None:
        """Remove the stop file of an earlier run."""
        try:
            self.stop_file.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"cannot remove {self.stop_file}: {error.strerror}") from error

    def stop_requested(self) -> bool:
        """Whether the stop file exists; checked a few times per second at most."""
        now = time.monotonic()
        if now - self._checked_at < STOP_POLL_SEC:
            return False
        self._checked_at = now
        return self.stop_file.exists()

    def begin_run(self, name: str, about: dict[str, Any]) -> "RunRecord":
        """Create the record of a run in `runs`."""
        wanted = f"{time.strftime('%Y%m%d-%H%M%S')}_{slug(name)}.json"
        return RunRecord.begin(write_new(self.folder / "runs" / wanted, b"{}\n"), name, about)


class RunRecord:
    """The record of a run: a JSON file, and beside it its iterations in `.metrics.jsonl`."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        """Continue a record."""
        self.path = path
        self.metrics_path = path.with_suffix(".metrics.jsonl")
        self._about = about

    @classmethod
    def begin(cls, path: Path, name: str, about: dict[str, Any]) -> Self:
        """Write the record of a run that starts."""
        record = cls(path, {"name": name, "status": "running", "started": utc_now()})
        record._about |= {"metrics": record.metrics_path.name, **about}
        write_json(path, record._about)
        return record

    def add(self, metric: dict[str, Any]) -> None:
        """Append an iteration."""
        append_whole(self.metrics_path, json.dumps(metric, allow_nan=False).encode() + b"\n")

    def end(self, status: str, **facts: Any) -> None:
        """Write how the run ended: finished, stopped, interrupted or failed."""
        self._about |= {"status": status, "ended": utc_now(), **facts}
        write_json(self.path, self._about)


def slug(name: str) -> str:
    """A name that is safe in a file name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"


def utc_now() -> str:
    """For example 2025-11-05T14:30:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def unknown_key(key: str) -> str:
    """An unknown key, and a similar one that exists."""
    near = difflib.get_close_matches(key, TrainingConfig.__struct_fields__, 1)
    return f"{key} (did you mean {near[0]}?)" if near else key
