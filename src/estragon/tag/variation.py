"""Rule numbers and layouts that differ from episode to episode, as a parameter file says.

The values of an episode depend on the seed, the lesson, the arena and the episode's number alone.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from estragon.support.errors import UserError
from estragon.support.parameters import ParameterSpec, Plan, Sampler
from estragon.tag.layout import Layout, load_layouts
from estragon.tag.rules import VARIABLE, Rules
from estragon.tag.state import varied_constants
from estragon.tag.threefry import LAYOUT, uniform_pair

DECIMALS = 4
"""Values are rounded to so many, so that every reader of a rules file gets the same bits."""
SUCCESS = "success"
"""What the seeker's win is called in a criterion."""


@dataclasses.dataclass(frozen=True)
class Variation:
    """What episodes are played with, lesson by lesson."""

    plan: Plan
    """Of the numbers."""
    layouts: list[Layout]
    """Of all lessons."""
    offered: list[list[int]]
    """By lesson, the numbers of the layouts that are drawn from, as with `--layout`."""

    @classmethod
    def read(cls, path: Path, rules: Rules, layout: str | None = None) -> Self:
        """Read a parameter file.

        Args:
            path: of the file.
            rules: the other numbers of the game.
            layout: where a lesson names no layouts, as `load_layouts` reads it; by default as in
                the rules.
        """
        plan = Plan.read(path)
        try:
            return cls._of(plan, rules, layout)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error

    @classmethod
    def _of(cls, plan: Plan, rules: Rules, layout: str | None) -> Self:
        usual = rules.variable()
        specs = [
            ParameterSpec(name, usual[name], low, high) for name, (_, low, high) in VARIABLE.items()
        ]
        plan.check([*specs, ParameterSpec("layout", rules.layout)])
        _check_criteria(plan)
        named = [samplers.get("layout") for samplers in plan.samplers]
        if layout and all(named):
            raise UserError(f"names the layouts of every episode; leave out --layout {layout}")
        layouts: list[Layout] = []
        places: dict[str, list[int]] = {}
        offered = []
        for samplers, sampler in zip(plan.samplers, named, strict=True):
            spec = layout or rules.layout if sampler is None else _layout_spec(sampler)
            loaded = load_layouts(spec, rules.varied(_farthest(samplers)))
            if spec not in places:
                places[spec] = list(range(len(layouts), len(layouts) + len(loaded)))
                layouts += loaded
            offered.append(places[spec])
        numbers = tuple(
            {name: sampler for name, sampler in samplers.items() if name != "layout"}
            for samplers in plan.samplers
        )
        return cls(dataclasses.replace(plan, samplers=numbers), layouts, offered)

    def layouts_of(self, lesson: int) -> list[Layout]:
        """The layouts that a lesson's episodes draw from."""
        return [self.layouts[number] for number in self.offered[lesson]]

    def values(self, lesson: int, seed: int, arena: int, episode: int) -> dict[str, float]:
        """The numbers of an episode that are drawn."""
        drawn = self.plan.draw(lesson, seed, (arena << 32) + episode)
        values = {}
        for name, value in drawn.items():
            _, low, high = VARIABLE[name]
            values[name] = round(min(max(float(value), low), high), DECIMALS)
        return values

    def row(
        self, rules: Rules, lesson: int, seed: int, arena: int, episode: int
    ) -> tuple[float, ...]:
        """All that an episode is played with, in the order of VARIED."""
        varied = rules.varied(self.values(lesson, seed, arena, episode))
        offered = self.offered[lesson]
        share, _ = uniform_pair(seed, arena, episode, LAYOUT, 0)
        layout = offered[int(share * len(offered))]
        return (*varied_constants(varied), layout, lesson, *varied.variable().values())

    def save(self) -> dict[str, Any]:
        """Plain data, for a checkpoint."""
        layouts = msgspec.to_builtins(self.layouts)
        return self.plan.plain() | {"layouts": layouts, "offered": self.offered}

    @classmethod
    def restore(cls, saved: Mapping[str, Any]) -> Self:
        """Read what `save` gave."""
        plan = Plan.parse({"curriculum": saved["curriculum"]})
        layouts = msgspec.convert(saved["layouts"], list[Layout])
        return cls(plan, layouts, msgspec.convert(saved["offered"], list[list[int]]))


def _check_criteria(plan: Plan) -> None:
    for lesson in plan.lessons:
        until = lesson.until
        if until and (until.reward is not None or until.key != SUCCESS):
            raise UserError(
                f"lesson {lesson.name}: until: tag knows progress and success_rate (the share of "
                "matches that the seeker wins), without key"
            )


def _layout_spec(sampler: Sampler) -> str:
    """What `--layout` would be given."""
    names = [one for one in sampler.chosen if isinstance(one, str)]
    if len(names) < max(len(sampler.chosen), 1):
        raise UserError("layout: expected the name of a layout, or {choice: [NAME, …]}")
    return ",".join(names)


def _farthest(samplers: Mapping[str, Sampler]) -> dict[str, float]:
    """The largest numbers that a layout has to have room for."""
    farthest = {}
    for name in ("tag_reach_m", "spawn_separation_m"):
        if name in samplers and (span := samplers[name].span):
            farthest[name] = min(span[1], VARIABLE[name][2])
    return farthest
