"""Every number of the tag game, read from `godot/tag/rules.json` and checked.

That file is the one declaration of the observation layout and of the reward terms; TERMS, TERM,
Weights and OBS below are derived from it, in Godot as well.
"""

import hashlib
from collections import namedtuple
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import read_json

AGENTS = 2
ACTION_SIZE = 3
RAY_CHANNELS = 3
"""Numbers per ray in an observation: distance, is_wall, is_agent."""

Role = Literal["seeker", "hider"]
ROLES: tuple[Role, Role] = ("seeker", "hider")
"""A role's number is its place here."""
SEEKER, HIDER = 0, 1

GOING_ON, TAGGED, TIMED_OUT = 0, 1, 2
"""How a decision ended."""
NOBODY = -1
"""The winner of a draw."""

Positive = Annotated[float, Meta(gt=0.0, le=1e6)]
NotNegative = Annotated[float, Meta(ge=0.0, le=1e6)]
Share = Annotated[float, Meta(ge=0.0, lt=1.0)]
VARIABLE: dict[str, tuple[str, float, float]] = {
    "gravity_mps2": ("physics", 4.0, 20.0),
    "speed_mps": ("agent", 2.0, 16.0),
    "acceleration_mps2": ("agent", 5.0, 80.0),
    "jump_speed_mps": ("agent", 0.0, 8.0),
    "time_limit_sec": ("episode", 2.0, 60.0),
    "tag_reach_m": ("episode", 0.0, 1.0),
    "spawn_separation_m": ("episode", 0.0, 16.0),
}
"""Numbers that may differ from episode to episode: their section, least and most."""
WeightBounds = tuple[float, float, float]
"""Of a reward weight: usual value, least, most."""


class Arena(Struct, frozen=True, forbid_unknown_fields=True):
    """The enclosed floor, centred on the origin; walls have no top for movement and sight."""

    width_m: Positive
    depth_m: Positive
    wall_height_m: Positive
    """What a camera sees; nothing in the rules depends on it."""


class Physics(Struct, frozen=True, forbid_unknown_fields=True):
    """Time, weight, and the distance that is kept between solid things."""

    ticks_per_second: Annotated[int, Meta(ge=10, le=1000)]
    gravity_mps2: Positive
    skin_m: Annotated[float, Meta(ge=1e-6, le=0.01)]


class Agent(Struct, frozen=True, forbid_unknown_fields=True):
    """What a cube can do."""

    size_m: Positive
    speed_mps: Positive
    acceleration_mps2: Positive
    jump_speed_mps: NotNegative
    jump_threshold: Share
    turn_rate_deg_per_sec: Annotated[float, Meta(gt=0.0, le=10800.0)]
    facing_dead_zone: Share


class Eyes(Struct, frozen=True, forbid_unknown_fields=True):
    """The level fan of rays, and the range and cone of sight."""

    rays: Annotated[int, Meta(ge=1, le=256)]
    cone_deg: Annotated[float, Meta(gt=0.0, lt=180.0)]
    range_m: Positive
    height_m: float
    """Above the centre of the cube."""


class Observation(Struct, frozen=True, forbid_unknown_fields=True):
    """The vector an agent is given; a policy carries its version and size."""

    version: Annotated[int, Meta(ge=1)]
    size: Annotated[int, Meta(ge=1)]
    layout: list[tuple[str, Annotated[int, Meta(ge=1)]]]
    position_scale_m: Positive
    velocity_scale_mps: Positive


class Episode(Struct, frozen=True, forbid_unknown_fields=True):
    """How long a match lasts, how often agents decide, and what counts as a tag."""

    time_limit_sec: Positive
    step_tick_interval: Annotated[int, Meta(ge=1, le=60)]
    tag_reach_m: NotNegative
    spawn_separation_m: NotNegative


class RuleSet(Struct, frozen=True, forbid_unknown_fields=True):
    """What a tag does: end the match, or hand over the role; and how a match begins."""

    tag_ends_episode: bool
    immunity_sec: NotNegative
    head_start_sec: NotNegative = 0.0
    """For this long the seeker neither moves nor sees, and nobody can be tagged."""
    hearing_m: NotNegative = 0.0
    """How far away the hider hears where the seeker is."""
    rewards: str = ""
    """The reward profile that comes with the rule set when it is chosen by name."""


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole game but its boxes."""

    format: Annotated[int, Meta(ge=1, le=1)]
    arena: Arena
    physics: Physics
    agent: Agent
    eyes: Eyes
    observation: Observation
    episode: Episode
    rules: str
    rule_sets: dict[str, RuleSet]
    layout: str
    rewards: str
    reward_profiles: dict[str, dict[str, float]]
    """Weights by profile. A file names those that differ from `reward_terms`; loaded, all are."""
    reward_terms: dict[str, dict[str, WeightBounds]] = msgspec.field(
        default_factory=lambda: _GAME.reward_terms  # type: ignore[has-type]
    )
    """The terms in the order in which they are summed, each with its weights."""

    @property
    def rule_set(self) -> RuleSet:
        """The rule set in force."""
        return self.rule_sets[self.rules]

    @property
    def reward_weights(self) -> Any:
        """The reward profile in force, as Weights; one saved before a term existed lacks it."""
        return Weights(**_complete(self.reward_profiles[self.rewards], _GAME.reward_terms))

    @property
    def limit_ticks(self) -> int:
        """Ticks in an episode that nobody ends early, with the head start."""
        ticks = int(self.episode.time_limit_sec * self.physics.ticks_per_second + 0.5)
        return ticks + self.head_start_ticks

    @property
    def limit_sec(self) -> float:
        """Seconds in such an episode."""
        return self.rule_set.head_start_sec + self.episode.time_limit_sec

    @property
    def head_start_ticks(self) -> int:
        """Ticks in which the seeker's eyes are closed."""
        return int(self.rule_set.head_start_sec * self.physics.ticks_per_second + 0.5)

    @property
    def immunity_ticks(self) -> int:
        """Ticks after a tag in which nobody can be tagged."""
        return int(self.rule_set.immunity_sec * self.physics.ticks_per_second + 0.5)

    @property
    def jump_height_m(self) -> float:
        """How high the feet rise in a jump."""
        return self.agent.jump_speed_mps**2 / (2.0 * self.physics.gravity_mps2)

    @property
    def digest(self) -> str:
        """Sixteen digits that change whenever a number of the game in force does."""
        numbers = msgspec.to_builtins(self)
        del numbers["reward_terms"]  # the profile has every weight
        numbers["rule_sets"] = numbers["rule_sets"][self.rules]
        if not self.rule_set.hearing_m:  # the same game as before anybody could hear
            del numbers["rule_sets"]["hearing_m"]
        numbers["reward_profiles"] = numbers["reward_profiles"][self.rewards]
        return hashlib.sha256(msgspec.json.encode(numbers)).hexdigest()[:16]

    def field(self, name: str) -> slice:
        """Where an observation field lies, for example `rules.field("velocity")`."""
        start = 0
        for field, size in self.observation.layout:
            if field == name:
                return slice(start, start + size)
            start += size
        raise KeyError(name)

    @property
    def has_heading(self) -> bool:
        """Whether an observation says which way the agent faces; one of another game may not."""
        return any(field == "forward" for field, _ in self.observation.layout)

    def variable(self) -> dict[str, float]:
        """The numbers that may differ from episode to episode, as they usually are."""
        return {
            name: float(getattr(getattr(self, section), name))
            for name, (section, _, _) in VARIABLE.items()
        }

    def varied(self, values: Mapping[str, float]) -> "Rules":
        """The same, with other values of some of those numbers."""
        sections: dict[str, dict[str, float]] = {}
        for name, value in values.items():
            sections.setdefault(VARIABLE[name][0], {})[name] = value
        changed = {
            section: msgspec.structs.replace(getattr(self, section), **numbers)
            for section, numbers in sections.items()
        }
        return msgspec.structs.replace(self, **changed)

    def seen_by_another_game(self, size: int) -> "Rules":
        """The same, for observations of `size` numbers about which nothing else is known."""
        unknown = msgspec.structs.replace(
            self.observation, version=1, size=size, layout=[("numbers", size)]
        )
        return msgspec.structs.replace(self, observation=unknown)


def load_rules(
    path: Path | None = None, *, rules: str | None = None, rewards: str | None = None
) -> Rules:
    """Read and check a rules file, by default the game's own.

    Args:
        path: the file; None for `godot/tag/rules.json`.
        rules: a rule set to use instead of the file's choice.
        rewards: a reward profile to use instead of the file's choice, or of the one that comes
            with a rule set chosen here.
    """
    path = path or paths.rules_file()
    loaded = read_json(path, Rules)
    try:
        chosen = _known("rules", rules or loaded.rules, loaded.rule_sets)
        rewards = rewards or (loaded.rule_sets[chosen].rewards if rules else "") or loaded.rewards
        loaded = msgspec.structs.replace(
            loaded,
            rules=chosen,
            rewards=_known("rewards", rewards, loaded.reward_profiles),
            reward_profiles={
                name: _all_weights(f"reward_profiles.{name}", profile, loaded.reward_terms)
                for name, profile in loaded.reward_profiles.items()
            },
        )
        _check(loaded)
    except ValueError as error:
        raise UserError(f"{path.name}: {error}") from error
    return loaded


def _check(rules: Rules) -> None:
    """Check what holds between keys."""
    expected = [*_GAME.observation.layout[:-1], ("rays", RAY_CHANNELS * rules.eyes.rays)]
    if rules.observation.layout != expected:
        version = _GAME.observation.version
        raise ValueError(
            f"observation.layout: version {version} is {dict(expected)}, in this order"
        )
    size = sum(size for _, size in expected)
    if rules.observation.size != size:
        raise ValueError(f"observation.size: the layout adds up to {size}")
    if rules.limit_ticks - rules.head_start_ticks < rules.episode.step_tick_interval:
        raise ValueError("episode.time_limit_sec: shorter than one decision")
    inside = min(rules.arena.width_m, rules.arena.depth_m) - 2.0 * rules.physics.skin_m
    if rules.agent.size_m >= inside:
        raise ValueError(f"agent.size_m: an agent of {rules.agent.size_m} m does not fit")
    if abs(rules.eyes.height_m) > rules.agent.size_m / 2.0:
        raise ValueError("eyes.height_m: the eyes lie outside the cube")


def _known(key: str, name: str, offered: dict[str, Any]) -> str:
    if name not in offered:
        what = {"rules": "rule set", "rewards": "reward profile"}[key]
        raise ValueError(f"{key}: no {what} '{name}'; available: {', '.join(offered)}")
    return name


def _all_weights(
    key: str, profile: dict[str, float], terms: dict[str, dict[str, WeightBounds]]
) -> dict[str, float]:
    """Every weight of a profile, in the table's order, each within its bounds."""
    known, weights = [*TERMS], [*Weights._fields]  # a file older than a term lacks it
    if [*terms] != known[: len(terms)] or [*_weights(terms)] != weights[: len(_weights(terms))]:
        raise ValueError(f"reward_terms: expected the terms and weights of {paths.rules_file()}")
    terms = _GAME.reward_terms | terms
    table = _weights(terms)
    for name, value in profile.items():
        if name not in table:
            raise ValueError(f"{key}: unknown weight '{name}'; available: {', '.join(table)}")
        _, least, most = table[name]
        if not least <= value <= most:
            raise ValueError(f"{key}.{name}: expected {least:g} to {most:g}, got {value:g}")
    return _complete(profile, terms)


def _complete(
    profile: dict[str, float], terms: dict[str, dict[str, WeightBounds]]
) -> dict[str, float]:
    return {name: profile.get(name, usual) for name, (usual, _, _) in _weights(terms).items()}


def _weights(terms: dict[str, dict[str, WeightBounds]]) -> dict[str, WeightBounds]:
    return {name: entry for weights in terms.values() for name, entry in weights.items()}


_GAME = read_json(paths.rules_file(), Rules)


def _record(name: str, fields: Iterable[str]) -> Any:
    """A named tuple whose fields the file names; kernels read it as they would a class."""
    return namedtuple(name, fields, module=__name__)  # noqa: PYI024


TERMS = tuple(_GAME.reward_terms)
"""Names of the reward terms, in the order in which they are summed."""
Weights = _record("Weights", _weights(_GAME.reward_terms))
"""A reward profile as kernels read it: `weights.win_bonus`."""
TermIndices = _record("TermIndices", TERMS)
TERM = TermIndices(*range(len(TERMS)))
"""The place of each reward term: `terms[TERM.distance]`."""
ObsOffsets = _record("ObsOffsets", (name for name, _ in _GAME.observation.layout))
OBS = ObsOffsets(*accumulate((size for _, size in _GAME.observation.layout[:-1]), initial=0))
"""Where each field of an observation begins: `observation[OBS.velocity + 1]`."""
