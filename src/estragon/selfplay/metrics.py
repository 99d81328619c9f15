"""The numbers of a run, in `metrics.csv` and in TensorBoard."""

import csv
import io
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from estragon.selfplay.trainer import Trainer, Update
from estragon.support.errors import UserError
from estragon.support.files import append_whole, cannot_write, write_whole
from estragon.tag.rules import ROLES, TERMS

CONTRACT = (
    "episode",
    "episode_id",
    "reward_mean",
    "reward_sum",
    "steps",
    "updates",
    "advantage_mean",
    "advantage_std",
    "policy_loss",
    "value_loss",
    "seeker_reward_sum",
    "seeker_reward_mean",
    "seeker_steps",
    "seeker_avg_distance",
    "hider_reward_sum",
    "hider_reward_mean",
    "hider_steps",
    "hider_avg_distance",
    "winner",
    "terminal_reason",
    "duration_sec",
)
"""The columns that readers of this file rely on, in this order."""
LOSSES = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "explained_variance")
COLUMNS = (
    *CONTRACT,
    "agent_steps",
    "seeker_win_rate",
    "learning_rate",
    *(f"{role}_{loss}" for role in ROLES for loss in LOSSES),
    *(f"{role}_term_{term}" for role in ROLES for term in TERMS),
    "agent_steps_per_s",
)
Cell = float | int | str | None


def row_of(update: Update, trainer: Trainer) -> dict[str, Cell]:
    """The metrics of one update: means over the episodes that ended in it."""
    row: dict[str, Cell] = dict.fromkeys(COLUMNS)
    row["episode"] = trainer.episodes
    row["episode_id"] = f"update_{update.number:05d}"
    row["updates"] = update.number + 1
    row["agent_steps"] = update.agent_steps
    row["learning_rate"] = update.learning_rate
    losses = list(update.losses.values())
    for name in ("advantage_mean", "advantage_std", "policy_loss", "value_loss"):
        row[name] = sum(getattr(loss, name) for loss in losses) / len(losses)
    for role, loss in update.losses.items():
        row |= {f"{role}_{name}": getattr(loss, name) for name in LOSSES}
    episodes = update.episodes
    if not episodes.count:
        return row
    decisions = episodes.decisions / episodes.count
    ticks_per_second = trainer.task.rules.physics.ticks_per_second
    for number, role in enumerate(ROLES):
        earned = sum(episodes.terms[number]) / episodes.count
        row[f"{role}_reward_sum"] = earned
        row[f"{role}_reward_mean"] = earned / decisions
        row[f"{role}_steps"] = decisions
        row[f"{role}_avg_distance"] = episodes.distance / episodes.decisions
        for term, value in zip(TERMS, episodes.terms[number], strict=True):
            row[f"{role}_term_{term}"] = value / episodes.count
    total = sum(map(sum, episodes.terms)) / episodes.count
    row["reward_sum"] = total
    row["reward_mean"] = total / (2 * decisions)
    row["steps"] = decisions
    row["seeker_win_rate"] = episodes.seeker_wins / episodes.count
    row["winner"] = "seeker" if 2 * episodes.seeker_wins > episodes.count else "hider"
    row["terminal_reason"] = "tag" if 2 * episodes.tags > episodes.count else "timeout"
    row["duration_sec"] = episodes.ticks / episodes.count / ticks_per_second
    return row


def rows_by_episode(update: Update, trainer: Trainer) -> list[dict[str, Cell]]:
    """The same for each of the episodes that ended in an update."""
    first = trainer.episodes - len(update.ended)
    rows = []
    for number, episode in enumerate(update.ended, first + 1):
        row = row_of(replace(update, episodes=episode), trainer)
        rows.append(row | {"episode": number, "episode_id": f"episode_{number:07d}"})
    return rows


class MetricsTable:
    """A CSV file that grows by rows."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        """Start an empty table."""
        self.path = path
        self._columns = list(columns)
        self._rows = 0
        self._new: list[str] = []
        """Rows that are not written yet."""
        self._sizes: dict[Path, int] = {}
        """Bytes that each file had after we wrote to it."""

    def __len__(self) -> int:
        """Rows so far."""
        return self._rows

    def add(self, row: Mapping[str, Cell]) -> None:
        """Append a row; `save` writes it."""
        stream = io.StringIO()
        cells = ["" if row.get(name) is None else row[name] for name in self._columns]
        csv.writer(stream, lineterminator="\n").writerow(cells)
        self._new.append(stream.getvalue())
        self._rows += 1

    def save(self, *copies: Path) -> None:
        """Write the new rows, and the same to `copies`."""
        data = "".join(self._new).encode()
        if self.path not in self._sizes:
            self._write(self.path, self._header + data)
        else:
            append_whole(self.path, data)
            self._sizes[self.path] += len(data)
        self._new.clear()
        for copy in copies:
            if self._is_ours(copy):
                append_whole(copy, data)
                self._sizes[copy] += len(data)
            else:
                self._write(copy, self.path.read_bytes())

    def restore(self, rows: int) -> None:
        """Keep the first `rows` rows of the file; later ones are newer than the checkpoint."""
        try:
            header, *lines = self.path.read_bytes().splitlines(keepends=True)
        except (OSError, ValueError) as error:
            raise UserError(f"cannot resume {self.path}: {error}") from error
        old = header.decode(errors="replace").strip().split(",")
        missing = [name for name in self._columns if name not in old]
        older = [name for name in self._columns if name in old] == old and all(
            "_term_" in name for name in missing
        )
        if not older or len(lines) < rows:
            raise UserError(f"{self.path} does not belong to the checkpoint beside it")
        if missing:  # a run older than a reward term lacks its columns
            cells = csv.reader(line.decode() for line in lines[:rows])
            self._new.clear()
            for row in cells:
                self.add(dict(zip(old, row, strict=True)))
            lines = [line.encode() for line in self._new]
        self._write(self.path, self._header + b"".join(lines[:rows]))
        self._rows = rows
        self._new.clear()

    @property
    def _header(self) -> bytes:
        return (",".join(self._columns) + "\n").encode()

    def _write(self, path: Path, data: bytes) -> None:
        write_whole(path, data)
        self._sizes[path] = len(data)

    def _is_ours(self, path: Path) -> bool:
        """Whether no other process has written to a file since we did."""
        try:
            return path in self._sizes and path.stat().st_size == self._sizes[path]
        except OSError:
            return False


class Board:
    """The same numbers for TensorBoard.

    TensorBoard's own writer works in a thread, where a failure (a full disk) cannot be caught.
    """

    def __init__(self, folder: Path, updates: int) -> None:
        """Write an event file into `folder`, discarding what came after so many `updates`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # tensorboard's own imports
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.record_writer import RecordWriter
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._path = folder / f"events.out.tfevents.{time.time_ns()}.{os.getpid()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._records = RecordWriter(self._path.open("wb"))
        except OSError as error:
            raise cannot_write(self._path, error) from error
        self._write(file_version="brain.Event:2")
        if updates:
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._write(step=updates + 1, session_log=start)

    def add(self, row: Mapping[str, Cell], updates: int) -> None:
        """Write every number of a row."""
        values = [
            self._summary.Value(tag=_grouped(name), simple_value=value)
            for name, value in row.items()
            if isinstance(value, (int, float))
        ]
        self._write(step=updates, summary=self._summary(value=values))

    def close(self) -> None:
        """Close the file."""
        try:
            self._records.close()
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def _write(self, **contents: Any) -> None:
        event = self._event(wall_time=time.time(), **contents)
        try:
            self._records.write(event.SerializeToString())
            self._records.flush()
        except OSError as error:
            raise cannot_write(self._path, error) from error


def _grouped(name: str) -> str:
    """TensorBoard shows what comes before a slash as one group."""
    for role in ROLES:
        if name.startswith(f"{role}_term_"):
            return f"{role}_terms/{name.removeprefix(f'{role}_term_')}"
        if name.startswith(f"{role}_"):
            return f"{role}/{name.removeprefix(f'{role}_')}"
    if name.startswith("parameter_"):
        return f"parameters/{name.removeprefix('parameter_')}"
    return f"run/{name}"
