"""A training run on disk, found by its name, and the stages of it that were kept."""

import contextlib
from pathlib import Path
from typing import NamedTuple

from estragon.selfplay.checkpoint import NOT_A_CHECKPOINT, damaged, load_checkpoint
from estragon.selfplay.run_folder import LOGS, RunFolder, latest_run
from estragon.selfplay.self_play import Task
from estragon.selfplay.session import task_from
from estragon.support.errors import UserError


class KeptStage(NamedTuple):
    """A moment of a run whose policies are on disk."""

    name: str
    """Its share of the training: 5%."""
    updates: int
    agent_steps: int
    roles: list[str]
    """Who learned."""


def find_run(name: str | None) -> RunFolder:
    """A run by its folder, its id, or the folder it was trained into; by default the latest."""
    if name is not None and not (Path(name) / LOGS).is_dir():
        with contextlib.suppress(UserError):
            return RunFolder.find(Path(), name)
        raise UserError(f"--run {name}: no run with a checkpoint there; look in trainer/logs/runs")
    root = Path(name or "")
    path = latest_run(root / LOGS / "latest_run.txt")
    if not (path / "state.pt").is_file():
        raise UserError(f"the latest run, {path}, has no checkpoint; name another with --run")
    return RunFolder(root, path)


def read_stages(folder: RunFolder) -> tuple[Task, list[KeptStage]]:
    """What a run plays, and its stages in order; one at least."""
    saved = load_checkpoint(folder.state)
    try:
        task = task_from(saved["task"])
        kept = [
            KeptStage(str(name), int(updates), int(steps), [str(role) for role in roles])
            for name, updates, steps, roles in saved["stages"]
        ]
    except NOT_A_CHECKPOINT as error:
        raise damaged(folder.state) from error
    if not kept:
        raise UserError(f"{folder.path}: no stage is finished yet; let the training run on")
    return task, kept
