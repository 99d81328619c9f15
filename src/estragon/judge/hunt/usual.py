"""What is usual in a game, learned in a warm-up: most oracles compare with it."""

import itertools
import re
from typing import Any

import msgspec
import numpy as np

from estragon.judge.hunt.game import Snapshot

STUCK_STEPS = 40
STILL = 0.05
"""A value is still if it changes this little in STUCK_STEPS, compared with what is usual."""
CLOCK_STEPS = 5
"""A clock that does not change in so many steps stands still."""
SPARE, OBS_SPARE = 0.05, 0.3
RARE = 0.2
"""What fewer episodes show may be the bug."""
RANGE_STEPS = 600
"""What a variable does in fewer steps says nothing about its range."""
INFOS = 20
"""So many values of an info say whether it may be negative."""
FEW = 6
"""A number that takes at most so many values tells cells apart."""
APPROACHES = 12
COUNTER = 2.0**31
"""No counter should get so far."""
INSIDE = 0.5
"""The first body is deeper in a thing than a quarter of its size."""
LIVELY = 0.9
"""A value that changes in this share of all windows is expected to go on changing."""
LEAST_WINDOWS = 20
"""Fewer do not tell what is usual."""


class Latch(msgspec.Struct):
    """What happened after a flag took a value, as long as it kept that value."""

    entries: int = 0
    left: int = 0
    """How often it changed again before the episode ended."""
    steps: int = 0
    changes: list[int] = []
    """Of each flag."""


class Usual(msgspec.Struct):
    """What a game does in a healthy warm-up; a trace carries it, so that a replay judges alike."""

    steps: int = 0
    episodes: int = 0
    obs: list[float] = []
    """Largest size of each value."""
    reward: float = 0.0
    step_reward: float = 0.0
    """The largest reward of a step that is not the last one."""
    neutral: dict[str, float] = {}
    """By column of the actions, which of more than two choices changes least."""
    events: dict[str, dict[str, int]] = {}
    """How often rewards that stand out were paid, at ends and in other steps, by value. The
    hunt continues to count."""
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
    span: dict[str, float] = {}
    """How much each lively value changes in STUCK_STEPS of varied actions, usually."""
    still: dict[str, float] = {}
    """For how many windows in a row it is still, at most, in most rollouts."""
    loops: float = 0.0
    """How often a way back to the same state pays, in most rollouts."""
    info_low: dict[str, float] = {}
    variables: tuple[str, ...] = ()
    """Numbers observed, and variables of the game's scripts; the following ones are about them."""
    clocks: dict[str, float] = {}
    """Those that change by the same number in nearly every step."""
    ranges: dict[str, tuple[float, float]] = {}
    """Those that stay within 0 and 1, or at least do not become negative."""
    flags: tuple[str, ...] = ()
    """Those that take few values: they tell cells apart."""
    lasting: tuple[str, ...] = ()
    """Those of them that a reset does not set back: no prefix of actions leads back to them."""
    latches: dict[str, Latch] = {}
    """By flag and value, such as Menu:page=3; "" is any. The hunt continues to learn it."""
    near: dict[str, list[float]] = {}
    """By thing, how near the first body came in the rollouts that came nearest. The hunt continues
    to learn it."""
    entered: list[str] = []
    """Solid things that it was in, in some rollouts."""


def kind_of(body: str) -> str:
    """The name of a body without numbers: those that a game spawns count together."""
    return re.sub(r"@?\d+", "#", body)


def speeds_of(shot: Snapshot, index: int) -> np.ndarray:
    """(ticks,) float64: of a body, as it says, or as its places show."""
    ticks = shot.bodies[:, index]
    speeds: np.ndarray = np.linalg.norm(ticks[:, 3:6], axis=1)
    if not shot.ended.any() and len(ticks) > 1:
        moved = np.linalg.norm(np.diff(ticks[:, :3], axis=0), axis=1) * shot.scene.ticks_per_sec
        speeds[1:] = np.maximum(speeds[1:], moved)
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
        self._windows: list[list[dict[str, float]]] = []
        self._bodies: dict[str, list[np.ndarray]] = {}
        """Greatest speed, jump and depth in each episode."""
        self._loops: list[int] = []
        self._infos: dict[str, list[float]] = {}
        self._values: list[np.ndarray] = []
        """Of each episode: (steps, variables)."""
        self._types: dict[str, str] = {}
        self._first: list[np.ndarray] = []
        """The variables after the first step of always the same seed and action."""
        self._entered: dict[str, int] = {}
        self._effects: list[np.ndarray] = []
        """(steps, 1 + columns): how much an observation changes, and the action."""

    def learn(self, rollout: list[Snapshot], actions: list[np.ndarray]) -> None:
        """Take in a rollout, its reset first, and the actions after it."""
        usual, length = self.usual, 0
        loops, most = PaidLoops(), 0
        tops: dict[str, np.ndarray] = {}
        obs = np.array([each.obs for each in rollout])
        high = np.abs(obs).max(axis=0)
        usual.obs = (np.maximum(high, usual.obs) if usual.obs else high).tolist()
        for shot in rollout[1:]:
            usual.steps += 1
            length += 1
            reward = float(np.abs(shot.rewards).max(initial=0.0))
            usual.reward = max(usual.reward, reward)
            usual.step_reward = max(usual.step_reward, 0.0 if shot.ended.any() else reward)
            if shot.ended.any():
                self._lengths.append(length)
                length, loops = 0, PaidLoops()
            else:
                most = max(most, loops.add(shot, usual))
                self._cpu.append(shot.cpu_ms)
            for info in shot.infos:
                for key, value in numbers_of(info).items():
                    self._infos.setdefault(key, []).append(value)
            self._learn_bodies(shot, tops)
            if shot.ended.any() or shot is rollout[-1]:
                for kind, top in tops.items():
                    self._bodies.setdefault(kind, []).append(top)
                tops = {}
        self._loops.append(most)
        self._learn_state(rollout)
        if len(rollout) > 1:
            scale = np.maximum(high, 1e-3)
            change = np.abs(np.diff(obs, axis=0) / scale).sum(axis=1)
            self._effects.append(np.column_stack([change, np.array(actions[: len(change)])]))
        self._learn_places(rollout, actions)

    def learn_first(self, shot: Snapshot) -> None:
        """Take in the first step of always the same seed and action."""
        if self.usual.variables:
            self._first.append(shot.read(self.usual.variables))

    def finish(self) -> Usual:
        """What is usual."""
        usual = self.usual
        usual.episodes = len(self._lengths)
        lengths = np.array(self._lengths, int)
        usual.longest_episode = int(lengths.max(initial=0))
        # A few that are longer than a limit that others keep may be the bug.
        limits = [
            int(length)
            for length in np.unique(lengths)
            if (lengths == length).sum() >= 3 >= 10 * (lengths > length).mean()
        ]
        usual.is_capped = bool(limits)
        usual.longest_episode = max(limits, default=usual.longest_episode)
        usual.step_cpu_ms = float(np.median(self._cpu)) if self._cpu else 0.0
        # What few episodes show may be the bug: quantiles, not maxima.
        for kind, rows in self._bodies.items():
            tops = np.quantile(rows, 0.85, axis=0).tolist()
            usual.speed[kind], usual.jump[kind], usual.depth[kind] = tops
        usual.loops = float(np.quantile(self._loops, 0.8)) if self._loops else 0.0
        for key, values in self._infos.items():
            # What nearly always is a share of something must not be negative, even if it was.
            is_share = np.mean([0.0 <= value <= 1.0 for value in values]) >= 0.8
            if len(values) >= INFOS:
                usual.info_low[key] = 0.0 if is_share else min(values)
        self._finish_windows()
        self._finish_variables()
        changes, *columns = np.concatenate(self._effects).T if self._effects else [np.zeros(0)]
        for column, values in enumerate(columns):
            choices = np.unique(values)
            if len(choices) > 2 and (choices == np.round(choices)).all():
                means = [changes[values == each].mean() for each in choices]
                usual.neutral[str(column)] = float(choices[int(np.argmin(means))])
        if self._boxes:
            usual.low = np.quantile([low for low, _ in self._boxes], 0.2, axis=0).tolist()
            usual.high = np.quantile([high for _, high in self._boxes], 0.8, axis=0).tolist()
            usual.start_low = np.min(self._starts, axis=0).tolist()
            usual.start_high = np.max(self._starts, axis=0).tolist()
        return usual

    def _learn_bodies(self, shot: Snapshot, tops: dict[str, np.ndarray]) -> None:
        if not len(shot.ticks):
            return
        for index, name in enumerate(shot.scene.bodies):
            kind, speeds = kind_of(name), speeds_of(shot, index)
            jump = 0.0 if shot.ended.any() else np.abs(np.diff(speeds)).max(initial=0.0)
            depth = shot.bodies[:, index, 6].max()
            top = np.nan_to_num([speeds.max(initial=0.0), jump, depth])
            tops[kind] = np.maximum(tops.get(kind, 0.0), top)

    def _learn_places(self, rollout: list[Snapshot], actions: list[np.ndarray]) -> None:
        places = np.array([each.place for each in rollout if each.place])
        if len(places):
            self._boxes.append((places.min(axis=0), places.max(axis=0)))
            self._starts.append(places[0].tolist())
        windows: list[dict[str, float]] = []
        for start in range(1, len(rollout) - STUCK_STEPS, STUCK_STEPS // 2):
            part = rollout[start : start + STUCK_STEPS]
            if any(each.ended.any() for each in part):
                continue
            spans = spans_of(part)
            if is_varied(np.array(actions[start - 1 : start - 1 + STUCK_STEPS])):
                windows.append(spans)
        self._windows.append(windows)

    def _learn_state(self, rollout: list[Snapshot]) -> None:
        usual, scene = self.usual, rollout[-1].scene
        usual.variables = usual.variables or tuple(rollout[-1].names)
        types = "o" * len(rollout[-1].obs) + scene.types
        self._types |= dict(zip(rollout[-1].names, types, strict=True))
        ends = [0, *(i + 1 for i, each in enumerate(rollout) if each.ended.any()), len(rollout)]
        for start, end in itertools.pairwise(ends):
            values = [each.read(usual.variables) for each in rollout[start + 1 : end - 1]]
            if len(values) > 2:
                self._values.append(np.array(values))
        nearest = nearest_of(rollout)
        add_near(usual.near, nearest)
        solid = dict(zip(scene.things, scene.is_solid, strict=True))
        for thing, near in nearest.items():
            if near < INSIDE and solid.get(thing):
                self._entered[thing] = self._entered.get(thing, 0) + 1

    def _finish_variables(self) -> None:
        """Which variables are clocks, keep within a range, or take few values."""
        usual = self.usual
        usual.entered = [thing for thing, count in self._entered.items() if count > 1]
        if not usual.variables or not self._values:
            return
        values = np.concatenate(self._values)
        changes = np.concatenate([np.diff(each, axis=0) for each in self._values])
        spans = np.max([np.ptp(each, axis=0) for each in self._values], axis=0)
        stops = np.mean([longest_stops(each) >= CLOCK_STEPS for each in self._values], axis=0)
        flags, places = [], {name: index for index, name in enumerate(usual.variables)}
        for name, index in places.items():
            column, change = values[:, index], changes[:, index]
            kind, step = self._types.get(name, "f"), float(np.median(change))
            count = len(np.unique(column))
            if np.isnan(column).any():
                continue
            # What only changes between episodes may depend on those before.
            is_count = count > 1 and (spans[index] == 0.0 or bool((np.diff(column) >= 0.0).all()))
            if kind in "bs" or (kind in "io" and 1 < count <= FEW and not is_count):
                flags.append(name)
            elif step and (change * step >= 0.0).all() and stops[index] < 0.15:
                usual.clocks |= {name: step} if np.isclose(change, step).mean() > 0.9 else {}
            if found := range_of([each[:, index] for each in self._values], kind):
                usual.ranges[name] = found
        kept: list[str] = []
        for name in sorted(flags, key=lambda each: self._types[each] == "o"):
            columns = [places[each] for each in [*kept, name]]
            if len(np.unique(values[:, columns], axis=0)) <= max(8, len(values) / 20):
                kept.append(name)
        usual.flags = tuple(kept)
        first = [each[[places[name] for name in kept]] for each in self._first]
        lasts = (np.ptp(first, axis=0) != 0.0) if first else np.zeros(len(kept), bool)
        usual.lasting = tuple(name for name, does in zip(kept, lasts, strict=True) if does)

    def _finish_windows(self) -> None:
        """Which values change in nearly all windows, by how much, and how long they are still."""
        usual, windows = self.usual, [each for part in self._windows for each in part]
        if len(windows) < LEAST_WINDOWS:
            return
        for name in {name for each in windows for name in each}:
            spans = np.array([each.get(name, 0.0) for each in windows])
            median = float(np.median(spans))
            if median <= 1e-3 or (spans > STILL * median).mean() < LIVELY:
                continue
            longest = []
            for part in self._windows:
                count = most = 0
                for each in part:
                    count = count + 1 if each.get(name, 0.0) <= STILL * median else 0
                    most = max(most, count)
                longest.append(most)
            usual.span[name] = median
            usual.still[name] = float(np.quantile(longest, 0.9))


def nearest_of(rollout: list[Snapshot]) -> dict[str, float]:
    """By thing, how near the first body came."""
    found: dict[str, float] = {}
    for shot in rollout:
        for thing, near in zip(shot.scene.things, shot.things[:, 3].tolist(), strict=False):
            found[thing] = min(near, found.get(thing, np.inf))
    return found


def add_near(known: dict[str, list[float]], nearest: dict[str, float]) -> None:
    """Keep the least of all rollouts."""
    for thing, near in nearest.items():
        # The same rollout again says nothing new.
        if np.isfinite(near) and near not in known.get(thing, []):
            known[thing] = sorted([*known.get(thing, []), near])[:APPROACHES]


def longest_stops(values: np.ndarray) -> np.ndarray:
    """(variables,): in how many steps in a row each does not change, at most."""
    count = most = np.zeros(values.shape[1], int)
    for change in np.diff(values, axis=0):
        count = np.where(change == 0.0, count + 1, 0)
        most = np.maximum(most, count)
    return most


class PaidLoops:
    """Counts in an episode how often a way back to the same state has paid."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._last: dict[bytes, tuple[int, float]] = {}
        self._paid: dict[bytes, int] = {}
        self._steps = 0
        self._scale: np.ndarray | None = None

    def add(self, shot: Snapshot, usual: Usual) -> int:
        """Take in a step; how often ways back to its state have paid."""
        self._steps += 1
        self._sum += float(shot.rewards[0]) if len(shot.rewards) else 0.0
        if self._scale is None:
            self._scale = np.maximum(np.array(usual.obs), 1e-3)
        scale = self._scale
        state = np.round(2.0 * shot.obs / scale) if len(scale) == len(shot.obs) else shot.obs
        key = state.astype(np.int32).tobytes()
        step, total = self._last.get(key, (self._steps, self._sum))
        if step < self._steps - 2 and self._sum - total > max(0.1 * usual.reward, 0.05):
            self._paid[key] = self._paid.get(key, 0) + 1
        self._last[key] = (self._steps, self._sum)
        return self._paid.get(key, 0)


def spans_of(window: list[Snapshot]) -> dict[str, float]:
    """By how much each value changes within a window: observations, place, numbers in infos."""
    obs = np.ptp([each.obs for each in window], axis=0)
    spans = {f"observation {index}": value for index, value in enumerate(obs.tolist())}
    places = [each.place for each in window]
    if all(places):
        for axis, value in zip("xyz", np.ptp(places, axis=0).tolist(), strict=True):
            spans[f"place {axis}"] = value
        # Squared, so that a fifth of the usual way is still already: whoever is pushed about moves.
        spans["place"] = float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum()) ** 2
    infos = [numbers_of(each.infos[0]) if each.infos else {} for each in window]
    for key in infos[0]:
        values = [each.get(key, 0.0) for each in infos]
        spans[key] = max(values) - min(values)
    return spans


def is_varied(actions: np.ndarray) -> bool:
    """Whether every column takes clearly different values, so that something should happen."""
    return bool((np.ptp(actions, axis=0) >= 1.0).all() and len(np.unique(actions, axis=0)) >= 4)


def range_of(episodes: list[np.ndarray], kind: str) -> tuple[float, float] | None:
    """What a variable or an observation keeps within, with some to spare, if that is clear.

    That is 0 to 1, or -1 to 1, if it fills that up to both ends; or, for a variable, 0 and more.
    """
    column = np.concatenate(episodes)
    if len(column) < RANGE_STEPS or len(np.unique(column)) < {"o": 20, "f": 10}.get(kind, 3):
        return None
    least = float(np.quantile([each.min() for each in episodes], RARE))
    most = float(np.quantile([each.max() for each in episodes], 1.0 - RARE))
    for low in (0.0, -1.0) if kind in "of" else ():
        inside = ((column >= low - 1e-6) & (column <= 1.0 + 1e-6)).mean()
        edge = 0.05 * (1.0 - low)
        at_ends = min((column <= low + edge).mean(), (column >= 1.0 - edge).mean())
        if inside > 0.97 and at_ends > 0.01:
            spare = (OBS_SPARE if kind == "o" else SPARE) * (1.0 - low)
            return min(low, least) - spare, max(1.0, most) + spare
    if kind == "o" or least < 0.0 or column.max() >= COUNTER:
        return None
    return -(SPARE * most if kind == "f" else 0.5), COUNTER


def numbers_of(info: dict[str, Any]) -> dict[str, float]:
    """The numbers of an info."""
    return {
        key: float(value)
        for key, value in info.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
