"""Rounds of a live run: who begins as the seeker in which, and for how long."""

import csv
import io
import time
from dataclasses import dataclass
from pathlib import Path

from estragon.support.files import write_whole
from estragon.tag.rules import Role

COLUMNS = ("round_index", "role", "start_ts", "end_ts", "log_path")


@dataclass(frozen=True)
class Round:
    """A stretch of play by one Godot."""

    index: int
    role: Role
    """Of the first agent, when an episode begins."""
    seconds: float


def rounds_of(roles: list[Role], seconds: float) -> list[Round]:
    """As many rounds as roles, sharing `seconds`."""
    return [Round(index, role, seconds / len(roles)) for index, role in enumerate(roles, 1)]


def alternating(first: Role, count: int) -> list[Role]:
    """Roles that change from round to round."""
    other: Role = "hider" if first == "seeker" else "seeker"
    return [first if index % 2 == 0 else other for index in range(count)]


class RoundLog:
    """`self_play_rounds.csv`: one row a round that has ended."""

    def __init__(self, path: Path) -> None:
        """Begin an empty one."""
        self._path = path
        self._rows: list[list[object]] = []

    def add(self, played: Round, start: float, log: Path) -> None:
        """Note a round that began at `start`, a time of day, and ends now."""
        times = [_stamp(start), _stamp(time.time())]
        self._rows.append([played.index, played.role, *times, log.name])
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(self._rows)
        write_whole(self._path, stream.getvalue().encode())


def _stamp(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(moment))
