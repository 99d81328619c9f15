"""The numbers of a run's metrics file, read quickly, as they are appended, and thinned for charts.

Reads `.metrics.jsonl`, logs with `@METRIC` lines and `metrics.csv`; a row of a hundred thousand
costs microseconds, because only the wanted column is decoded.
"""

import contextlib
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from estragon.support.errors import UserError
from estragon.trainers.metrics import PREFIX

POINTS = 1000
"""At most so many are drawn of a line."""
BLOCK_BYTES = 1 << 24
LAST_BYTES = 1 << 17
JSON_STEPS, CSV_STEPS = "timesteps_total", ("agent_steps", "episode")
LESSON = "lesson_name"
TEXT_COLUMNS = {"episode_id", "winner", "terminal_reason"}
ALIASES = {"learner"}
"""Keys of a metric that repeat another one."""


class Points(NamedTuple):
    """A column against the steps of the training."""

    x: np.ndarray
    y: np.ndarray


class MetricsFile:
    """One metrics file; columns that were read are kept, and grow with the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_csv = path.suffix == ".csv"
        self._columns: dict[str, tuple[int, np.ndarray]] = {}
        """By name, up to where it was read, and steps and values: (2, rows)."""
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """The columns with numbers; `policies/left/reward_mean` is nested."""
        if self._is_csv:
            return [name for name in self._header() if name not in TEXT_COLUMNS]
        found = dict.fromkeys(_leaves(self.last_row()))
        return [name for name in found if name != JSON_STEPS]

    def last_row(self) -> dict[str, Any]:
        """The last whole row, empty if there is none."""
        return next(iter(self.last_rows(1)), {})

    def last_rows(self, count: int) -> list[dict[str, Any]]:
        """The last whole rows, the newest first."""
        header = self._header() if self._is_csv else []
        begin = max(0, self._size() - LAST_BYTES)
        lines = [line for block, _ in self._blocks(begin) for line in block.splitlines() if line]
        whole = lines[1:] if begin or self._is_csv else lines
        found: list[dict[str, Any]] = []
        for line in whole[-count:][::-1]:
            with contextlib.suppress(msgspec.DecodeError):
                cells = line.decode(errors="replace").split(",")
                found.append(
                    dict(zip(header, cells, strict=False))
                    if self._is_csv
                    else msgspec.json.decode(line, type=dict[str, Any])
                )
        return found

    def points(self, name: str) -> Points:
        """All rows that have a finite number in a column; pages may ask at the same time."""
        read = self._csv_rows if self._is_csv else self._json_rows
        with self._lock:
            end, known = self._columns.get(name, (0, np.zeros((2, 0))))
            if self._size() < end:  # another run wrote over it
                end, known = 0, np.zeros((2, 0))
            parts = [known]
            for block, next_end in self._blocks(end):
                try:
                    found = np.array(read(name, block), np.float64)
                except (msgspec.DecodeError, UnicodeDecodeError, ValueError, IndexError) as error:
                    raise UserError(f"{self.path}: not the metrics of a run: {error}") from error
                parts.append(found[:, np.isfinite(found).all(axis=0)])
                end = next_end
            known = np.concatenate(parts, axis=1)
            self._columns[name] = end, known
        return Points(*known)

    def lessons(self) -> list[tuple[float, str]]:
        """Where each lesson of a curriculum began."""
        if self._is_csv or LESSON not in self.last_row():
            return []
        shape = msgspec.defstruct("Row", [(JSON_STEPS, float, 0.0), (LESSON, str, "")])
        decoder: Any = msgspec.json.Decoder(shape)
        found: list[tuple[float, str]] = []
        for block, _ in self._blocks(0):
            for row in decoder.decode_lines(block):
                if not found or found[-1][1] != row.lesson_name:
                    found.append((row.timesteps_total, row.lesson_name))
        return found

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _header(self) -> list[str]:
        if not self._size():
            return []
        with self.path.open("rb") as stream:
            return stream.readline(LAST_BYTES).decode(errors="replace").strip().split(",")

    def _blocks(self, begin: int) -> Iterator[tuple[bytes, int]]:
        """Whole lines from an offset on, many at once, and where they end; of a log, metrics."""
        prefix = PREFIX.encode()
        try:
            with self.path.open("rb") as stream:
                stream.seek(begin)
                while block := stream.read(BLOCK_BYTES) + stream.readline():
                    whole = block[: block.rfind(b"\n") + 1]
                    end = stream.tell() - len(block) + len(whole)
                    if self.path.suffix == ".txt":
                        lines = whole.splitlines()
                        whole = b"\n".join(x[len(prefix) :] for x in lines if x.startswith(prefix))
                    yield whole, end
        except FileNotFoundError:
            return
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror or error}") from error

    def _json_rows(self, name: str, block: bytes) -> tuple[list[Any], list[Any]]:
        first, *inner = name.split("/")
        # Only the wanted keys are decoded. They are renamed: any text may be a key.
        shape: Any = float | int | bool | None
        for key in reversed(inner):
            shape = msgspec.defstruct("Part", [("v", shape, None)], rename={"v": key}) | None
        fields = [("x", float | None, None), ("v", shape, None)]
        row = msgspec.defstruct("Row", fields, rename={"x": JSON_STEPS, "v": first}, gc=False)
        decoder: Any = msgspec.json.Decoder(row)
        rows = decoder.decode_lines(block)
        values = [each.v for each in rows]
        for _ in inner:
            values = [None if value is None else value.v for value in values]
        return [each.x for each in rows], values

    def _csv_rows(self, name: str, block: bytes) -> tuple[list[Any], list[Any]]:
        header = self._header()
        steps = next((each for each in CSV_STEPS if each in header), None)
        if steps is None or name not in header:
            return [], []
        x, y = header.index(steps), header.index(name)
        head = ",".join(header).encode()
        cells = (each.split(b",", max(x, y) + 1) for each in block.splitlines() if each != head)
        pairs = [(float(row[x]), float(row[y])) for row in cells if row[x] and row[y]]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def smooth(points: Points, share: float) -> Points:
    """The mean over a window of this share of the rows, ending at each row."""
    window = int(share * len(points.y))
    if window < 2:
        return points
    total = np.concatenate([[0.0], np.cumsum(points.y)])
    last = np.arange(1, len(points.y) + 1)
    first = np.maximum(last - window, 0)
    return Points(points.x, (total[last] - total[first]) / (last - first))


def thin(points: Points, most: int = POINTS) -> Points:
    """At most so many points: the lowest and the highest of each stretch, so no peak is lost."""
    count = len(points.y)
    if count <= most:
        return points
    stretches = most // 2
    size = math.ceil(count / stretches)
    padded = np.pad(points.y, (0, stretches * size - count), mode="edge").reshape(stretches, size)
    begin = np.arange(stretches) * size
    chosen = np.concatenate([begin + padded.argmin(1), begin + padded.argmax(1)])
    chosen = np.unique(np.minimum(chosen, count - 1))
    return Points(points.x[chosen], points.y[chosen])


def _leaves(row: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in row.items():
        if "/" in key or key in ALIASES:
            continue
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) or value is None:
            yield f"{prefix}{key}"
