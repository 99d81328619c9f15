"""`estragon judge validate`: did a training run go well? Thresholds, NaN, plateaus."""

import csv
import difflib
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import numpy as np

from estragon.judge.statistics import compare
from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json
from estragon.support.runs import LOGS

EVENTS = "events.out.tfevents.*"
ROOTS = (Path("rl_training/logs"), Path("logs/sb3"), Path("logs/rllib"), LOGS / "runs")
"""Where trainers put their runs."""
REWARDS = (
    "rollout/ep_rew_mean",
    "episode_reward_mean",
    "env_runners/episode_return_mean",
    "reward_mean",
)
"""The mean reward per episode, as trainers call it."""
PHYSICS_MS = {
    "performance/physics_frame_time_ratio": 1000.0 / 90.0,
    "custom_metrics/physics_frame_time_ratio": 1000.0 / 90.0,
    "performance/physics_process_time": 1000.0,
}
"""Physics times, as games report them → their unit in ms; the ratio is to a frame of 90 Hz."""
MAY_BE_NAN = ("explained_variance",)
"""Has no value while all returns are the same."""
FINAL_SHARE = 10
"""The final value of a series is the mean of its last tenth."""
FLAT = 0.05
"""Of the range of a series: a smaller gain is none."""
SHORTEST = 8
"""Fewer values say nothing about a trend."""
CONDITION = re.compile(r"\s*(.+?)\s*(>=|<=)\s*(\S+)\s*")
Trend = Literal["plateau", "decline"]


class Check(msgspec.Struct, forbid_unknown_fields=True):
    """One line of the verdict."""

    name: str
    passed: bool
    text: str


class Validation(msgspec.Struct, forbid_unknown_fields=True):
    """What `--json` writes."""

    run: str
    checks: list[Check]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(each.passed for each in self.checks)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        return read_json(path, cls)

    def write(self, path: Path) -> None:
        """Write it."""
        write_json(path, msgspec.to_builtins(self))


def validate_run(
    run: Path,
    *,
    min_reward: float | None = None,
    max_physics_ms: float | None = None,
    require: Sequence[str] = (),
    fail_on: Sequence[Trend] = (),
) -> Validation:
    """Check the metrics in a run's folder, or in one file."""
    series = read_series(run)
    checks = [_check_numbers(series)]
    rewards = next((series[name] for name in REWARDS if name in series), np.zeros(0))
    rewards = rewards[np.isfinite(rewards)]
    if min_reward is not None:
        if len(rewards):
            reached = final_value(rewards)
            text = f"{reached:.4g} at the end (wanted: at least {min_reward:g})"
        else:
            reached, text = -math.inf, "no episode ended"
        checks.append(Check("reward", reached >= min_reward, text))
    if max_physics_ms is not None:
        checks.append(_check_physics(series, max_physics_ms))
    checks += [_check_condition(series, each) for each in require]
    checks.append(_check_trend(rewards, fail_on))
    return Validation(run.as_posix(), checks)


def describe(found: Validation) -> str:
    """Lines for people."""
    lines = [f"reading {found.run}"]
    lines += [f"{'ok  ' if e.passed else 'FAIL'} {e.name}: {e.text}" for e in found.checks]
    failed = ", ".join(each.name for each in found.checks if not each.passed)
    return "\n".join([*lines, f"FAIL: {failed}" if failed else "PASS: all checks"])


def find_run(name: str, roots: Sequence[Path] = ROOTS) -> Path:
    """A path as it is; a name: the latest run of that experiment where trainers put them."""
    if Path(name).exists():
        return Path(name)
    found = [
        path
        for root in roots
        for path in [*root.glob("*"), *root.glob("*/*")]
        if path.is_dir() and re.fullmatch(rf"{re.escape(name)}(_\d+)?", path.name)
    ]
    if not found:
        places = ", ".join(root.as_posix() for root in roots)
        raise UserError(f"no run '{name}': it is no path, and not in {places}")
    return max(found, key=lambda path: (path.stat().st_mtime_ns, path.name))


def read_series(run: Path) -> dict[str, np.ndarray]:
    """By name, all numbers of a run in order, from every kind of file in its folder."""
    files = [run] if run.is_file() else sorted(path for path in run.rglob("*") if path.is_file())
    values: dict[str, list[float]] = {}
    read = 0
    for path in sorted(files, key=lambda path: path.stat().st_mtime_ns):
        if path.match(EVENTS):
            rows = _event_values(path)
        elif path.name.endswith(".jsonl"):
            rows = _json_values(path)
        elif path.suffix == ".csv":
            rows = _csv_values(path)
        else:
            if run.is_file():
                raise UserError(f"{path}: expected TensorBoard events, a .csv or a .jsonl file")
            continue
        read += 1
        for name, value in rows:
            values.setdefault(name, []).append(value)
    if not read:
        raise UserError(f"no metrics in {run}: neither TensorBoard events, .csv nor .jsonl")
    if not values:
        raise UserError(f"{run} has no numbers yet; let the training run longer")
    return {name: np.array(each) for name, each in values.items()}


def final_value(values: np.ndarray) -> float:
    """The mean of the last tenth."""
    return float(values[-max(1, len(values) // FINAL_SHARE) :].mean())


def _event_values(path: Path) -> Iterator[tuple[str, float]]:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util.tensor_util import make_ndarray

    try:
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.HasField("tensor"):
                    number = make_ndarray(value.tensor)
                    if number.size == 1 and number.dtype.kind in "fiu":
                        yield value.tag, float(number.reshape(-1)[0])
    except Exception as error:
        raise UserError(f"{path} is not a file of TensorBoard events: {error}") from error


def _json_values(path: Path) -> Iterator[tuple[str, float]]:
    for number, line in enumerate(_text(path).splitlines(keepends=True), start=1):
        if not line.endswith("\n"):
            return  # it is being written
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number}: expected an object, got {line[:40].strip()}")
        yield from _numbers(row, "")


def _numbers(row: dict[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{key}/")
        elif isinstance(value, int | float):
            yield f"{prefix}{key}", float(value)
        elif value is None and prefix.endswith("learner_stats/"):
            yield f"{prefix}{key}", math.nan  # how `@METRIC` lines write it


def _csv_values(path: Path) -> Iterator[tuple[str, float]]:
    rows = csv.DictReader(io.StringIO(_text(path)))
    for row in rows:
        for name, cell in row.items():
            if name is None or cell is None or isinstance(cell, list):
                raise UserError(f"{path}, line {rows.line_num}: expected {len(row)} cells")
            try:
                yield name, float(cell)
            except ValueError:
                continue  # text, or nothing


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text: {error}") from error


def _check_numbers(series: dict[str, np.ndarray]) -> Check:
    bad = {
        name: int(np.argmin(np.isfinite(values))) + 1
        for name, values in series.items()
        # Never a number: it was not measured. A number, then none: it is broken.
        if not np.isfinite(values).all() and np.isfinite(values).any()
        if not name.endswith(MAY_BE_NAN)
    }
    if not bad:
        rows = max(map(len, series.values()))
        return Check("numbers", passed=True, text=f"{len(series)} series, up to {rows} values")
    first = ", ".join(f"{name} from value {row} on" for name, row in list(bad.items())[:3])
    return Check("numbers", passed=False, text=f"not finite: {first} ({len(bad)} series)")


def _check_physics(series: dict[str, np.ndarray], limit: float) -> Check:
    found = [
        float(np.nanmax(series[name])) * unit for name, unit in PHYSICS_MS.items() if name in series
    ]
    if not found:
        text = "not measured in this run: its game reports no physics time"
        return Check("physics time", passed=True, text=text)
    text = f"{max(found):.3g} ms at most (limit: {limit:g} ms)"
    return Check("physics time", passed=max(found) <= limit, text=text)


def _check_condition(series: dict[str, np.ndarray], condition: str) -> Check:
    matched = CONDITION.fullmatch(condition)
    try:
        name, sign, limit = matched.groups() if matched else ("", "", "")
        wanted = float(limit)
    except ValueError:
        raise UserError(
            f"--require: expected 'NAME>=NUMBER' or 'NAME<=NUMBER', got '{condition}'"
        ) from None
    if name not in series:
        near = difflib.get_close_matches(name, series, 3, 0.3) or list(series)[:3]
        raise UserError(
            f"--require: no metric '{name}' in this run; did you mean {', '.join(near)}?"
        )
    value = final_value(series[name])
    passed = value >= wanted if sign == ">=" else value <= wanted
    return Check(name, passed, f"{value:.4g} at the end (wanted: {sign} {wanted:g})")


def _check_trend(rewards: np.ndarray, fail_on: Sequence[Trend]) -> Check:
    """Compare the last quarter of the rewards with the one before, and with the first."""
    if len(rewards) < SHORTEST:
        return Check("trend", passed=True, text=f"{len(rewards)} rewards are too few to say")
    first, _, third, last = np.array_split(rewards, 4)
    span = float(np.ptp(rewards))
    recent, overall = (compare(part, last, paired=False) for part in (third, first))
    if _is_gain(recent.difference, recent.p_higher, span):
        return Check("trend", passed=True, text="still improving")
    if _is_gain(-recent.difference, recent.p_lower, span):
        text = f"declining: {recent.baseline:.4g} to {recent.current:.4g} in the last half"
        return Check("trend", "decline" not in fail_on, text)
    text = f"plateau at {recent.current:.4g}"
    if not _is_gain(overall.difference, overall.p_higher, span):
        text += f", no better than at the start ({overall.baseline:.4g})"
    return Check("trend", "plateau" not in fail_on, text)


def _is_gain(difference: float, p_value: float | None, span: float) -> bool:
    return difference > FLAT * span and p_value is not None and p_value < 0.05
