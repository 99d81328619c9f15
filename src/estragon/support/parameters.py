"""Parameters that a trainer sets in a game: constants, samplers, and curricula of lessons.

A file has a section `parameters:` and, if it likes, `curriculum:`; docs/parameters.md shows one.
The values of episode n depend on the seed, the lesson and n alone, not on who plays it.
"""

import collections
import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta, Struct

from estragon.support.errors import UserError

Value = float | str
Values = dict[str, Value]
Pair = Annotated[list[float], Meta(min_length=2, max_length=2)]
Positive = Annotated[int, Meta(ge=1)]
MAX_FILE = 2**20


class Sampler(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """How a value is drawn; exactly one of these is given."""

    constant: Value | None = None
    uniform: Pair | None = None
    log_uniform: Pair | None = None
    normal: Pair | None = None
    choice: Annotated[list[Value], Meta(min_length=1)] | None = None

    def __post_init__(self) -> None:
        """Reject what nothing can be drawn from."""
        given = msgspec.to_builtins(self)
        if len(given) != 1:
            raise ValueError("expected one of constant, uniform, log_uniform, normal, choice")
        kind, numbers = given.popitem()
        each = numbers if isinstance(numbers, list) else [numbers]
        if not all(isinstance(one, str) or math.isfinite(one) for one in each):
            raise ValueError(f"{kind}: expected finite numbers, got {numbers}")
        if kind in ("uniform", "log_uniform") and numbers[0] > numbers[1]:
            raise ValueError(f"{kind}: expected the lower end first, got {numbers}")
        if kind == "log_uniform" and numbers[0] <= 0:
            raise ValueError(f"log_uniform: expected numbers above 0, got {numbers}")
        if kind == "normal" and numbers[1] < 0:
            raise ValueError(f"normal: expected a deviation of 0 or more, got {numbers[1]}")

    def draw(self, rng: np.random.Generator) -> Value:
        """One value."""
        if self.uniform:
            return float(rng.uniform(self.uniform[0], self.uniform[1]))
        if self.log_uniform:
            low, high = map(math.log, self.log_uniform)
            return math.exp(rng.uniform(low, high))
        if self.normal:
            return float(rng.normal(self.normal[0], self.normal[1]))
        return self.chosen[int(rng.integers(len(self.chosen)))]

    @property
    def chosen(self) -> list[Value]:
        """What is chosen from, if it is no distribution of numbers."""
        return self.choice or ([] if self.constant is None else [self.constant])

    @property
    def span(self) -> tuple[float, float] | None:
        """The lowest and highest number it draws; of a normal, three deviations; None for words."""
        if self.normal:
            mean, deviation = self.normal
            return mean - 3.0 * deviation, mean + 3.0 * deviation
        drawn = self.uniform or self.log_uniform or self.chosen
        numbers = [one for one in drawn if not isinstance(one, str)]
        return (min(numbers), max(numbers)) if len(numbers) == len(drawn) else None


Samplers = dict[str, Sampler]


class Criterion(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """When a lesson is passed: one measure reaches its value over the last episodes."""

    reward: float | None = None
    """Mean reward of an episode."""
    success_rate: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Share of episodes whose last info has a true `key`."""
    progress: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Share of the training that is over."""
    key: str = "success"
    window: Positive = 100
    min_episodes: Positive = 50
    fall_back: float = -math.inf
    """Below this the lesson before is taught again; never, if it is not given."""

    def __post_init__(self) -> None:
        """Reject what can never hold."""
        if (self.reward, self.success_rate, self.progress).count(None) != 2:
            raise ValueError("expected one of reward, success_rate, progress")
        if self.min_episodes > self.window:
            raise ValueError(
                f"min_episodes: expected at most the window of {self.window}, got "
                f"{self.min_episodes}"
            )
        if math.isfinite(self.fall_back) and not self.fall_back < self.passed < math.inf:
            raise ValueError("fall_back: expected less than the reward or success_rate to reach")

    @property
    def passed(self) -> float:
        """The mean reward or success that passes the lesson."""
        means = (self.reward, self.success_rate)
        return next((mean for mean in means if mean is not None), math.inf)


class Lesson(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A part of a curriculum."""

    name: Annotated[str, Meta(min_length=1)]
    parameters: dict[str, Any] = {}
    """Over those of the whole file."""
    until: Criterion | None = None
    """The last lesson has none."""


class _File(Struct, forbid_unknown_fields=True):
    parameters: dict[str, Any] = {}
    curriculum: list[Lesson] = []


@dataclasses.dataclass(frozen=True)
class ParameterSpec:
    """A parameter that a game declares."""

    name: str
    default: Value | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a parameter file says: the samplers of every lesson, at least one lesson."""

    lessons: tuple[Lesson, ...]
    samplers: tuple[Samplers, ...]
    """By lesson, all that are in force."""

    @classmethod
    def of(cls, source: "PlanSource", *, has_rule: bool = False) -> "Plan":
        """A plan as it is, or from a file, or from the contents of one."""
        if isinstance(source, Plan):
            return source
        if isinstance(source, Mapping):
            return cls.parse(dict(source), has_rule=has_rule)
        return cls.read(Path(source).expanduser(), has_rule=has_rule)

    @classmethod
    def read(cls, path: Path, *, has_rule: bool = False) -> Self:
        """Read a YAML or JSON file."""
        import yaml

        is_json = path.suffix.lower() == ".json"  # YAML 1.1 takes 1e-9 for a word
        load, kind = (msgspec.json.decode, "JSON") if is_json else (yaml.safe_load, "YAML")
        try:
            if path.stat().st_size > MAX_FILE:
                raise UserError(f"{path}: larger than {MAX_FILE} bytes")
            found = load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from error
        except (
            yaml.YAMLError,
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
        ) as error:
            raise UserError(f"{path}: not {kind}: {' '.join(str(error).split())[:200]}") from error
        try:
            return cls.parse(found, has_rule=has_rule)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, found: Any, *, has_rule: bool = False) -> Self:
        """Read plain data: the contents of a file; with a rule, lessons need no criterion."""
        try:
            file = msgspec.convert(found or {}, _File)
        except msgspec.ValidationError as error:
            raise UserError(str(error)) from error
        if not file.parameters and not file.curriculum:
            raise UserError("neither parameters nor curriculum")
        lessons = file.curriculum or [Lesson("all")]
        names = [lesson.name for lesson in lessons]
        if len(set(names)) < len(names):
            raise UserError(f"curriculum: lessons need different names, got {', '.join(names)}")
        for number, lesson in enumerate(lessons[:-1]):
            if lesson.until is None and not has_rule:
                after = lessons[number + 1].name
                raise UserError(f"lesson {lesson.name}: without until, {after} is never reached")
        common = _samplers("parameters", file.parameters)
        own = [_samplers(f"lesson {each.name}", each.parameters) for each in lessons]
        _check_progress(lessons)
        return cls(tuple(lessons), tuple(common | each for each in own))

    def check(self, declared: Sequence[ParameterSpec]) -> None:
        """Raise UserError for a parameter that the game does not declare, or out of its range."""
        known = {spec.name: spec for spec in declared}
        for lesson, samplers in zip(self.lessons, self.samplers, strict=True):
            for name, sampler in samplers.items():
                where = f"lesson {lesson.name}, {name}" if len(self.lessons) > 1 else name
                if name not in known:
                    offered = ", ".join(sorted(known)) or "none"
                    raise UserError(f"{where}: the game has no such parameter; it has {offered}")
                _check_range(where, sampler, known[name])

    def plain(self) -> dict[str, Any]:
        """As plain data, which `parse` reads."""
        lessons = [
            msgspec.structs.replace(lesson, parameters=samplers)
            for lesson, samplers in zip(self.lessons, self.samplers, strict=True)
        ]
        return {"curriculum": msgspec.to_builtins(lessons)}

    def draw(self, lesson: int, seed: int, episode: int) -> Values:
        """The values of an episode."""
        rng = np.random.Generator(np.random.SFC64((seed, lesson, episode)))
        samplers = self.samplers_of(lesson, episode)
        return {name: samplers[name].draw(rng) for name in sorted(samplers)}

    def samplers_of(self, lesson: int, episode: int) -> Samplers:
        """What the values of an episode are drawn from."""
        return self.samplers[lesson]


PlanSource = Plan | Mapping[str, Any] | str | os.PathLike[str]


def _samplers(where: str, given: Mapping[str, Any]) -> Samplers:
    found = {}
    for name, value in given.items():
        plain = value if isinstance(value, dict) else {"constant": value}
        try:
            found[str(name)] = msgspec.convert(plain, Sampler)
        except msgspec.ValidationError as error:
            raise UserError(f"{where}: {name}: {error}") from error
    return found


def _check_progress(lessons: Sequence[Lesson]) -> None:
    reached = 0.0
    for number, lesson in enumerate(lessons):
        share = lesson.until.progress if lesson.until else None
        if share is None:
            continue
        if not reached <= share < 1.0 or (share == reached and number):
            raise UserError(
                f"lesson {lesson.name}: until progress {share}: expected more than {reached} and "
                "less than 1, or the next lesson is never taught"
            )
        reached = share


def _check_range(where: str, sampler: Sampler, spec: ParameterSpec) -> None:
    words = [one for one in sampler.chosen if isinstance(one, str)]
    if words and spec.choices and not set(words) <= set(spec.choices):
        raise UserError(f"{where}: expected {', '.join(spec.choices)}, got {', '.join(words)}")
    if words and not spec.choices and isinstance(spec.default, float):
        raise UserError(f"{where}: expected a number, got {words[0]}")
    if sampler.normal or sampler.span is None:
        return  # a normal is cut off at the ends of the range
    low, high = sampler.span
    least = -math.inf if spec.low is None else spec.low
    most = math.inf if spec.high is None else spec.high
    if low < least or high > most:
        raise UserError(f"{where}: expected {least:g} to {most:g}, got {low:g} to {high:g}")


Rule = Callable[["Curriculum", float, Mapping[str, Any]], int | None]
"""A user's own rule: from the curriculum, the reward and last info of an episode, the number of the
lesson to teach now; None leaves it to the criteria."""


class Curriculum:
    """Which lesson is taught now, by the episodes that ended."""

    def __init__(self, plan: Plan, rule: Rule | None = None) -> None:
        """Begin with the first lesson."""
        self.plan, self.lesson, self.episodes = plan, 0, 0
        self._rule = rule
        self._recent: collections.deque[float] = collections.deque()
        self.progress = 0.0
        """Share of the training that is over; the trainer sets it."""

    @property
    def name(self) -> str:
        """The lesson's name."""
        return self.plan.lessons[self.lesson].name

    def add(self, reward: float, info: Mapping[str, Any]) -> bool:
        """Count an episode; returns whether the lesson changed."""
        self.episodes += 1
        until = self.plan.lessons[self.lesson].until
        if until:
            success = float(bool(info.get(until.key)))
            self._recent.append(success if until.reward is None else reward)
            while len(self._recent) > until.window:
                self._recent.popleft()
        chosen = self._rule(self, reward, info) if self._rule else None
        return self._teach(self._next_lesson() if chosen is None else chosen)

    def _next_lesson(self) -> int:
        until = self.plan.lessons[self.lesson].until
        if not until:
            return self.lesson
        if until.progress is not None:
            return self.lesson + (self.progress >= until.progress)
        if len(self._recent) < until.min_episodes:
            return self.lesson
        mean = sum(self._recent) / len(self._recent)
        if mean >= until.passed:
            return self.lesson + 1
        return self.lesson - (mean < until.fall_back)

    def _teach(self, lesson: int) -> bool:
        lesson = min(max(lesson, 0), len(self.plan.lessons) - 1)
        changed = lesson != self.lesson
        if changed:
            self.lesson = lesson
            self._recent.clear()
        return changed

    def save(self) -> dict[str, Any]:
        """Its state as plain data."""
        return {"lesson": self.name, "episodes": self.episodes, "recent": list(self._recent)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Load what `save` gave; a lesson that is gone starts over."""
        names = [lesson.name for lesson in self.plan.lessons]
        self.lesson = names.index(saved["lesson"]) if saved["lesson"] in names else 0
        self.episodes = int(saved["episodes"])
        self._recent = collections.deque(map(float, saved["recent"]))
