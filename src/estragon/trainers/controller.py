"""The controller's project folder, `.rlcontroller`: its options, its stop file, its run records."""

import difflib
import json
import os
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from estragon.support.errors import UserError
from estragon.support.files import append_whole, write_json, write_new

FOLDER = Path(".rlcontroller")
STOP_POLL_SEC = 0.25


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

    def training_config(self, shape: type[msgspec.Struct], prefix: str) -> dict[str, Any]:
        """What its file sets for one trainer; unknown keys are reported.

        Args:
            shape: the keys and their types.
            prefix: of that trainer's keys, sb3_ or rllib_; those of the other are ignored.
        """
        path = self.folder / "training_config.json"
        try:
            found = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
            given = {key: value for key, value in found.items() if value not in (None, "")}
            config = msgspec.convert(given, shape, dec_hook=lambda kind, value: kind(value))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from error
        except msgspec.ValidationError as error:
            raise UserError(f"{path}: {str(error).replace('$.', '')}") from error
        except msgspec.DecodeError as error:
            raise UserError(f"{path} is not JSON: {error}") from error
        known = shape.__struct_fields__
        other = {"sb3_": "rllib_", "rllib_": "sb3_"}[prefix]
        unknown = sorted(key for key in found if key not in known and not key.startswith(other))
        if unknown:
            named = ", ".join(key + did_you_mean(key, known) for key in unknown)
            print(f"{path.name}: unknown keys, not used: {named}", file=sys.stderr)
        return {key: getattr(config, key) for key in known if key in given}

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
        return RunRecord(write_new(self.folder / "runs" / wanted, b"{}\n"), name, about)


class RunRecord:
    """The record of a run: a JSON file, and beside it its iterations in `.metrics.jsonl`."""

    def __init__(self, path: Path, name: str, about: dict[str, Any]) -> None:
        """Write the record of a run that starts."""
        self.path = path
        self.metrics_path = path.with_suffix(".metrics.jsonl")
        self._about: dict[str, Any] = {"name": name, "status": "running", "started": utc_now()}
        self._about |= {"pid": os.getpid(), "metrics": self.metrics_path.name, **about}
        write_json(path, self._about)

    def add(self, metric: dict[str, Any]) -> None:
        """Append an iteration."""
        append_whole(self.metrics_path, json.dumps(metric, allow_nan=False).encode() + b"\n")

    def add_checkpoint(self, path: Path) -> None:
        """Note where a checkpoint is, for a run that cannot be asked any more."""
        self._about["checkpoints"] = [*self._about.get("checkpoints", []), str(path)]
        write_json(self.path, self._about)

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


def did_you_mean(key: str, known: Iterable[str]) -> str:
    """A hint at a similar key, or nothing."""
    near = difflib.get_close_matches(key, known, 1)
    return f" (did you mean {near[0]}?)" if near else ""
