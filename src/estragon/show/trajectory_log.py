"""Logs matches of either engine: one file per match, written at its end."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from estragon.show.trajectory import (
    AGENT_NAMES,
    FORMAT,
    NOBODY,
    Anomaly,
    EpisodeStart,
    LoggedEyes,
    LoggedLayout,
    Tagging,
    Trajectory,
    write_trajectory,
)
from estragon.tag.arenas import Arenas, Results
from estragon.tag.layout import Layout, load_layouts
from estragon.tag.matches import (
    AnyArenas,
    EngineName,
    Player,
    load_player,
    open_arenas,
    play_batches,
)
from estragon.tag.rules import GOING_ON, OBS, RAY_CHANNELS, TAGGED, Role, Rules
from estragon.tag.state import vectors

BATCH = 64
"""Few enough rows that numpy multiplies them on one thread: more threads would mostly wait."""
MAX_OVERLAP_M = 1e-6
"""An overlap above rounding; agents keep a millimetre from everything solid."""


class _Snapshot(NamedTuple):
    """The watched arenas after a decision; the columns are those of `Trajectory`."""

    ticks: np.ndarray
    agents: np.ndarray
    is_seeker: np.ndarray
    sees: np.ndarray
    reaches: np.ndarray
    ray_types: np.ndarray


class TrajectoryLog:
    """A watcher of matches that writes each of the first `most` to its own file in `folder`."""

    def __init__(
        self, folder: Path, *, engine: EngineName, players: Mapping[Role, str], most: int
    ) -> None:
        self._folder, self._engine, self._most = folder, engine, most
        self._players = {str(role): name for role, name in players.items()}
        self._stamp = time.strftime("%Y%m%d-%H%M%S")
        self._watched = 0
        self._range_m = 0.0
        self._snapshots: list[_Snapshot] = []
        self._starts: list[EpisodeStart] = []
        self.written: list[Path] = []
        """The files, in the order in which the matches ended."""

    def begin(self, arenas: AnyArenas, first: int, observations: np.ndarray) -> None:
        """Matches begin, number `first` in the first arena."""
        self._range_m = arenas.rules.eyes.range_m
        self._watched = max(0, min(arenas.count, self._most - first))
        self._starts = [self._start(arenas, row, first + row) for row in range(self._watched)]
        ticks = np.zeros(arenas.count, dtype=np.int64)
        self._snapshots = [_snapshot(arenas, observations, ticks, self._watched)]

    def see(self, arenas: AnyArenas, results: Results, playing: np.ndarray) -> None:
        """A decision was played."""
        if not playing[: self._watched].any():
            return
        self._snapshots.append(
            _snapshot(arenas, results.observations, results.ticks, self._watched)
        )
        for row in np.flatnonzero(playing[: self._watched]):
            if results.ends[row] != GOING_ON:
                tagged = results.ends[row] == TAGGED
                self.keep(self._assemble(int(row), int(results.winners[row]), tagged))

    def keep(self, trajectory: Trajectory) -> None:
        """A match has ended."""
        self.written.append(write_trajectory(trajectory, self._folder, self._stamp))

    def _start(self, arenas: AnyArenas, row: int, number: int) -> EpisodeStart:
        rules = arenas.rules
        eyes = rules.eyes
        layout = arenas.layouts[int(arenas.layout_index[row])]
        return EpisodeStart(
            format=FORMAT,
            arena=number,
            engine=self._engine,
            seed=arenas.seed,
            rules=rules.rules,
            layout=LoggedLayout.of(layout),
            arena_size_m=(rules.arena.width_m, rules.arena.depth_m),
            agent_size_m=rules.agent.size_m,
            ticks_per_second=rules.physics.ticks_per_second,
            decision_ticks=rules.episode.step_tick_interval,
            time_limit_sec=rules.episode.time_limit_sec,
            eyes=LoggedEyes(eyes.rays, eyes.cone_deg, eyes.range_m, eyes.height_m),
            agents=AGENT_NAMES,
            seeker=AGENT_NAMES[int(arenas.is_seeker[row].argmax())],
            players=self._players,
        )

    def _assemble(self, row: int, winner: int, tagged: bool) -> Trajectory:
        columns = zip(*self._snapshots, strict=True)
        ticks, agents, is_seeker, sees, reaches, ray_types = (_of_arena(row, c) for c in columns)
        trajectory = Trajectory(
            start=self._starts[row],
            agents=AGENT_NAMES,
            ticks=ticks,
            positions=vectors(agents, "x", "y", "z"),
            velocities=vectors(agents, "velocity_x", "velocity_y", "velocity_z"),
            forwards=vectors(agents, "forward_x", "forward_z"),
            is_seeker=is_seeker,
            on_floor=agents["on_floor"] == 1,
            immune=agents["immune_ticks"] > 0,
            sees=sees,
            ray_distances=reaches.astype(np.float64) * self._range_m,
            ray_types=ray_types,
            tags=_tags(ticks, agents, is_seeker, tagged),
            anomalies=[],
            winner=winner if winner >= 0 else NOBODY,
            reason="tag" if tagged else "timeout",
        )
        return trajectory._replace(anomalies=find_anomalies(trajectory))


def _snapshot(
    arenas: AnyArenas, observations: np.ndarray, ticks: np.ndarray, watched: int
) -> _Snapshot:
    seen = observations[:watched]
    is_wall = seen[..., OBS.rays + 1 :: RAY_CHANNELS] > 0.5
    is_agent = seen[..., OBS.rays + 2 :: RAY_CHANNELS] > 0.5
    return _Snapshot(
        ticks=ticks[:watched].astype(np.int64),
        agents=arenas.agents[:watched].copy(),
        is_seeker=arenas.is_seeker[:watched].copy(),
        sees=seen[..., OBS.opponent_visible] > 0.5,
        reaches=seen[..., OBS.rays :: RAY_CHANNELS].copy(),
        ray_types=is_wall.astype(np.int8) + 2 * is_agent.astype(np.int8),
    )


def _of_arena(row: int, column: Sequence[np.ndarray]) -> np.ndarray:
    """One arena in every snapshot; `np.stack` takes long to compare the fields of records."""
    found = np.empty((len(column), *column[0].shape[1:]), column[0].dtype)
    for index, part in enumerate(column):
        found[index] = part[row]
    return found


def _tags(
    ticks: np.ndarray, agents: np.ndarray, is_seeker: np.ndarray, tagged: bool
) -> list[Tagging]:
    """The role transfers, and the tag that ended the match.

    The former seeker's `it_ticks` stop at the tag, which may be inside a decision.
    """
    seekers = is_seeker.argmax(axis=1)
    tags = []
    for row in np.flatnonzero(seekers[1:] != seekers[:-1]):
        attacker = int(seekers[row])
        as_it = agents["it_ticks"][row + 1, attacker] - agents["it_ticks"][row, attacker]
        tags.append(Tagging(int(ticks[row] + as_it), attacker, 1 - attacker))
    if tagged:
        attacker = int(seekers[-1])
        tags.append(Tagging(int(ticks[-1]), attacker, 1 - attacker))
    return tags


def find_anomalies(trajectory: Trajectory) -> list[Anomaly]:
    """Every logged tick at which an agent is inside something solid, or its state is not finite."""
    depths = _depths(trajectory)
    finite = np.ones(depths.shape[:2], dtype=bool)
    for values in (trajectory.positions, trajectory.velocities, trajectory.forwards):
        finite &= np.isfinite(values).all(axis=2)
    anomalies = []
    for row, agent in np.argwhere(~finite | (depths > MAX_OVERLAP_M).any(axis=2)):
        what = "a number is not finite"
        if finite[row, agent]:
            deepest = int(np.argmax(depths[row, agent]))
            where = ("the floor", "a wall")[deepest] if deepest < 2 else f"box {deepest - 2}"
            what = f"{depths[row, agent, deepest]:.6f} m inside {where}"
        anomalies.append(Anomaly(int(trajectory.ticks[row]), int(agent), what))
    return anomalies


def _depths(trajectory: Trajectory) -> np.ndarray:
    """How deep each agent is in each solid: (rows, agents, floor + walls + boxes), m."""
    half = trajectory.start.agent_size_m * 0.5
    width_m, depth_m = trajectory.start.arena_size_m
    x, y, z = (trajectory.positions[..., axis] for axis in range(3))
    into_walls = np.maximum(np.abs(x) - width_m * 0.5, np.abs(z) - depth_m * 0.5) + half
    depths = [half - y, into_walls]
    for box in trajectory.layout.boxes:
        (middle_x, middle_z), (size_x, height, size_z) = box.at_m, box.size_m
        overlaps = [
            np.minimum(middle + half - low, high - middle + half)
            for middle, low, high in (
                (x, middle_x - size_x * 0.5, middle_x + size_x * 0.5),
                (y, 0.0, height),
                (z, middle_z - size_z * 0.5, middle_z + size_z * 0.5),
            )
        ]
        depths.append(np.minimum.reduce(overlaps))
    return np.stack(depths, axis=-1)


def log_match(
    folder: Path,
    seeker: str,
    hider: str,
    *,
    rules: Rules,
    layout: str | None = None,
    engine: EngineName = "embedded",
    seed: int = 0,
    first_seeker: int = 0,
) -> Path:
    """Play one match between two players, as `load_player` reads them; returns its log."""
    players = load_player(seeker, rules, "seeker"), load_player(hider, rules, "hider")
    layouts = load_layouts(layout or rules.layout, rules)
    log = TrajectoryLog(folder, engine=engine, players={"seeker": seeker, "hider": hider}, most=1)
    with open_arenas(
        engine, 1, rules=rules, layouts=layouts, seed=seed, first_seeker=first_seeker
    ) as arenas:
        play_batches(arenas, *players, 1, watcher=log)
    return log.written[0]


class _MemoryLog(TrajectoryLog):
    """A log that writes no files."""

    def __init__(self, *, players: Mapping[Role, str], most: int) -> None:
        super().__init__(Path(), engine="embedded", players=players, most=most)
        self.matches: list[Trajectory] = []

    def keep(self, trajectory: Trajectory) -> None:
        self.matches.append(trajectory)


def play_in_memory(
    seeker: Player,
    hider: Player,
    count: int,
    *,
    rules: Rules,
    layouts: Sequence[Layout],
    seed: int,
) -> list[Trajectory]:
    """Matches number 0 to count - 1 of a seed, on the embedded engine."""
    log = _MemoryLog(players={"seeker": seeker.name, "hider": hider.name}, most=count)
    arenas = Arenas(min(BATCH, count), rules=rules, layout=layouts, seed=seed)
    play_batches(arenas, seeker, hider, count, watcher=log)
    return sorted(log.matches, key=lambda match: match.start.arena)
