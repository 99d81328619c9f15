"""Where a run keeps its things, under names that other tools know."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from estragon.support.errors import UserError
from estragon.support.files import new_folder, write_whole

LOGS = Path("trainer") / "logs"
LATEST_RUN = LOGS / "latest_run.txt"
"""A file with one line: the folder of the newest run."""


@dataclass(frozen=True)
class RunFolder:
    """One run's folder inside `trainer/logs/runs/<approach>/<run_id>/`."""

    root: Path
    """The folder that holds `trainer/`, `charts/` and the films."""
    path: Path

    @classmethod
    def new(cls, root: Path, approach: str) -> "RunFolder":
        """A folder that no run has used."""
        return cls(root, new_folder(root / LOGS / "runs" / approach))

    @classmethod
    def find(cls, root: Path, name: str) -> "RunFolder":
        """The run called `name` (a folder, a run id, or `latest`)."""
        logs = root / LOGS
        if name == "latest":
            try:
                name = (logs / "latest_run.txt").read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                raise UserError(f"no run to go on with in {logs}; train without --resume") from None
        approaches = sorted((logs / "runs").glob("*"))
        for path in (Path(name), logs / name, *(approach / name for approach in approaches)):
            with contextlib.suppress(OSError, ValueError):
                if (path / "state.pt").is_file():
                    return cls(root, path)
        raise UserError(f"--resume {name}: no run with a checkpoint there; look in {logs / 'runs'}")

    @property
    def run_id(self) -> str:
        """The run's own name."""
        return self.path.name

    @property
    def state(self) -> Path:
        """Everything needed to go on."""
        return self.path / "state.pt"

    @property
    def lock(self) -> Path:
        """Held by the process that trains."""
        return self.path / "lock"

    @property
    def metrics(self) -> Path:
        """One row an update."""
        return self.path / "metrics.csv"

    @property
    def strength(self) -> Path:
        """One row a stage."""
        return self.path / "strength.csv"

    @property
    def cross_play(self) -> Path:
        """Who beats whom."""
        return self.path / "cross_play.json"

    @property
    def metadata(self) -> Path:
        """What the run was asked to do, and on what."""
        return self.path / "metadata.json"

    @property
    def tensorboard(self) -> Path:
        """Event files."""
        return self.path / "tensorboard"

    def checkpoint(self, role: str, updates: int, suffix: str = ".pt") -> Path:
        """A stage's policy."""
        return self.path / "checkpoints" / f"{role}_{updates:05d}{suffix}"

    def policy(self, name: str) -> Path:
        """The newest policy of the newest run: `policy_seeker`, `policy_hider` or `policy`."""
        return self.root / "trainer" / f"{name}.pt"

    def clear_leftovers(self) -> None:
        """Remove what a killed run was writing (`files.write_whole`) and never put in its place."""
        for path in self.path.rglob(".*"):
            with contextlib.suppress(OSError):
                path.unlink()

    def mark_latest(self) -> None:
        """Let `latest_run.txt` name this run."""
        logs = self.root / LOGS
        inside = self.path.is_relative_to(logs)
        name = self.path.relative_to(logs) if inside else self.path.absolute()
        write_whole(logs / "latest_run.txt", f"{name.as_posix()}\n".encode())


def latest_run(pointer: Path = LATEST_RUN) -> Path:
    """The folder that `latest_run.txt` names, absolute or from where that file lies."""
    try:
        named = pointer.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"no run given and no {pointer} to name one; give --run DIR") from error
    if not named or "\n" in named:
        raise UserError(f"{pointer}: expected one line, the folder of a run; or give --run DIR")
    return pointer.parent / named
