"""Run directories: create one per training run, and find a run by path, by id or as the latest."""

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from estragon.support.errors import UserError
from estragon.support.files import write_whole

LOGS = Path("trainer", "logs")
"""Where tag runs are kept, inside the output directory."""
LATEST_RUN = LOGS / "latest_run.txt"
"""A file with one line: the latest run directory, relative to this file's."""


@dataclass(frozen=True)
class RunFolder:
    """The directory of one run; no run writes into the directory of another."""

    root: Path
    """The output directory that the run belongs to."""
    path: Path

    @classmethod
    def numbered(cls, root: Path, name: str) -> Self:
        """Create `<root>/<name>_<number>`, with the first free number from 1."""
        if Path(name).name != name:
            raise UserError(f"experiment_name: expected a name, not a path, got '{name}'")
        return cls(root, create_unique(root, (f"{name}_{i}" for i in itertools.count(1))))

    @classmethod
    def timestamped(cls, root: Path, approach: str) -> Self:
        """Create `<root>/trainer/logs/runs/<approach>/<time>`."""
        return cls(root, create_unique(root / LOGS / "runs" / approach, timestamps()))

    @classmethod
    def find(cls, root: Path, name: str = "latest") -> Self:
        """Find a tag run that has a checkpoint in an output directory.

        `name` is a run directory, a run id, another output directory (its latest run) or `latest`.
        """
        with contextlib.suppress(OSError, ValueError):  # not every string is a path
            if name != "latest" and (Path(name) / LOGS).is_dir():
                root, name = Path(name), "latest"
        if name == "latest":
            candidates = [latest_run(root)]
        else:
            logs = root / LOGS
            candidates = [Path(name), logs / name]
            candidates += [approach / name for approach in sorted((logs / "runs").glob("*"))]
        for path in candidates:
            with contextlib.suppress(OSError, ValueError):
                if (path / "state.pt").is_file():
                    return cls(root, path)
        tried = candidates[0] if name == "latest" else name
        raise UserError(
            f"no run with a checkpoint (state.pt): {tried}; look in {root / LOGS / 'runs'}"
        )

    @property
    def run_id(self) -> str:
        """The name of the directory."""
        return self.path.name

    @property
    def lock(self) -> Path:
        """The lock file of the process that trains."""
        return self.path / "lock"

    def mark_latest(self) -> None:
        """Make `latest_run.txt` name this run."""
        logs = self.root / LOGS
        inside = self.path.is_relative_to(logs)
        name = self.path.relative_to(logs) if inside else self.path.absolute()
        write_whole(self.root / LATEST_RUN, f"{name.as_posix()}\n".encode())

    def clear_leftovers(self) -> None:
        """Remove the temporary files of `write_whole` that a killed process left behind."""
        for path in self.path.rglob(".*"):
            with contextlib.suppress(OSError):
                path.unlink()


def latest_run(root: Path = Path()) -> Path:
    """The run directory that `latest_run.txt` names, absolute or relative to that file."""
    pointer = root / LATEST_RUN
    try:
        name = pointer.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"no run found: cannot read {pointer}; train first, or name a run") from (
            error
        )
    if not name or "\n" in name:
        raise UserError(f"{pointer}: expected one line, a run directory, got {name!r}; name a run")
    return pointer.parent / name


def create_unique(parent: Path, names: Iterable[str]) -> Path:
    """Create a directory in `parent` under the first of `names` that is free."""
    for name in names:
        path = parent / name
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            if not parent.is_dir():
                raise UserError(f"cannot create {path}: {parent} is not a directory") from None
        except OSError as error:
            raise UserError(f"cannot create {path}: {error.strerror or error}") from error
        else:
            return path
    raise AssertionError("names ran out")


def timestamps() -> Iterator[str]:
    """The time now, then with numbers after it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return itertools.chain([stamp], (f"{stamp}-{i}" for i in itertools.count(1)))
