"""Every number of the tag game, read from `godot/tag/rules.json` and checked."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.tag.schema import read_json

AGENTS = 2
ACTION_SIZE = 3
RAY_CHANNELS = 3
"""Numbers per ray in an observation: distance, is_wall, is_agent."""

Positive = Annotated[float, Meta(gt=0.0, le=1e6)]
NotNegative = Annotated[float, Meta(ge=0.0, le=1e6)]
NotPositive = Annotated[float, Meta(le=0.0, ge=-1e6)]
Share = Annotated[float, Meta(ge=0.0, lt=1.0)]


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
    """What a tag does: end the match, or hand over the role."""

    tag_ends_episode: bool
    immunity_sec: NotNegative


class Rewards(Struct, frozen=True, forbid_unknown_fields=True):
    """The weight of every reward term; zero switches a term off."""

    distance_reward_scale: NotNegative
    seeker_time_penalty: NotPositive
    runner_survival_bonus: NotNegative
    win_bonus: NotNegative
    tagged_penalty: NotNegative
    timeout_hider_bonus: NotNegative
    timeout_seeker_penalty: NotNegative
    high_ground_bonus: NotNegative
    high_ground_y_m: NotNegative
    jump_near_bonus: NotNegative
    jump_near_m: NotNegative
    wall_penalty: NotNegative
    wall_near_m: NotNegative
    speed_bonus: NotNegative


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
    reward_profiles: dict[str, Rewards]

    @property
    def rule_set(self) -> RuleSet:
        """The rule set in force."""
        return self.rule_sets[self.rules]

    @property
    def reward_weights(self) -> Rewards:
        """The reward profile in force."""
        return self.reward_profiles[self.rewards]

    @property
    def limit_ticks(self) -> int:
        """Ticks in an episode that nobody ends early."""
        return int(self.episode.time_limit_sec * self.physics.ticks_per_second + 0.5)

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
        """Sixteen digits that change whenever a number of the game does."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]

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
        rewards: a reward profile to use instead of the file's choice.
    """
    path = path or paths.rules_file()
    loaded = read_json(path, Rules)
    loaded = msgspec.structs.replace(
        loaded, rules=rules or loaded.rules, rewards=rewards or loaded.rewards
    )
    _check(loaded, path.name)
    return loaded


def _check(rules: Rules, name: str) -> None:
    """Check what holds between keys."""
    _check_choice(name, "rules", "rule set", rules.rules, rules.rule_sets)
    _check_choice(name, "rewards", "reward profile", rules.rewards, rules.reward_profiles)
    expected = [*_HEAD_LAYOUT, ("rays", RAY_CHANNELS * rules.eyes.rays)]
    if rules.observation.layout != expected:
        raise UserError(f"{name}: observation.layout: version 1 is {dict(expected)}, in this order")
    size = sum(size for _, size in expected)
    if rules.observation.size != size:
        raise UserError(f"{name}: observation.size: the layout adds up to {size}")
    if rules.limit_ticks < rules.episode.step_tick_interval:
        raise UserError(f"{name}: episode.time_limit_sec: shorter than one decision")
    inside = min(rules.arena.width_m, rules.arena.depth_m) - 2.0 * rules.physics.skin_m
    if rules.agent.size_m >= inside:
        raise UserError(f"{name}: agent.size_m: an agent of {rules.agent.size_m} m does not fit")
    if abs(rules.eyes.height_m) > rules.agent.size_m / 2.0:
        raise UserError(f"{name}: eyes.height_m: the eyes lie outside the cube")


def _check_choice(
    name: str, key: str, what: str, chosen: str, offered: Mapping[str, object]
) -> None:
    if chosen not in offered:
        raise UserError(f"{name}: {key}: no {what} '{chosen}'; there are {', '.join(offered)}")


_HEAD_LAYOUT: list[tuple[str, int]] = [
    ("position", 3),
    ("velocity", 3),
    ("forward", 2),
    ("is_seeker", 1),
    ("is_hider", 1),
    ("on_floor", 1),
    ("immune", 1),
    ("time_left", 1),
    ("opponent_visible", 1),
    ("last_seen_relative", 3),
    ("last_seen_age", 1),
]
