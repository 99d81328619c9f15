"""Play any game at random, measure it, and report what looks wrong."""

import collections
import dataclasses
import itertools
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from estragon.envs.launch import Launch
from estragon.envs.pool import GamePool
from estragon.envs.spaces import AgentSpaces, ObservationSpec
from estragon.envs.wire import (
    ENDED,
    JSON,
    LEFT,
    TERMINATED,
    AgentInfo,
    AgentTable,
    Observations,
    StepResult,
)
from estragon.godot.process import GodotError, memory_mb

# Xvfb has no V-Sync to disable, which is not the game's fault.
LOGGED_PROBLEM = re.compile(r"(SCRIPT |USER )?(ERROR|WARNING): (?!Could not set V-Sync mode)")
MAX_LOGGED = 3
MAX_INDICES = 5
PINGS = 20
MAX_GROWTH_MB = 32.0
LARGE, SMALL = 100.0, 0.01
SPARSE = 0.001
MIN_STEPS = 20
"""Fewer steps say nothing."""
OLD_ADDON = (
    "the game speaks JSON, so it has an older addon: slower, no terminal observations, no time "
    "limits, seeds only at the start; replace it with Estragon's addon"
)


def probe(launch: Launch, seconds: float) -> dict[str, Any]:
    """Play for that long; returns the report, for people and for JSON."""
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="estragon-") as folder,
        GamePool(dataclasses.replace(launch, restarts=0, log_folder=folder)) as pool,
    ):
        started = time.monotonic() - start
        agents = [agent for table in pool.tables for agent in table.agents]
        diagnostics = Diagnostics()
        warnings = [*pool.warnings, *([OLD_ADDON] if pool.encoding == JSON else [])]
        played: dict[str, Any] = {"seconds": 0.0, "steps": 0}
        error, growth = "", 0.0
        parameters = pool.games[0].parameters
        try:
            played = _play(pool, diagnostics, seconds, launch.seed)
            growth = played["game_memory_growth_mb"] or 0.0
            parameters = pool.games[0].list_parameters()
        except GodotError as problem:
            error = str(problem)
        warnings += diagnostics.warnings()
        if growth > MAX_GROWTH_MB:
            warnings.append(
                f"the game's memory grew by {growth:.0f} MB in {played['seconds']:.0f} s: are the "
                "nodes that an episode adds freed?"
            )
        rate = diagnostics.agent_steps / played["seconds"] if played["seconds"] else None
        return {
            "env_path": str(launch.env_path),
            "scene": launch.scene,
            "encoding": pool.encoding,
            "agents": len(agents),
            "policies": dict(collections.Counter(agent.policy for agent in agents)),
            "spaces": _describe(agents),
            "parameters": [dataclasses.asdict(each) for each in parameters or ()],
            "start_seconds": round(started, 2),
            **played,
            "agent_steps": diagnostics.agent_steps,
            "agent_steps_per_s": None if rate is None else round(rate, 1),
            **diagnostics.summary(),
            "warnings": warnings + _logged_problems(Path(folder)),
            "error": error,
        }


def _play(pool: GamePool, diagnostics: "Diagnostics", seconds: float, seed: int) -> dict[str, Any]:
    """Play at random; returns where the time of a step went.

    Python's share is the processor time of this process: random actions, encoding and decoding. The
    wire's share is that of a message that is answered without playing. The rest is the game.
    """
    rng = np.random.default_rng(seed)
    results = pool.reset()
    for game, result in enumerate(results):
        diagnostics.add(game, result, reset=True)
    ping_sec = _ping(pool)
    memory_mb = _memory_mb(pool)
    step_sec = cpu_sec = 0.0
    steps = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start, start_cpu = time.perf_counter(), time.process_time()
        pool.send([random_actions(result, rng) for result in results])
        results = pool.receive()
        step_sec += time.perf_counter() - start
        cpu_sec += time.process_time() - start_cpu
        steps += 1
        for game, result in enumerate(results):
            diagnostics.add(game, result)
    python = min(1.0, cpu_sec / step_sec)
    wire = min(1.0 - python, steps * ping_sec / step_sec)
    now_mb = _memory_mb(pool)
    growth_mb = None if memory_mb is None or now_mb is None else round(now_mb - memory_mb, 1)
    return {
        "seconds": round(step_sec, 2),
        "steps": steps,
        "step_ms": round(1e3 * step_sec / steps, 3),
        "time_in_game": round(1.0 - python - wire, 3),
        "time_on_wire": round(wire, 3),
        "time_in_python": round(python, 3),
        "game_memory_mb": now_mb,
        "game_memory_growth_mb": growth_mb,
    }


def _ping(pool: GamePool) -> float:
    """Seconds for a message to every game and its answer, without playing."""
    took = []
    for _ in range(PINGS):
        start = time.perf_counter()
        pool.call("get_done")
        took.append(time.perf_counter() - start)
    return statistics.median(took)


def _memory_mb(pool: GamePool) -> float | None:
    """Resident memory of all games; None where it cannot be read."""
    pids = [game.process.pid for game in pool.games if game.process is not None]
    found = memory_mb(pids) if len(pids) == len(pool.games) else None
    return None if found is None else round(found, 1)


def random_actions(result: StepResult, rng: np.random.Generator) -> np.ndarray:
    """Random allowed actions for the agents after a step: float32, agent by agent, key by key."""
    table, rows = result.next_table(), result.remaining()
    masks = [result.mask(row) for row in rows]
    if table.spaces is not None:
        actions = _random_rows(table.spaces, np.stack(masks), rng)
        return actions.reshape(-1)
    parts = [
        _random_rows(agent.spaces, mask[None], rng)[0]
        for agent, mask in zip(table.agents, masks, strict=True)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _random_rows(spaces: AgentSpaces, masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    count = len(masks)
    rows = np.zeros((count, spaces.action_size), np.float32)
    first = 0
    for action, start in spaces.action_offsets:
        if action.kind == "continuous":
            rows[:, start : start + action.size] = rng.uniform(-1.0, 1.0, (count, action.size))
        elif action.masked:
            allowed = masks[:, first : first + action.size] != 0
            first += action.size
            rows[:, start] = np.where(allowed, rng.random(allowed.shape), -1.0).argmax(axis=1)
        else:
            rows[:, start] = rng.integers(action.size, size=count)
    return rows


class KeyRange:
    """The smallest and largest values of one observation, of all agents with the same spaces."""

    def __init__(self, policy: str, spec: ObservationSpec) -> None:
        self.policy, self.spec, self.rows = policy, spec, 0
        self.low, self.high = np.full(spec.size, np.inf), np.full(spec.size, -np.inf)

    def add(self, seen: np.ndarray) -> None:
        """Add (agents, size) values."""
        np.minimum(self.low, seen.min(axis=0), out=self.low)
        np.maximum(self.high, seen.max(axis=0), out=self.high)
        self.rows += len(seen)

    def warnings(self) -> list[str]:
        """What is suspicious about it."""
        is_image = self.spec.kind == "image"
        problems = self._image_problems() if is_image else self._value_problems()
        return [f"{self.policy}: observation '{self.spec.key}' {each}" for each in problems]

    def _value_problems(self) -> list[str]:
        spec, low, high = self.spec, self.low, self.high
        found: list[str] = []
        enough = self.rows >= MIN_STEPS
        constant = np.flatnonzero(low == high)
        if enough and len(constant):
            every = len(constant) == spec.size
            found.append("never changed" if every else f"never changed at {_indices(constant)}")
        discrete = spec.kind == "discrete"
        least, most = (0.0, spec.choices - 1.0) if discrete else (spec.low, spec.high)
        outside = np.flatnonzero((low < np.array(least)) | (high > np.array(most)))
        if len(outside):
            index = outside[0]
            found.append(
                f"is out of its bounds at {_indices(outside)}: "
                f"observed {low[index]:g} to {high[index]:g}"
            )
        largest = max(abs(low).max(initial=0.0), abs(high).max(initial=0.0))
        if not discrete and largest > LARGE:
            found.append(f"is as large as {largest:g}; scale it to about -1 to 1")
        elif not discrete and enough and 0.0 < largest < SMALL:
            found.append(f"is at most {largest:g}; scale it to about -1 to 1")
        return found

    def _image_problems(self) -> list[str]:
        if self.rows < MIN_STEPS:
            return []
        if self.low.min() == self.high.max():
            return [f"is all {self.low.min():g}: the camera sees nothing, or is not rendered"]
        return ["never changed"] if np.array_equal(self.low, self.high) else []

    def summary(self) -> dict[str, Any]:
        """Its range."""
        constant = (self.low == self.high) & (self.rows > 1)
        return {
            "policy": self.policy,
            "key": self.spec.key,
            "size": self.spec.size,
            "min": float(self.low.min()),
            "max": float(self.high.max()),
            "constant": int(constant.sum()),
        }


class Diagnostics:
    """Collects statistics of the steps of several games, and warns of what is suspicious."""

    def __init__(self) -> None:
        self._ranges: dict[AgentSpaces, list[KeyRange]] = {}
        self._blind_policies: list[str] = []
        self.agent_steps = self.num_joined = self.num_left = 0
        self.terminated = self.truncated = 0
        self.lengths: list[int] = []
        self.returns: list[float] = []
        self.reward_min, self.reward_max = np.inf, -np.inf
        self.reward_sum = self.reward_squares = 0.0
        self.num_rewarded = 0
        self.mask_allows_nothing = False
        self._lengths: collections.Counter[tuple[int, int]] = collections.Counter()
        self._returns: collections.Counter[tuple[int, int]] = collections.Counter()

    def add(self, game: int, result: StepResult, *, reset: bool = False) -> None:
        """Add the result of one step."""
        table = result.table
        self._add_obs(table, result.obs)
        if result.masks is not None:
            self._check_masks(result)
        self.num_joined += result.num_joined
        known = len(table) - result.num_joined
        if reset or not known:
            return
        rewards = result.rewards[:known]
        self.agent_steps += known
        self.reward_min = min(self.reward_min, float(rewards.min()))
        self.reward_max = max(self.reward_max, float(rewards.max()))
        self.reward_sum += float(rewards.sum(dtype=np.float64))
        self.reward_squares += float(np.square(rewards, dtype=np.float64).sum())
        self.num_rewarded += int(np.count_nonzero(rewards))
        for agent, reward, flags in zip(
            table.agents, rewards.tolist(), result.flags.tolist(), strict=False
        ):
            key = (game, agent.id)
            self._lengths[key] += 1
            self._returns[key] += reward
            if flags & ENDED:
                self.terminated += flags & TERMINATED
                self.truncated += flags & TERMINATED == 0
                self.lengths.append(self._lengths.pop(key))
                self.returns.append(self._returns.pop(key))
            self.num_left += flags & LEFT != 0

    def _add_obs(self, table: AgentTable, obs: Observations) -> None:
        if table.spaces is not None:
            count = len(table)
            parts = [(obs.values.reshape(count, -1), obs.images.reshape(count, -1))]
        else:
            rows = [obs.row(row) for row in range(len(table))]
            parts = [(values[None], images[None]) for values, images in rows]
        for agent, (values, images) in zip(table.agents, parts, strict=False):
            spaces = agent.spaces
            if spaces not in self._ranges:
                self._ranges[spaces] = [
                    KeyRange(agent.policy, each) for each in spaces.observations
                ]
                if not spaces.observations:
                    self._blind_policies.append(agent.policy)
            seen = spaces.split(values, images)
            for each in self._ranges[spaces]:
                each.add(seen[each.spec.key].reshape(len(values), -1))

    def _all_ranges(self) -> Iterator[KeyRange]:
        return itertools.chain.from_iterable(self._ranges.values())

    def _check_masks(self, result: StepResult) -> None:
        for row, agent in enumerate(result.table.agents):
            mask, start = result.mask(row), 0
            for action in agent.spaces.actions:
                if action.masked:
                    if not mask[start : start + action.size].any():
                        self.mask_allows_nothing = True
                    start += action.size

    def warnings(self) -> list[str]:
        """What is suspicious, mostly because it makes learning harder."""
        found = [f"{policy}: its agents observe nothing" for policy in self._blind_policies]
        found += [text for each in self._all_ranges() for text in each.warnings()]
        if self.agent_steps >= MIN_STEPS:
            if self.reward_min == self.reward_max:
                found.append(
                    f"every reward was {self.reward_min:g}: is the reward ever set, and can random "
                    "play earn any?"
                )
            elif self.num_rewarded < SPARSE * self.agent_steps:
                found.append(
                    f"only {self.num_rewarded} of {self.agent_steps} rewards were not 0; add "
                    "smaller rewards on the way to the goal"
                )
            largest = max(abs(self.reward_min), abs(self.reward_max))
            if largest > LARGE:
                found.append(f"rewards are as large as {largest:g}; scale them to about -1 to 1")
            if not self.lengths:
                found.append(
                    f"no episode ended in {self.agent_steps} agent-steps: is `done` ever set, or "
                    "`reset_after` too large?"
                )
        if self.lengths and max(self.lengths) == 1:
            found.append("every episode lasted one step: is `done` ever set back to false?")
        if self.mask_allows_nothing:
            found.append("an action mask allowed nothing at all")
        return found

    def summary(self) -> dict[str, Any]:
        """Statistics, for people and for JSON."""
        count = self.agent_steps
        mean = self.reward_sum / count if count else None
        variance = 0.0 if mean is None else max(0.0, self.reward_squares / count - mean**2)
        return {
            "observations": [
                each.summary()
                for each in self._all_ranges()
                if each.spec.kind != "image" and each.spec.size
            ],
            "reward_mean": mean,
            "reward_std": None if mean is None else variance**0.5,
            "reward_nonzero": None if mean is None else self.num_rewarded / count,
            "episodes": len(self.lengths),
            "episodes_terminated": self.terminated,
            "episodes_truncated": self.truncated,
            "episode_length_mean": float(np.mean(self.lengths)) if self.lengths else None,
            "episode_length_min": min(self.lengths, default=None),
            "episode_length_max": max(self.lengths, default=None),
            "episode_return_mean": float(np.mean(self.returns)) if self.returns else None,
            "reward_min": self.reward_min if count else None,
            "reward_max": self.reward_max if count else None,
            "agents_joined": self.num_joined,
            "agents_left": self.num_left,
        }


def _indices(places: np.ndarray) -> str:
    shown = ", ".join(map(str, places[:MAX_INDICES].tolist()))
    return f"[{shown}]" if len(places) <= MAX_INDICES else f"[{shown}, …] ({len(places)} numbers)"


def _describe(agents: list[AgentInfo]) -> list[dict[str, Any]]:
    """The spaces of every policy."""
    kinds = dict.fromkeys((agent.policy, agent.spaces) for agent in agents)
    return [
        {
            "policy": policy,
            "observation_space": [
                {"key": spec.key, "space": spec.kind, "size": list(spec.shape) or spec.choices}
                for spec in spaces.observations
            ],
            "action_space": [
                {
                    "key": action.key,
                    "action_type": action.kind,
                    "size": action.size,
                    "masked": action.masked,
                }
                for action in spaces.actions
            ],
            "summary": spaces.describe(),
        }
        for policy, spaces in kinds
    ]


def _describe_parameter(spec: dict[str, Any]) -> str:
    default = spec["default"]
    text = f"{spec['name']} = {default if isinstance(default, str) else f'{default:g}'}"
    if spec["unit"]:
        text += f" {spec['unit']}"
    if spec["choices"]:
        return f"{text} ({', '.join(spec['choices'])})"
    if spec["low"] is None:
        return text
    return f"{text} ({spec['low']:g} to {spec['high']:g})"


def _logged_problems(folder: Path) -> list[str]:
    """Errors and warnings in the games' logs."""
    found = collections.Counter(
        line.strip()
        for log in sorted(folder.glob("*.log"))
        for line in log.read_text(errors="replace").splitlines()
        if LOGGED_PROBLEM.match(line.strip())
    )
    shown = [
        f"the game logged{f' {count} times' if count > 1 else ''}: {line}"
        for line, count in found.most_common(MAX_LOGGED)
    ]
    if len(found) > MAX_LOGGED:
        shown.append(f"the game logged {len(found) - MAX_LOGGED} more kinds of errors and warnings")
    return shown


def format_report(found: dict[str, Any]) -> list[str]:
    """The report of `probe`, line by line."""
    policies = ", ".join(f"{name} × {count}" for name, count in found["policies"].items())
    lines = [f"agents      {found['agents']} ({policies})"]
    lines += [f"            {each['policy']} {each['summary']}" for each in found["spaces"]]
    lines += [f"parameter   {_describe_parameter(each)}" for each in found["parameters"]]
    lines.append(f"encoding    {found['encoding']}")
    if found["steps"]:
        lines.append(
            f"speed       {found['agent_steps_per_s']:,.0f} agent-steps/s "
            f"({found['steps']:,} steps in {found['seconds']:g} s, "
            f"started in {found['start_seconds']:g} s)"
        )
        lines.append(
            f"time        {found['step_ms']:.2f} ms per step: game {found['time_in_game']:.0%}, "
            f"wire {found['time_on_wire']:.0%}, Python {found['time_in_python']:.0%}"
        )
    if found.get("game_memory_growth_mb") is not None:
        lines.append(
            f"memory      {found['game_memory_mb']:.0f} MB in the game, "
            f"{found['game_memory_growth_mb']:+.0f} MB in this time"
        )
    for seen in found["observations"]:
        constant = f", {seen['constant']} never changed" if seen["constant"] else ""
        lines.append(
            f"observes    {seen['policy']} {seen['key']}: {seen['min']:.3g} to {seen['max']:.3g} "
            f"({seen['size']} numbers{constant})"
        )
    if found["agent_steps"]:
        lines.append(
            f"rewards     {found['reward_min']:.3g} to {found['reward_max']:.3g}, "
            f"mean {found['reward_mean']:.3g}, std {found['reward_std']:.3g}, "
            f"not 0 in {found['reward_nonzero']:.1%} of agent-steps"
        )
    if found["episodes"]:
        lines.append(
            f"episodes    {found['episodes']} ({found['episodes_terminated']} terminated, "
            f"{found['episodes_truncated']} truncated), "
            f"mean length {found['episode_length_mean']:.1f} steps "
            f"({found['episode_length_min']} to {found['episode_length_max']}), "
            f"mean return {found['episode_return_mean']:.3g}"
        )
    else:
        lines.append("episodes    none ended")
    lines += [f"warning     {warning}" for warning in found["warnings"]]
    if found["error"]:
        lines.append(f"ERROR       {found['error']}")
    elif not found["warnings"]:
        lines.append("nothing suspicious")
    return lines
