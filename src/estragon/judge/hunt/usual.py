"""What is usual in a game, learned in a warm-up: most oracles compare with it."""

import re
from typing import Any

import msgspec
import numpy as np

from estragon.judge.hunt.game import Snapshot

STUCK_STEPS = 40


class Usual(msgspec.Struct):
    """What a game does in a healthy warm-up; a trace carries it, so that a replay judges alike."""

    steps: int = 0
    episodes: int = 0
    obs: list[float] = []
    """Largest size of each value."""
    reward: float = 0.0
    events: dict[str, dict[str, int]] = {}
    """How often rewards that stand out were paid, at ends and in other steps, by value. The
    hunt goes on counting."""
    longest_episode: int = 0
    is_capped: bool = False
    """Whether several episodes ended at exactly that length, as with a time limit."""
    speed: dict[str, float] = {}
    jump: dict[str, float] = {}
    """Of bodies by kind: greatest speed, and greatest change of it within a tick."""
    depth: dict[str, float] = {}
    low: list[float] = []
    high: list[float] = []
    """Where the first body was, in most rollouts."""
    start_low: list[float] = []
    start_high: list[float] = []
    """Where it was after a reset."""
    step_cpu_ms: float = 0.0
    travel: float = 0.0
    """How far the first body gets in STUCK_STEPS, usually."""
    changing: float = 0.0
    """Share of the observation that changes in STUCK_STEPS, usually."""
    info_low: dict[str, float] = {}


def kind_of(body: str) -> str:
    """The name of a body without numbers: those that a game spawns count together."""
    return re.sub(r"@?\d+", "#", body)


def speeds_of(shot: Snapshot, index: int) -> np.ndarray:
    """(ticks,) float64: of a body; from its places if it moves without a velocity."""
    ticks = shot.bodies[:, index]
    speeds: np.ndarray = np.linalg.norm(ticks[:, 3:6], axis=1)
    if not speeds.any() and not shot.ended.any() and len(ticks) > 1:
        speeds = np.linalg.norm(np.diff(ticks[:, :3], axis=0), axis=1) * shot.scene.ticks_per_sec
    finite: np.ndarray = speeds[np.isfinite(speeds)]
    return finite


def level_of(static: list[list[float]], usual: Usual) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest corner of the level.

    On a side on which all starts lie within the static colliders, those are its end. On others,
    such as above a floor, it also is where the first body usually gets.
    """
    low, high = np.array(usual.low), np.array(usual.high)
    if static:
        ends = np.array(static)
        low = np.where(ends[0] <= usual.start_low, ends[0], np.minimum(ends[0], low))
        high = np.where(usual.start_high <= ends[1], ends[1], np.maximum(ends[1], high))
    return low, high


class Warmup:
    """Collects what is usual."""

    def __init__(self) -> None:
        self.usual = Usual()
        self._lengths: list[int] = []
        self._boxes: list[tuple[np.ndarray, np.ndarray]] = []
        self._starts: list[list[float]] = []
        self._cpu: list[float] = []
        self._travels: list[float] = []
        self._changes: list[float] = []

    def learn(self, rollout: list[Snapshot]) -> None:
        """Take in a rollout, its reset first."""
        usual, length = self.usual, 0
        obs = np.array([each.obs for each in rollout])
        high = np.abs(obs).max(axis=0)
        usual.obs = (np.maximum(high, usual.obs) if usual.obs else high).tolist()
        for shot in rollout[1:]:
            usual.steps += 1
            length += 1
            usual.reward = max(usual.reward, float(np.abs(shot.rewards).max(initial=0.0)))
            if shot.ended.any():
                self._lengths.append(length)
                length = 0
            else:
                self._cpu.append(shot.cpu_ms)
            for info in shot.infos:
                for key, value in numbers_of(info).items():
                    usual.info_low[key] = min(usual.info_low.get(key, value), value)
            self._learn_bodies(shot)
        self._learn_places(rollout, obs)

    def finish(self) -> Usual:
        """What is usual."""
        usual = self.usual
        usual.episodes = len(self._lengths)
        usual.longest_episode = max(self._lengths, default=0)
        usual.is_capped = self._lengths.count(usual.longest_episode) >= 3
        usual.step_cpu_ms = float(np.median(self._cpu)) if self._cpu else 0.0
        usual.travel = float(np.median(self._travels)) if self._travels else 0.0
        usual.changing = float(np.median(self._changes)) if self._changes else 0.0
        if self._boxes:
            # Where few rollouts get, the way there may be the bug.
            usual.low = np.quantile([low for low, _ in self._boxes], 0.2, axis=0).tolist()
            usual.high = np.quantile([high for _, high in self._boxes], 0.8, axis=0).tolist()
            usual.start_low = np.min(self._starts, axis=0).tolist()
            usual.start_high = np.max(self._starts, axis=0).tolist()
        return usual

    def _learn_bodies(self, shot: Snapshot) -> None:
        if not len(shot.ticks):
            return
        usual, bodies = self.usual, shot.bodies
        for index, name in enumerate(shot.scene.bodies):
            kind, speeds = kind_of(name), speeds_of(shot, index)
            jump = np.abs(np.diff(speeds)).max(initial=0.0)
            for known, value in (
                (usual.speed, speeds.max(initial=0.0)),
                (usual.jump, jump),
                (usual.depth, bodies[:, index, 6].max()),
            ):
                known[kind] = max(known.get(kind, 0.0), float(np.nan_to_num(value)))

    def _learn_places(self, rollout: list[Snapshot], obs: np.ndarray) -> None:
        places = np.array([each.place for each in rollout if each.place])
        if len(places):
            self._boxes.append((places.min(axis=0), places.max(axis=0)))
            self._starts.append(places[0].tolist())
        for start in range(0, len(rollout) - STUCK_STEPS, STUCK_STEPS):
            part = slice(start, start + STUCK_STEPS)
            if any(each.ended.any() for each in rollout[part]):
                continue
            self._changes.append(float(changes_of(obs[part]).mean()))
            if len(places) == len(rollout):
                self._travels.append(float(np.ptp(places[part], axis=0).max()))


def changes_of(obs: np.ndarray) -> np.ndarray:
    """(values,) bool: which of them change within a window (steps, values)."""
    changed: np.ndarray = np.ptp(obs, axis=0) > 1e-4 * np.maximum(1.0, np.abs(obs).max(axis=0))
    return changed


def numbers_of(info: dict[str, Any]) -> dict[str, float]:
    """The numbers of an info."""
    return {
        key: float(value)
        for key, value in info.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
