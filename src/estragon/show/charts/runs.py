"""Training runs as charts see them: their tables, and which of them are repeats of each other."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from estragon.show.charts.cross_play import CrossPlay, read_cross_play
from estragon.show.charts.curves import Points
from estragon.show.charts.table import EPISODES, STEPS, Axis, Table, read_table
from estragon.support.errors import UserError
from estragon.support.files import read_json

Source = Literal["metrics", "strength", "elo"]

CHANCE = ("run_id", "seed", "started")
PLACE = ("estragon", "python", "torch", "numpy", "machine", "device", "workers", "torch_threads")
"""Of a run's metadata, what may differ between repeats of the same thing."""
WON = {"seeker": 1.0, "hider": 0.0, "draw": 0.5}
NAMED_SETTINGS = 3
"""Kinds of runs that differ in more settings than this are not told apart by them."""


@dataclass(frozen=True)
class Run:
    """One training run, or a file of metrics alone."""

    place: Path
    """Its folder, or its file without the suffix."""
    metrics: Table
    strength: Table | None
    cross_play: CrossPlay | None
    about: dict[str, Any]
    """Its metadata, where there is any."""

    @property
    def tables(self) -> list[Table]:
        """What was read."""
        return [self.metrics] if self.strength is None else [self.metrics, self.strength]

    def points(self, source: Source, column: str, axis: Axis) -> Points:
        """The numbers of a column along an axis, as far as there are any."""
        x, y = self._numbers(source, column, axis)
        there = np.isfinite(y)
        scattered = source == "metrics" and self.metrics.row_is == "episode"
        return Points(x[there], y[there], scattered)

    def _numbers(self, source: Source, column: str, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
        nothing = np.zeros(0), np.zeros(0)
        if source == "metrics":
            values = self.metrics.column(column)
            if column == "seeker_win_rate" and not np.isfinite(values).any():
                values = np.array([WON.get(word, np.nan) for word in self.metrics.texts("winner")])
            return self.metrics.along(axis), values
        if axis is not STEPS:
            return nothing
        if source == "strength":
            if self.strength is None:
                return nothing
            return self.strength.along(axis), self.strength.column(column)
        if self.cross_play is None:
            return nothing
        steps = np.array([stage.agent_steps for stage in self.cross_play.stages])
        return steps / axis.unit, np.array(getattr(self.cross_play.elo, column))


class Kind(NamedTuple):
    """Runs that differ by chance alone."""

    name: str
    runs: tuple[Run, ...]


def read_run(folder: Path) -> Run:
    """The run in a folder: `metrics.csv`, and what else is there by now."""
    strength, cross_play = folder / "strength.csv", folder / "cross_play.json"
    return Run(
        place=folder.absolute(),
        metrics=read_table(folder / "metrics.csv"),
        strength=read_table(strength, [STEPS]) if strength.exists() else None,
        cross_play=read_cross_play(cross_play) if cross_play.exists() else None,
        about=_metadata(folder),
    )


def read_metrics(file: Path) -> Run:
    """A file of metrics alone."""
    whole = file.absolute()
    place = whole.parent if whole.name == "metrics.csv" else whole.with_suffix("")
    return Run(place, read_table(file), None, None, _metadata(file.parent))


def common_axis(runs: Sequence[Run]) -> Axis:
    """Steps where all runs count them, else episodes."""
    for axis in (STEPS, EPISODES):
        if all(axis.column in run.metrics.names for run in runs):
            return axis
    without = next(run for run in runs if EPISODES.column not in run.metrics.names)
    raise UserError(
        f"{without.metrics.path}: no column '{EPISODES.column}', and not all of the others have "
        f"'{STEPS.column}': nothing to draw them along together"
    )


def sort_runs(runs: Sequence[Run]) -> list[Kind]:
    """Put together what are repeats of the same thing, in the order given."""
    for place in (run.place for run in runs):
        if sum(run.place == place for run in runs) > 1:
            raise UserError(f"{place} is given twice")
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        settings = _settings(run)
        key = json.dumps(settings, sort_keys=True) if "approach" in settings else str(run.place)
        kinds.setdefault(key, []).append(run)
    names = _names([repeats[0] for repeats in kinds.values()])
    return [Kind(n, tuple(repeats)) for n, repeats in zip(names, kinds.values(), strict=True)]


def _names(runs: Sequence[Run]) -> list[str]:
    """A name for each kind, of which these are the first: its approach, and what else it takes."""
    names = []
    for run in runs:
        alike = [
            other for other in runs if other.about.get("approach") == run.about.get("approach")
        ]
        names.append(_name_among(run, alike))
    if len(set(names)) < len(names):
        return _short_paths([run.place for run in runs])
    return names


def _name_among(run: Run, alike: Sequence[Run]) -> str:
    if "approach" not in run.about:
        return _short_paths([run.place, *(o.place for o in alike if o is not run)])[0]
    approach = str(run.about["approach"])
    own, others = _settings(run), [_settings(other) for other in alike]
    keys = [key for key in own if any(other.get(key) != own[key] for other in others)]
    if len(keys) > NAMED_SETTINGS:
        return f"{approach} {run.place.name}"
    return ", ".join([approach, *(f"{key} {own[key]}" for key in keys)])


def _settings(run: Run) -> dict[str, Any]:
    """What a run was asked to do, those of its recipe among the rest."""
    settings: dict[str, Any] = {}
    for key, value in run.about.items():
        settings |= value if isinstance(value, dict) else {key: value}
    return {k: v for k, v in settings.items() if v is not None and k not in {*CHANCE, *PLACE}}


def _short_paths(places: Sequence[Path]) -> list[str]:
    """The ends of paths, as long as it takes to tell them apart."""
    names: list[str] = []
    for length in range(1, max(len(place.parts) for place in places) + 1):
        names = ["/".join(place.parts[-length:]) for place in places]
        if len(set(names)) == len(names):
            break
    return names


def _metadata(folder: Path) -> dict[str, Any]:
    path = folder / "metadata.json"
    return read_json(path, dict[str, Any]) if path.is_file() else {}
