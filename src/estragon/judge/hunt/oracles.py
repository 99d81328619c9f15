"""What counts as a bug: oracles that calibrate themselves on the game, and those a user writes."""

import ast
import collections
import dataclasses
import re
from typing import Any

import msgspec
import numpy as np

from estragon.judge.hunt.game import Snapshot
from estragon.support.errors import UserError

STUCK_STEPS = 40
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
EXPRESSION = (
    *(ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name, ast.Constant),
    *(ast.Load, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.Call),
)
FUNCTIONS = {"abs": abs, "min": min, "max": max, "round": round}
PROPERTY = re.compile(r"\{([^{}:]+:[^{}]+)\}")


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


class Usual(msgspec.Struct):
    """What a game does in a healthy warm-up; a trace carries it, so that a replay judges alike."""

    steps: int = 0
    episodes: int = 0
    obs: list[float] = []
    """Largest size of each value."""
    reward: float = 0.0
    events: dict[str, dict[str, int]] = {}
    """How often rewards that stand out were paid: at ends or not and by sign, then by value. The
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
                for key, value in _numbers(info).items():
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
            self._changes.append(float(_changes(obs[part]).mean()))
            if len(places) == len(rollout):
                self._travels.append(float(np.ptp(places[part], axis=0).max()))


@dataclasses.dataclass(frozen=True)
class UserOracles:
    """What a user asks for."""

    log_patterns: tuple[str, ...] = ()
    expects: tuple[str, ...] = ()
    warnings: bool = False
    """Whether a warning of the game is a bug, too."""

    def __post_init__(self) -> None:
        """Check patterns and expressions."""
        for pattern in self.log_patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise UserError(f"--log-pattern '{pattern}': {error}") from error
        for text in self.expects:
            self._compile(text)

    @property
    def watched(self) -> tuple[str, ...]:
        """The properties in all expressions, such as Main/Player:position:y."""
        return tuple(
            dict.fromkeys(each for text in self.expects for each in PROPERTY.findall(text))
        )

    def broken(self, info: dict[str, Any], watched: np.ndarray) -> list[str]:
        """The expressions that do not hold; those with unknown names are left out."""
        names: dict[str, Any] = {f"_{i}": float(value) for i, value in enumerate(watched)}
        names |= info
        found = []
        for text in self.expects:
            code, used = self._compile(text)
            known = all(name in names and names[name] == names[name] for name in used)
            if known and not eval(code, {"__builtins__": {}}, names | FUNCTIONS):  # noqa: S307
                found.append(text)
        return found

    def _compile(self, text: str) -> tuple[Any, set[str]]:
        order = {name: f"_{i}" for i, name in enumerate(self.watched)}
        plain = PROPERTY.sub(lambda found: order[found[1]], text)
        try:
            tree = ast.parse(plain.strip(), mode="eval")
        except SyntaxError as error:
            raise UserError(f"--expect '{text}': {error.msg}") from error
        names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
        for node in ast.walk(tree):
            is_known = not isinstance(node, ast.Call) or (
                isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
            )
            if not isinstance(node, EXPRESSION) or not is_known:
                raise UserError(
                    f"--expect '{text}': expected a comparison of info values, {{Node:property}} "
                    f"and numbers, such as score >= 0, got {type(node).__name__}"
                )
        return compile(tree, "--expect", "eval"), names - FUNCTIONS.keys()


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
        if usual.episodes >= 10 and reward > 4.0 * max(usual.reward, 0.25):
            text = f"a reward of {reward:g}, usually at most {usual.reward:g}"
            found.append(Finding("reward", "beyond what is usual", text))
        for info in shot.infos:
            for key, value in _numbers(info).items():
                if value < 0 <= usual.info_low.get(key, -1.0):
                    found.append(Finding("counter", f"{key} is negative", f"{key} is {value:g}"))
                if abs(value) >= COUNTER and key != "seed":
                    found.append(Finding("counter", f"{key} overflows", f"{key} is {value:g}"))
        return found

    def _events(self, shot: Snapshot) -> list[Finding]:
        """An event is paid twice if such events nearly always pay half as much."""
        least = 0.4 * self._usual.reward
        for reward, ended in zip(shot.rewards.tolist(), shot.ended.tolist(), strict=True):
            if not least or abs(reward) < max(least, 0.1):
                continue
            group = f"{'end' if ended else 'step'}{'+' if reward > 0 else '-'}"
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
        share = float(_changes(np.array([obs for obs, _, _ in self._recent])).mean())
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


def level_of(static: list[list[float]], usual: Usual) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest corner of the level.

    Along an axis on which all starts lie between the static colliders, those are its ends. Along
    others, such as the height above a floor, it also is where the first body usually gets.
    """
    low, high = np.array(usual.low), np.array(usual.high)
    if static:
        ends = np.array(static)
        encloses = (ends[0] <= usual.start_low) & (usual.start_high <= ends[1])
        low = np.where(encloses, ends[0], np.minimum(ends[0], low))
        high = np.where(encloses, ends[1], np.maximum(ends[1], high))
    return low, high


def is_varied(actions: np.ndarray) -> bool:
    """Whether every column takes clearly different values, so that something should happen."""
    return bool((np.ptp(actions, axis=0) >= 1.0).all() and len(np.unique(actions, axis=0)) >= 4)


def _file(finding: Finding) -> str:
    """The file of an error."""
    return finding.key.rpartition(" (")[2]


def _changes(obs: np.ndarray) -> np.ndarray:
    """(values,) bool: which of them change within a window (steps, values)."""
    changed: np.ndarray = np.ptp(obs, axis=0) > 1e-4 * np.maximum(1.0, np.abs(obs).max(axis=0))
    return changed


def _numbers(info: dict[str, Any]) -> dict[str, float]:
    return {
        key: float(value)
        for key, value in info.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _masked(text: str) -> str:
    """Without numbers and addresses, which differ from run to run."""
    return re.sub(r"<[^>]*#-?\d+>|@?\d[\d.]*", "#", text)
