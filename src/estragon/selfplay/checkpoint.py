"""What a run keeps on disk: its file names, its checkpoint and its stages."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from estragon.selfplay.config import Task
from estragon.support.errors import UserError
from estragon.support.files import check_archive, write_whole
from estragon.support.runs import RunFolder
from estragon.tag.layout import Layout
from estragon.tag.rules import Rules
from estragon.tag.variation import Variation

LARGEST_FILE = 2**32
FORMAT, VERSION = "estragon-run", 1
NOT_A_CHECKPOINT = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)


class TagRun(RunFolder):
    """The directory of a tag run; other tools know its file names."""

    @property
    def state(self) -> Path:
        """The checkpoint."""
        return self.path / "state.pt"

    @property
    def metadata(self) -> Path:
        """The settings of the run."""
        return self.path / "metadata.json"

    @property
    def metrics(self) -> Path:
        """One row per update."""
        return self.path / "metrics.csv"

    @property
    def strength(self) -> Path:
        """One row per stage."""
        return self.path / "strength.csv"

    @property
    def cross_play(self) -> Path:
        """Win rates of every stage against every other."""
        return self.path / "cross_play.json"

    @property
    def tensorboard(self) -> Path:
        """The directory of the event files."""
        return self.path / "tensorboard"

    def checkpoint(self, role: str, updates: int, suffix: str = ".pt") -> Path:
        """The policy of a stage."""
        return self.path / "checkpoints" / f"{role}_{updates:05d}{suffix}"

    def policy(self, name: str) -> Path:
        """The newest policy in the output directory: `policy_seeker`, `policy_hider`, `policy`."""
        return self.root / "trainer" / f"{name}.pt"


class StageRecord(NamedTuple):
    """A stage of a run whose policies are on disk."""

    name: str
    """Its share of the budget: 5%."""
    updates: int
    agent_steps: int
    roles: list[str]
    """The roles that learned."""


def read_stages(run: TagRun) -> tuple[Task, list[StageRecord]]:
    """Read the task of a run and its stages in order; at least one."""
    saved = load_checkpoint(run.state)
    try:
        task = task_from(saved["task"])
        stages = [
            StageRecord(str(name), int(updates), int(steps), [str(role) for role in roles])
            for name, updates, steps, roles in saved["stages"]
        ]
    except NOT_A_CHECKPOINT as error:
        raise damaged(run.state) from error
    if not stages:
        raise UserError(f"{run.path}: no stage is finished yet; let the training continue")
    return task, stages


def save_checkpoint(path: Path, contents: dict[str, Any]) -> None:
    """Write tensors and plain data as one whole file."""
    stream = io.BytesIO()
    torch.save({"format": FORMAT, "version": VERSION, **contents}, stream)
    write_whole(path, stream.getvalue())


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read what `save_checkpoint` wrote; refuse anything else, and never run its code."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read checkpoint {path}: {error.strerror or error}") from error
    try:
        check_archive(data, LARGEST_FILE)
        contents = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
        fits, version = contents["format"] == FORMAT, int(contents["version"])
    except Exception as error:
        raise damaged(path) from error
    if not fits:
        raise damaged(path)
    if version != VERSION:
        raise UserError(f"{path}: made by another version ({version}, this one reads {VERSION})")
    return dict(contents)


def damaged(path: Path) -> UserError:
    """What to say of a file that is no checkpoint of ours, or no longer one."""
    return UserError(f"{path} is not a checkpoint of a run, or it is damaged; train a new run")


def plain_task(task: Task) -> dict[str, Any]:
    """A task as plain data, for a checkpoint."""
    return {
        "rules": msgspec.to_builtins(task.rules),
        "layouts": msgspec.to_builtins(task.layouts),
        "seed": task.seed,
        "role": task.role,
        "opponent": task.opponent,
        "variation": None if task.variation is None else task.variation.save(),
    }


def task_from(saved: dict[str, Any]) -> Task:
    """Read what `plain_task` gave."""
    variation = saved.get("variation")
    return Task(
        rules=msgspec.convert(saved["rules"], Rules),
        layouts=msgspec.convert(saved["layouts"], list[Layout]),
        seed=int(saved["seed"]),
        role=saved["role"],
        opponent=str(saved["opponent"]),
        variation=None if variation is None else Variation.restore(variation),
    )
