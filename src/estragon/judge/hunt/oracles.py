"""What counts as a bug: oracles that compare every step with what is usual in the game."""

import collections
import re

import msgspec
import numpy as np

from estragon.judge.hunt.game import Snapshot
from estragon.judge.hunt.locks import LOCK_STEPS, FlagWatch
from estragon.judge.hunt.user_oracles import UserOracles
from estragon.judge.hunt.usual import (
    APPROACHES,
    CLOCK_STEPS,
    COUNTER,
    INSIDE,
    STILL,
    STUCK_STEPS,
    PaidLoops,
    Usual,
    add_near,
    is_varied,
    kind_of,
    level_of,
    numbers_of,
    spans_of,
    speeds_of,
)

OUTSIDE_SEC = 1.0
OVERLAP_TICKS = 24
LEAKS = {"nodes": (1, 8, 12), "objects": (2, 64, 12), "memory": (3, 2**19, 16)}
"""Column of a tick, and the growth that counts, over so many resets."""
LEAK_SETTLES = 3
"""A game may still grow in its first rollouts."""
STILL_WINDOWS = 5
PAID_LOOPS = 5
REPEATED_STEPS = 12
"""So many steps after a reset are compared with those of other rollouts with the same actions."""
FRAME_MS = 40.0
LEVELS_PER_SEC = 20.0
"""A player that crosses so many levels a second is too fast, however usual that is."""
JUMP = 5.0
NAN = -1e308
"""How the probe reports a variable that is NaN."""
TIGHT = 1.35
TOUCHES = 4.0
"""What stops the player stops it at much the same distance, and not far away."""
PASSED, SIBLINGS = 0.6, 8
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
        self._obs_scale = np.maximum(np.array(usual.obs), 1.25)
        self._level: tuple[object, np.ndarray, np.ndarray] = (None, np.zeros(3), np.zeros(3))
        self._counts: list[np.ndarray] = []
        self._is_warm = False
        everything = (-np.inf, np.inf)
        ranges = [usual.ranges.get(each, everything) for each in usual.variables]
        self._ranges = np.array(ranges).reshape(-1, 2).T
        self._clock_steps = np.array([usual.clocks.get(each, 0.0) for each in usual.variables])
        self._is_clock = self._clock_steps != 0.0
        self._met: list[str] = []
        """The things of the scene, their kinds, and how near the first body came."""
        self._kinds: list[str] = []
        self._nearest = np.zeros(0)
        self._places = np.zeros((0, 3))
        self.flags = FlagWatch(usual)
        self._states: dict[int, tuple[np.ndarray, int]] = {}
        """By seed and actions: what was seen, and how often."""
        self._unsteady: np.ndarray | None = None
        """Which values differ although seed and actions are the same, and nothing else happened."""
        self.begin()

    @property
    def is_overdue(self) -> bool:
        """Whether it is worth playing on: the episode should have ended, or something is stuck."""
        is_late = self._usual.is_capped and self._length > self._usual.longest_episode + 2
        is_late |= self.flags.steps_open > 0
        return is_late or any(windows > 2 for windows in self._still.values())

    def growth(self, leak: str) -> np.ndarray:
        """(rollouts,): by how much what leaks has grown in each."""
        column = LEAKS.get(leak, (1,))[0]
        grown: np.ndarray = np.diff([each[column] for each in self._counts])
        return grown

    def begin(self, seed: int | None = None) -> None:
        """A rollout begins, with a reset; or, without a seed, the next episode."""
        self._path = None if seed is None else hash(seed)
        self.flags.end()
        self.flags = FlagWatch(self._usual)
        if seed is not None:
            self._remember()
        self._length, self._varied = 0, False
        self._values: np.ndarray | None = None
        self._stopped = np.zeros(len(self._usual.variables), int)
        self._loops = PaidLoops()
        self._still: collections.Counter[str] = collections.Counter()
        self._outside: collections.Counter[str] = collections.Counter()
        self._recent: collections.deque[tuple[Snapshot, np.ndarray]]
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
            self._recent.append((shot, action))
            found += self._numbers(shot) + self._episode(shot) + self._stuck() + self._frame(shot)
            found += self._events(shot) + self._farming(shot) + self._variables(shot)
        found += self._repeats(shot, action)
        found += self._bodies(shot) + self._things(shot)
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
            share = size / self._obs_scale
            index = int(share.argmax()) if len(share) else 0
            before = self._recent[-2][0].obs if len(self._recent) > 1 else shot.obs
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
                if value < -1e-3 and usual.info_low.get(key, -1.0) >= 0:
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

    def _variables(self, shot: Snapshot) -> list[Finding]:
        """A clock that stands still, or a variable that leaves the range that it has kept."""
        usual, found = self._usual, []
        if not usual.variables:
            return []
        if self._length % 10 == 0:
            actions = np.array([action for _, action in self._recent])
            self._varied = len(actions) == STUCK_STEPS and is_varied(actions)
        # The last step of an episode may show the variables of the next one.
        if not shot.ended.any() and (lock := self.flags.add(shot, varied=self._varied)):
            text = f"after {lock} much of what usually changes never does, in {LOCK_STEPS} steps"
            found.append(Finding("lock", kind_of(lock), text))
        values = shot.read(usual.variables)
        before, self._values = self._values, values
        for index in np.flatnonzero(values == NAN):
            name = usual.variables[index]
            found.append(Finding("nan", kind_of(name), f"{name} is NaN"))
        beyond = np.maximum(self._ranges[0] - values, values - self._ranges[1])
        for index in np.flatnonzero((beyond > 0.0) & (values != NAN)):
            name, (low, high) = usual.variables[index], self._ranges[:, index]
            usually = f"within {low:.3g} and {high:.3g}" if high < COUNTER else "not negative"
            found.append(
                Finding("range", _label(name), f"{name} is {values[index]:g}, usually {usually}")
            )
        if before is None or shot.ended.any():
            return found
        self._stopped = np.where(values == before, self._stopped + 1, 0)
        # What goes back within an episode, such as the time since a collision, is no clock.
        self._is_clock &= (values - before) * self._clock_steps >= 0.0
        # Clocks that stop together are one bug; a script's own comes last.
        for index in np.flatnonzero((self._stopped == CLOCK_STEPS) & self._is_clock)[-1:]:
            name = usual.variables[index]
            text = f"{name} stays {values[index]:g} in {CLOCK_STEPS} steps; it usually changes "
            text += f"by {usual.clocks[name]:g} in each"
            found.append(Finding("clock", _label(name), text))
        return found

    def _things(self, shot: Snapshot) -> list[Finding]:
        """The first body is inside a solid thing, or passes a thing whose siblings stop it."""
        scene, near, places = shot.scene, shot.things[:, 3], shot.things[:, :3]
        if self._met != scene.things:
            self._remember()
            self._met, self._kinds = scene.things, scene.kinds
            self._limits = self._find_limits()
        if not len(near):
            return []
        # What is moved to where the player is says nothing; an end moves things after the touch.
        found, ended = [], bool(shot.ended.any())
        stays, self._places = (places == self._places).all(axis=1) | ended, places
        self._nearest = np.where(stays, np.minimum(self._nearest, near), self._nearest)
        for index in np.flatnonzero(stays & (near < np.maximum(self._limits, INSIDE))):
            name, value = scene.things[index].removeprefix("/root/"), near[index]
            if value < self._limits[index] and not ended:  # an end is what may stop the player
                text = f"the player is {value:.3g} from {name}; usually it and its siblings cannot "
                text += f"be approached by less than {self._limits[index] / PASSED:.3g}"
                found.append(Finding("sibling", f"{kind_of(name)} can be passed", text))
            elif scene.is_solid[index] and scene.things[index] not in self._usual.entered:
                text = f"the player is inside {name}, which is solid"
                found.append(Finding("overlap", f"inside {kind_of(name)}", text))
        return found

    def _remember(self) -> None:
        """Keep how near the first body came to things in a rollout."""
        add_near(self._usual.near, dict(zip(self._met, self._nearest.tolist(), strict=True)))
        self._met, self._nearest = [], np.zeros(0)

    def _find_limits(self) -> np.ndarray:
        """(things,): nearer to each than this is a bug, because of its siblings, or all before."""
        near, kinds = self._usual.near, self._kinds
        self._nearest = np.full(len(self._met), np.inf)
        self._places = np.full((len(self._met), 3), np.nan)
        limits = np.zeros(len(self._met))
        stops = [_stop(near.get(each, []), SIBLINGS) for each in self._met]
        for index, thing in enumerate(self._met):
            like = [i for i, kind in enumerate(kinds) if kind == kinds[index] and i != index]
            found = [stops[i] for i in like if stops[i]]
            if len(found) < max(2, 0.8 * len(like)):
                found = [stop for stop in [_stop(near.get(thing, []), APPROACHES)] if stop]
            limits[index] = PASSED * min(found, default=0.0)
        return limits

    def _farming(self, shot: Snapshot) -> list[Finding]:
        if shot.ended.any():
            return []
        paid = self._loops.add(shot, self._usual)
        if paid < PAID_LOOPS + 4.0 * self._usual.loops:
            return []
        text = f"the way back to the same state has paid {paid} times in this episode"
        return [Finding("reward", "the same loop pays again and again", text)]

    def _repeats(self, shot: Snapshot, action: np.ndarray | None) -> list[Finding]:
        """The same seed and actions must show the same, whatever was played before."""
        if self._path is None or self._length > REPEATED_STEPS or shot.ended.any():
            return []
        if action is None:
            return []  # many games observe the last action of the episode before
        self._path = hash((self._path, action.tobytes()))
        known, count = self._states.get(self._path, (shot.obs, 0))
        if len(known) != len(shot.obs) or len(self._usual.obs) != len(known):
            return []
        far = np.abs(shot.obs - known) > 0.03 * np.maximum(self._usual.obs, 0.03)
        unsteady = np.zeros(len(far), bool) if self._unsteady is None else self._unsteady
        if not (far & ~unsteady).any():
            self._states[self._path] = (known, count + 1)
            return []
        if count < 3:
            self._unsteady = unsteady | far
            return []
        index = int(np.argmax(np.where(far & ~unsteady, np.abs(shot.obs - known), 0.0)))
        text = f"observation {index} is {shot.obs[index]:g} {self._length} steps after a reset, was"
        text += f" {known[index]:g} {count} times with the same seed and actions"
        return [Finding("reset", "depends on what was played before", text)]

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
        """Varied actions change nothing, or for long do not change what they usually change."""
        usual = self._usual
        if len(self._recent) < STUCK_STEPS or self._length % (STUCK_STEPS // 2) or not usual.span:
            return []
        if not is_varied(np.array([action for _, action in self._recent])):
            return []
        spans = spans_of([shot for shot, _ in self._recent])
        for name, most in usual.span.items():
            is_still = spans.get(name, np.inf) <= STILL * most
            self._still[name] = self._still[name] + 1 if is_still else 0
        # Held actions may be few: all must be still for longer than each alone usually is.
        if all(self._still[name] > 1.0 + usual.still[name] for name in usual.span):
            steps = (min(self._still.values()) + 1) * STUCK_STEPS // 2
            text = f"{steps} varied actions change nothing"
            return [Finding("stuck", "actions change nothing", text)]
        late = [
            name
            for name in usual.span
            if self._still[name] >= STILL_WINDOWS + 4.0 * usual.still[name]
        ]
        # A single number may be at its end; where the player is, or half of all, may not.
        if "place" not in late and len(late) < max(3, 0.5 * len(usual.span)):
            return []
        what = "place" if "place" in late else "half of all that is observed"
        steps = (self._still[late[0]] + 1) * STUCK_STEPS // 2
        text = f"{what} hardly changes in {steps} steps of varied actions"
        return [Finding("stuck", f"{what} does not change", text)]

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
        player = kind_of(shot.scene.bodies[0]) if shot.scene.bodies else ""
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
            # A reset moves and stops bodies at once.
            is_within = self._length > 0 and not shot.ended.any()
            is_fast = bool(most) and speed > (3.0 if jumps else 25.0) * max(most, 0.3)
            if kind == player and shot.scene.bounds and usual.low:
                low, high = self._ends(shot)
                # As the body says: a game may put it elsewhere at once, such as back to the start.
                told = float(np.linalg.norm(ticks[:, 3:6], axis=1).max())
                is_fast |= told > LEVELS_PER_SEC * float((high - low).max())
            if is_within and is_fast:
                text = f"{name} moves at {speed:g} per second, usually up to {most:g}"
                found.append(Finding("speed", kind, text))
            found += self._overlap(shot, index, kind, ticks)
            if kind == player:
                found += self._bounds(shot, index, kind, ticks)
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

    def _bounds(self, shot: Snapshot, index: int, kind: str, ticks: np.ndarray) -> list[Finding]:
        if not self._usual.low:
            return []
        low, high = self._ends(shot)
        # Without walls or a floor, only what gets far away is certainly lost.
        margin = (0.12 if shot.scene.bounds else 20.0) * float((high - low).max())
        up = 1 if shot.scene.is_3d else -1
        # Whatever flies may fly as high as the level is wide.
        spare_low, spare_high = np.full(3, margin), np.full(3, margin)
        if up == 1:
            spare_high[1] += float((high - low).max())
        outside = (ticks[:, :3] < low - spare_low) | (ticks[:, :3] > high + spare_high)
        for axis in range(3 if up == 1 else 2):
            name = f"axis {axis} of {index}"
            count = self._outside[name] + int(outside[:, axis].sum())
            self._outside[name] = count if outside[:, axis].all() else 0
            if self._outside[name] <= OUTSIDE_SEC * shot.scene.ticks_per_sec:
                continue
            falls = up == 1 and axis == 1 and ticks[-1, 1] < low[1]
            oracle = "endless fall" if falls else "out of bounds"
            side = "-" if ticks[-1, axis] < low[axis] else "+"
            text = f"{kind} at {np.round(ticks[-1, :3], 2).tolist()}, the level ends at "
            text += f"{np.round(low, 2).tolist()} and {np.round(high, 2).tolist()}"
            return [Finding(oracle, f"{kind} {side}{'xyz'[axis]}", text, ticks[-1, :3].tolist())]
        return []

    def _ends(self, shot: Snapshot) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest corner of the level."""
        if self._level[0] is not shot.scene:
            self._level = (shot.scene, *level_of(shot.scene.bounds, self._usual))
        return self._level[1:]

    def _leaks(self, shot: Snapshot) -> list[Finding]:
        if not len(shot.ticks):
            return []
        self._counts.append(shot.ticks[-1])
        for name, (column, least, resets) in LEAKS.items():
            recent = self._counts[LEAK_SETTLES:][-resets:]
            if len(recent) < resets:
                continue
            numbers = np.array([each[column] for each in recent])
            # What is freed late goes up and down; a leak is never below what it was before.
            parts = numbers.reshape(4, -1)
            if (parts[1:].min(axis=1) > parts[:-1].max(axis=1)).all() and np.ptp(numbers) >= least:
                text = f"{name} grew from {numbers[0]:.0f} to {numbers[-1]:.0f} in {resets} resets"
                return [Finding("leak", name, text)]
        return []


def _label(name: str) -> str:
    """Of an observation its name, of a variable without numbers."""
    return name if name.startswith("observation ") else kind_of(name)


def _stop(approaches: list[float], least: int) -> float:
    """Where a thing stops the player, if all of the nearest approaches end there; else 0."""
    nearest = approaches[:least]
    is_stop = len(nearest) == least and 0.0 < nearest[-1] <= min(TIGHT * nearest[0], TOUCHES)
    return nearest[0] if is_stop else 0.0


def _file(finding: Finding) -> str:
    """The file of an error."""
    return finding.key.rpartition(" (")[2]


def _masked(text: str) -> str:
    """Without numbers and addresses, which differ from run to run."""
    return re.sub(r"<[^>]*#-?\d+>|@?\d[\d.]*", "#", text)
