"""Logs matches while they are played, in either engine: a file for each, written when it ends."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from estragon.show.trajectories.anomalies import find_anomalies
from estragon.show.trajectories.records import FORMAT, EpisodeStart, LoggedEyes, LoggedLayout
from estragon.show.trajectories.trajectory import (
    AGENT_NAMES,
    NOBODY,
    Tagging,
    Trajectory,
    time_stamp,
    write_trajectory,
)
from estragon.tag.arenas import Results
from estragon.tag.layout import load_layouts
from estragon.tag.matches import AnyArenas, EngineName, load_player, open_arenas, play_batches
from estragon.tag.rules import GOING_ON, OBS, RAY_CHANNELS, TAGGED, Role, Rules
from estragon.tag.state import vectors


class _Moment(NamedTuple):
    """The watched arenas after a decision; see Trajectory for what the columns are."""

    ticks: np.ndarray
    agents: np.ndarray
    is_seeker: np.ndarray
    sees: np.ndarray
    reaches: np.ndarray
    ray_types: np.ndarray


class TrajectoryLog:
    """Watches matches and writes each to a file of its own.

    Args:
        folder: where the files go.
        engine: who plays.
        players: the name of who plays each role.
        most: how many matches are logged, the first ones.
    """

    def __init__(
        self,
        folder: Path,
        *,
        engine: EngineName,
        players: Mapping[Role, str],
        most: int,
    ) -> None:
        self._folder, self._engine, self._most = folder, engine, most
        self._players = {str(role): name for role, name in players.items()}
        self._stamp = time_stamp()
        self._first = 0
        self._watched = 0
        self._range_m = 0.0
        self._moments: list[_Moment] = []
        self._starts: list[EpisodeStart] = []
        self.written: list[Path] = []
        """The files, in the order in which the matches ended."""

    def begin(self, arenas: AnyArenas, first: int, observations: np.ndarray) -> None:
        """Matches begin, number `first` in the first arena."""
        self._first = first
        self._range_m = arenas.rules.eyes.range_m
        self._watched = max(0, min(arenas.count, self._most - first))
        self._starts = [self._start(arenas, row) for row in range(self._watched)]
        ticks = np.zeros(arenas.count, dtype=np.int64)
        self._moments = [_look(arenas, observations, ticks, self._watched)]

    def see(self, arenas: AnyArenas, results: Results, playing: np.ndarray) -> None:
        """A decision was played."""
        if not playing[: self._watched].any():
            return
        self._moments.append(_look(arenas, results.observations, results.ticks, self._watched))
        for row in np.flatnonzero(playing[: self._watched]):
            if results.ends[row] != GOING_ON:
                tagged = results.ends[row] == TAGGED
                self.keep(self._put_together(int(row), int(results.winners[row]), tagged))

    def keep(self, trajectory: Trajectory) -> None:
        """A match has ended."""
        self.written.append(write_trajectory(trajectory, self._folder, self._stamp))

    def _start(self, arenas: AnyArenas, row: int) -> EpisodeStart:
        rules = arenas.rules
        layout = arenas.layouts[int(arenas.layout_index[row])]
        return EpisodeStart(
            format=FORMAT,
            episode=0,
            arena=self._first + row,
            engine=self._engine,
            seed=arenas.seed,
            rules=rules.rules,
            layout=LoggedLayout(layout.boxes, layout.description, layout.name),
            arena_size_m=(rules.arena.width_m, rules.arena.depth_m),
            agent_size_m=rules.agent.size_m,
            ticks_per_second=rules.physics.ticks_per_second,
            decision_ticks=rules.episode.step_tick_interval,
            time_limit_sec=rules.episode.time_limit_sec,
            eyes=_eyes(rules),
            agents=AGENT_NAMES,
            seeker=AGENT_NAMES[int(arenas.is_seeker[row].argmax())],
            players=self._players,
        )

    def _put_together(self, row: int, winner: int, tagged: bool) -> Trajectory:
        columns = (
            np.stack([part[row] for part in column]) for column in zip(*self._moments, strict=True)
        )
        ticks, agents, is_seeker, sees, reaches, ray_types = columns
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


def _eyes(rules: Rules) -> LoggedEyes:
    eyes = rules.eyes
    return LoggedEyes(eyes.rays, eyes.cone_deg, eyes.range_m, eyes.height_m)


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


def _look(arenas: AnyArenas, observations: np.ndarray, ticks: np.ndarray, watched: int) -> _Moment:
    """A copy of what the first arenas are like now."""
    seen = observations[:watched]
    is_wall = seen[..., OBS.rays + 1 :: RAY_CHANNELS] > 0.5
    is_agent = seen[..., OBS.rays + 2 :: RAY_CHANNELS] > 0.5
    return _Moment(
        ticks=ticks[:watched].astype(np.int64),
        agents=arenas.agents[:watched].copy(),
        is_seeker=arenas.is_seeker[:watched].copy(),
        sees=seen[..., OBS.opponent_visible] > 0.5,
        reaches=seen[..., OBS.rays :: RAY_CHANNELS].copy(),
        ray_types=is_wall.astype(np.int8) + 2 * is_agent.astype(np.int8),
    )


def _tags(
    ticks: np.ndarray, agents: np.ndarray, is_seeker: np.ndarray, tagged: bool
) -> list[Tagging]:
    """When the role was handed over, and the tag that ended the match.

    Who was "it" before counts ticks as "it" until the tag, which may be inside a decision.
    """
    seekers = is_seeker.argmax(axis=1)
    tags = []
    for moment in np.flatnonzero(seekers[1:] != seekers[:-1]):
        attacker = int(seekers[moment])
        as_it = agents["it_ticks"][moment + 1, attacker] - agents["it_ticks"][moment, attacker]
        tags.append(Tagging(int(ticks[moment] + as_it), attacker, 1 - attacker))
    if tagged:
        attacker = int(seekers[-1])
        tags.append(Tagging(int(ticks[-1]), attacker, 1 - attacker))
    return tags
