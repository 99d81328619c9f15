"""The numbers of a run's metrics file, read quickly, as they are appended, and thinned for charts.

Reads `.metrics.jsonl`, logs with `@METRIC` lines and `metrics.csv`; a row of a hundred thousand
costs microseconds, because only the wanted column is decoded.
"""

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
        self._columns: dict[str, _Column] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """The columns with numbers; `policies/left/reward_mean` is nested."""
        if self._is_csv:
            return [name for name in self._header() if name not in TEXT_COLUMNS]
        found = dict.fromkeys(_leaves(self.last_row()))
        return [name for name in found if name != JSON_STEPS]

    def last_row(self) -> dict[str, Any]:
        """The last whole row, empty if there is none."""
        rows = self.last_rows(1)
        return rows[0] if rows else {}

    def last_rows(self, count: int) -> list[dict[str, Any]]:
        """The last whole rows, the newest first."""
        size = self._size()
        header = self._header() if self._is_csv else []
        found: list[dict[str, Any]] = []
        begin = max(0, size - LAST_BYTES)
        lines = [line for block in self._blocks(begin) for line in block.splitlines() if line]
        whole = lines[1:] if begin or self._is_csv else lines
        for line in whole[-count:][::-1]:
            if self._is_csv:
                found.append(
                    dict(zip(header, line.decode(errors="replace").split(","), strict=False))
                )
                continue
            try:
                found.append(msgspec.json.decode(line, type=dict[str, Any]))
            except msgspec.DecodeError:
                continue
        return found

    def points(self, name: str) -> Points:
        """All rows that have a finite number in a column; pages may ask at the same time."""
        with self._lock:
            return self._points(name)

    def _points(self, name: str) -> Points:
        column = self._columns.setdefault(name, _Column())
        size = self._size()
        if size < column.offset:  # another run wrote over it
            column = self._columns[name] = _Column()
        if size > column.offset:
            self._read(name, column)
        if not column.chunks:
            return Points(np.zeros(0), np.zeros(0))
        if len(column.chunks) > 1:
            column.chunks = [np.concatenate(column.chunks)]
        both = column.chunks[0]
        return Points(both[:, 0], both[:, 1])

    def lessons(self) -> list[tuple[float, str]]:
        """Where each lesson of a curriculum began."""
        if self._is_csv or LESSON not in self.last_row():
            return []
        shape = msgspec.defstruct("Row", [(JSON_STEPS, float, 0.0), (LESSON, str, "")])
        decoder: Any = msgspec.json.Decoder(shape)
        found: list[tuple[float, str]] = []
        for block in self._blocks(0):
            for row in decoder.decode_lines(block):
                if not found or found[-1][1] != row.lesson_name:
                    found.append((row.timesteps_total, row.lesson_name))
        return found

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror or error}") from error

    def _header(self) -> list[str]:
        if not self._size():
            return []
        with self.path.open("rb") as stream:
            return stream.readline(LAST_BYTES).decode(errors="replace").strip().split(",")

    def _blocks(self, begin: int) -> Iterator[bytes]:
        """Whole lines from an offset on, many at once; of a log only those with metrics."""
        prefix = PREFIX.encode()
        is_log = self.path.suffix == ".txt"
        try:
            with self.path.open("rb") as stream:
                stream.seek(begin)
                rest = b""
                while block := stream.read(BLOCK_BYTES):
                    end = block.rfind(b"\n") + 1
                    whole, rest = (rest + block[:end], block[end:]) if end else (b"", rest + block)
                    self._read_to = stream.tell() - len(rest)
                    if is_log:
                        lines = whole.splitlines()
                        whole = b"\n".join(x[len(prefix) :] for x in lines if x.startswith(prefix))
                    yield whole
        except FileNotFoundError:
            return
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror or error}") from error

    def _read(self, name: str, column: "_Column") -> None:
        read = self._csv_rows if self._is_csv else self._json_rows
        for block in self._blocks(column.offset):
            try:
                x, y = read(name, block)
                found = np.stack([np.array(x, np.float64), np.array(y, np.float64)], axis=1)
            except (msgspec.DecodeError, UnicodeDecodeError, ValueError, IndexError) as error:
                raise UserError(f"{self.path}: not the metrics of a run: {error}") from error
            column.chunks.append(found[np.isfinite(found).all(axis=1)])
            column.offset = self._read_to

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


class _Column:
    """What was read of a column so far."""

    def __init__(self) -> None:
        self.offset = 0
        self.chunks: list[np.ndarray] = []


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
