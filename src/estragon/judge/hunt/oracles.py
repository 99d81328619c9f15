"""What counts as a bug: oracles that compare every step with what is usual in the game."""

import collections
import re

import msgspec
import numpy as np

from estragon.judge.hunt.game import Snapshot
from estragon.judge.hunt.user_oracles import UserOracles
from estragon.judge.hunt.usual import (
    STUCK_STEPS,
    Usual,
    changes_of,
    kind_of,
    level_of,
    numbers_of,
    speeds_of,
)

OUTSIDE_SEC = 1.0
OVERLAP_TICKS = 24
LEAK_ROLLOUTS = 8
LEAKS = {"nodes": (1, 8), "objects": (2, 64), "memory": (3, 4 * 2**20)}
"""Column of a tick, and the growth over LEAK_ROLLOUTS that counts."""
FRAME_MS = 40.0
JUMP = 5.0
COUNTER = 2**31
EVENTS = 20
"""So many events of a group must be known to judge another one."""


class Finding(msgspec.Struct, frozen=True):
    """A bug that an oracle saw."""

    oracle: str
    key: str
    """What exactly, in words that stay the same from run to run."""
    text: str
    """What was seen, with its numbers."""
    place: list[float] = []

    @property
    def signature(self) -> str:
        """What a replay must show again."""
        return f"{self.oracle}: {self.key}"


class Watcher:
    """All oracles over one game process; restart it with the process."""

    def __init__(self, usual: Usual, user: UserOracles, spaces: list[tuple[float, float]]) -> None:
        """`spaces` are the declared least and greatest value of each number observed."""
        self._usual, self._user = usual, user
        self._declared = np.array(spaces).reshape(-1, 2)
        self._counts: list[np.ndarray] = []
        self._is_warm = False
        self.begin()

    @property
    def is_overdue(self) -> bool:
        """Whether the episode should have ended: it is worth waiting whether it ever does."""
        return self._usual.is_capped and self._length > self._usual.longest_episode + 2

    def begin(self) -> None:
        """A rollout begins, with a reset."""
        self._length = 0
        self._outside: collections.Counter[str] = collections.Counter()
        self._recent: collections.deque[tuple[np.ndarray, list[float], np.ndarray]]
        self._recent = collections.deque(maxlen=STUCK_STEPS)

    def watch(self, shot: Snapshot, action: np.ndarray | None) -> list[Finding]:
        """What is wrong after a step, or after a reset, which has no action."""
        found = self._errors(shot, at_start=not self._is_warm)
        self._is_warm = True
        if shot.lost:
            oracle, _, key = shot.lost.partition(": ")
            errors = [each for each in shot.log if each.place]
            where = f" in {errors[-1].place}" if errors else ""
            text = f"{shot.lost}; {errors[-1].text}" if errors else shot.lost
            return [Finding(oracle, f"{key or 'no answer'}{where}", text, shot.place)]
        if action is None:
            found += self._leaks(shot)
        else:
            self._length += 1
            self._recent.append((shot.obs, shot.place, action))
            found += self._numbers(shot) + self._episode(shot) + self._stuck() + self._frame(shot)
            found += self._events(shot)
        found += self._bodies(shot)
        if shot.ended.any():
            self.begin()
        place = shot.place
        return [msgspec.structs.replace(each, place=each.place or place) for each in found]

    def _errors(self, shot: Snapshot, *, at_start: bool) -> list[Finding]:
        found = []
        for entry in shot.log:
            text = _masked(entry.text)
            line = f"{entry.kind}: {entry.text}" if entry.kind else entry.text
            found += [
                Finding("log pattern", pattern, line)
                for pattern in self._user.log_patterns
                if re.search(pattern, line)
            ]
            if "Godot RL Agents: agent" in entry.text and "sending 0" in entry.text:
                what = re.search(r"(its reward|observation '[^']*')", entry.text)
                found.append(Finding("nan", what[1] if what else text, entry.text))
            elif entry.kind == "SCRIPT ERROR":
                found.append(Finding("script error", f"{text} in {entry.place}", entry.text))
            elif entry.kind == "ERROR" and (entry.place or not at_start):
                found.append(Finding("error", f"{text} in {entry.place}", entry.text))
            elif entry.kind == "WARNING" and entry.place and self._user.warnings:
                found.append(Finding("warning", f"{text} in {entry.place}", entry.text))
        # An error that makes the script fail is one bug, not two.
        failed = {_file(each) for each in found if each.oracle == "script error"}
        found = [each for each in found if each.oracle != "error" or _file(each) not in failed]
        for info in shot.infos:
            found += [
                Finding("expectation", text, f"{text} does not hold: {info}")
                for text in self._user.broken(info, shot.watched)
            ]
            if info.get("bug_reproduced") is True:
                found.append(Finding("signature", str(info.get("target_bug", "bug")), str(info)))
        return found

    def _numbers(self, shot: Snapshot) -> list[Finding]:
        usual, found = self._usual, []
        size = np.abs(shot.obs)
        if len(self._declared) == len(size):
            beyond = np.maximum(self._declared[:, 0] - shot.obs, shot.obs - self._declared[:, 1])
            index = int(beyond.argmax()) if len(beyond) else 0
            if len(beyond) and beyond[index] > 1e-3 * max(1.0, abs(self._declared[index]).max()):
                text = f"observation {index} is {shot.obs[index]:g}"
                found.append(Finding("range", f"observation {index} beyond its space", text))
        if len(usual.obs) == len(size):
            share = size / np.maximum(usual.obs, 1.25)
            index = int(share.argmax()) if len(share) else 0
            before = self._recent[-2][0] if len(self._recent) > 1 else shot.obs
            # What grows step by step may be physics; a jump is not.
            if len(share) and share[index] > 8.0 and abs(before[index]) < 0.3 * size[index]:
                text = f"observation {index} is {shot.obs[index]:g}, usually {usual.obs[index]:g}"
                found.append(Finding("range", f"observation {index} beyond what is usual", text))
        reward = float(np.abs(shot.rewards).max(initial=0.0))
        # A goal that few reach may pay a lot.
        factor = 25.0 if shot.ended.any() else 5.0
        if usual.episodes >= 10 and reward > factor * max(usual.reward, 0.25):
            text = f"a reward of {reward:g}, usually at most {usual.reward:g}"
            found.append(Finding("reward", "beyond what is usual", text))
        for info in shot.infos:
            for key, value in numbers_of(info).items():
                if value < 0 <= usual.info_low.get(key, -1.0):
                    found.append(Finding("counter", f"{key} is negative", f"{key} is {value:g}"))
                if abs(value) >= COUNTER and key != "seed":
                    found.append(Finding("counter", f"{key} overflows", f"{key} is {value:g}"))
        return found

    def _events(self, shot: Snapshot) -> list[Finding]:
        """An event is paid twice if such events nearly always pay half as much."""
        least = 0.4 * self._usual.reward
        for reward, ended in zip(shot.rewards.tolist(), shot.ended.tolist(), strict=True):
            if not least or reward < max(least, 0.1):
                continue  # two penalties at once are nothing unusual
            group = "end" if ended else "step"
            counts = self._usual.events.setdefault(group, {})
            value = f"{reward:.1g}"
            total, common = sum(counts.values()), max(counts, key=counts.__getitem__, default="0")
            ratio = reward / float(common) if float(common) else 0.0
            if total >= EVENTS and counts[common] >= 0.9 * total and 1.8 <= ratio <= 2.2:
                text = f"an event paid {reward:.3g}, {counts[common]} others paid about {common}"
                return [Finding("reward", f"paid twice, {group}", text)]
            counts[value] = counts.get(value, 0) + 1
        return []

    def _episode(self, shot: Snapshot) -> list[Finding]:
        usual = self._usual
        if usual.episodes < 10 or shot.ended.any():
            return []
        factor = 1.5 if usual.is_capped else 10.0
        if self._length <= factor * usual.longest_episode + 10:
            return []
        text = f"no end after {self._length} steps; usually at most {usual.longest_episode}"
        return [Finding("endless episode", "no end", text)]

    def _stuck(self) -> list[Finding]:
        usual = self._usual
        if len(self._recent) < STUCK_STEPS or not usual.changing:
            return []
        if not is_varied(np.array([action for _, _, action in self._recent])):
            return []
        places = [place for _, place, _ in self._recent]
        if usual.travel > 0.0 and all(places):
            if np.ptp(np.array(places), axis=0).max() > 0.01 * usual.travel:
                return []
        elif usual.travel > 0.0:
            return []
        share = float(changes_of(np.array([obs for obs, _, _ in self._recent])).mean())
        if share > 0.25 * usual.changing:
            return []
        text = f"{STUCK_STEPS} varied actions change nothing"
        return [Finding("stuck", "actions change nothing", text)]

    def _frame(self, shot: Snapshot) -> list[Finding]:
        usual = self._usual.step_cpu_ms
        if shot.ended.any() or not usual or shot.cpu_ms < max(FRAME_MS, 12.0 * usual):
            return []
        text = f"a step took {shot.cpu_ms:.0f} ms, usually {usual:.1f} ms"
        return [Finding("frame time", "a step over budget", text)]

    def _bodies(self, shot: Snapshot) -> list[Finding]:
        if not len(shot.ticks):
            return []
        found, bodies, usual = [], shot.bodies, self._usual
        for index, name in enumerate(shot.scene.bodies):
            kind, ticks = kind_of(name), bodies[:, index]
            if np.isnan(ticks[:, :6]).any():
                found.append(Finding("nan", f"position of {kind}", f"{name} is at NaN"))
                continue
            ticks = ticks[np.isfinite(ticks[:, 0])]
            if not len(ticks) or kind not in usual.speed:
                continue
            speeds, most = speeds_of(shot, index), usual.speed[kind]
            speed = float(speeds.max(initial=0.0))
            jumps = np.abs(np.diff(speeds)).max(initial=0.0) > JUMP * usual.jump[kind]
            # A reset moves bodies at once.
            if self._length and most and speed > (3.0 if jumps else 25.0) * max(most, 0.3):
                text = f"{name} moves at {speed:g} per second, usually up to {most:g}"
                found.append(Finding("speed", kind, text))
            found += self._overlap(shot, index, kind, ticks)
            if index == 0:
                found += self._bounds(shot, kind, ticks)
        return found

    def _overlap(self, shot: Snapshot, index: int, kind: str, ticks: np.ndarray) -> list[Finding]:
        size = shot.scene.sizes[index]
        limit = max(0.35 * size, 3.0 * self._usual.depth.get(kind, np.inf))
        deep = ticks[:, 6] > limit
        self._outside[f"depth {index}"] = (
            self._outside[f"depth {index}"] + int(deep.sum()) if deep.all() else 0
        )
        if not size or self._outside[f"depth {index}"] < OVERLAP_TICKS:
            return []
        text = f"{shot.scene.bodies[index]} is {ticks[-1, 6]:.3g} deep in another body"
        return [Finding("overlap", kind, text, ticks[-1, :3].tolist())]

    def _bounds(self, shot: Snapshot, kind: str, ticks: np.ndarray) -> list[Finding]:
        if not self._usual.low:
            return []
        low, high = level_of(shot.scene.bounds, self._usual)
        # Without walls or a floor, only what gets far away is certainly lost.
        margin = (0.12 if shot.scene.bounds else 20.0) * float((high - low).max())
        up = 1 if shot.scene.is_3d else -1
        # Whatever flies may fly as high as the level is wide.
        spare_low, spare_high = np.full(3, margin), np.full(3, margin)
        if up == 1:
            spare_high[1] += float((high - low).max())
        outside = (ticks[:, :3] < low - spare_low) | (ticks[:, :3] > high + spare_high)
        for axis in range(3 if up == 1 else 2):
            count = self._outside[f"axis {axis}"] + int(outside[:, axis].sum())
            self._outside[f"axis {axis}"] = count if outside[:, axis].all() else 0
            if self._outside[f"axis {axis}"] <= OUTSIDE_SEC * shot.scene.ticks_per_sec:
                continue
            falls = up == 1 and axis == 1 and ticks[-1, 1] < low[1]
            oracle = "endless fall" if falls else "out of bounds"
            side = "-" if ticks[-1, axis] < low[axis] else "+"
            text = f"{kind} at {np.round(ticks[-1, :3], 2).tolist()}, the level ends at "
            text += f"{np.round(low, 2).tolist()} and {np.round(high, 2).tolist()}"
            return [Finding(oracle, f"{kind} {side}{'xyz'[axis]}", text, ticks[-1, :3].tolist())]
        return []

    def _leaks(self, shot: Snapshot) -> list[Finding]:
        if not len(shot.ticks):
            return []
        self._counts.append(shot.ticks[-1])
        recent = self._counts[-LEAK_ROLLOUTS - 1 :]
        if len(recent) <= LEAK_ROLLOUTS or len(self._counts) < LEAK_ROLLOUTS + 3:
            return []
        for name, (column, least) in LEAKS.items():
            numbers = np.array([each[column] for each in recent])
            if (np.diff(numbers) > 0).all() and numbers[-1] - numbers[0] >= least:
                text = f"{name} grew from {numbers[0]:.0f} to {numbers[-1]:.0f} in "
                return [Finding("leak", name, f"{text}{LEAK_ROLLOUTS} rollouts")]
        return []


def is_varied(actions: np.ndarray) -> bool:
    """Whether every column takes clearly different values, so that something should happen."""
    return bool((np.ptp(actions, axis=0) >= 1.0).all() and len(np.unique(actions, axis=0)) >= 4)


def _file(finding: Finding) -> str:
    """The file of an error."""
    return finding.key.rpartition(" (")[2]


def _masked(text: str) -> str:
    """Without numbers and addresses, which differ from run to run."""
    return re.sub(r"<[^>]*#-?\d+>|@?\d[\d.]*", "#", text)
