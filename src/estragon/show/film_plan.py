"""The course of a film: what it says of a run, and which moment of a match every frame shows."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from estragon.show.film_renderers import Shot
from estragon.show.trajectory import Trajectory
from estragon.tag.rules import Rules

MINUTE, HOUR = 60, 3600
TITLE_SEC, CARD_SEC, END_SEC, AFTER_SEC = 2.6, 2.8, 4.2, 1.4
"""Duration of the title, each stage's card, the end, and the moment after a match."""
MAX_SEC = 15.0
"""Of a longer match only the last part is shown."""
SLOW = 0.25
"""The pace around a tag."""
SLOW_FROM_SEC, SLOW_TO_SEC, EASE_SEC = 0.35, 0.12, 0.3
"""It is slow from so long before the tag to so long after it, with a gradual transition."""


class StageFacts(Struct, frozen=True):
    """The numbers of one stage of the training."""

    name: str
    """Its share of the training: 5%."""
    agent_steps: int
    training_sec: float | None
    """Time spent on learning until then; None where the run does not say."""
    win_rates: dict[str, float]
    """Against each bot the role was measured with, 0 to 1, by `seeker_vs_random` and so on."""
    elo: dict[str, float]
    """By role."""

    @property
    def title(self) -> str:
        """A heading for it."""
        return steps_text(self.agent_steps) if self.agent_steps else "untrained"

    @property
    def subtitle(self) -> str:
        """When it was."""
        if not self.agent_steps:
            return "before the training"
        if self.training_sec is None:
            return f"after {self.name} of the training"
        return f"after {time_text(self.training_sec)} of training"


class RoleCurve(Struct, frozen=True):
    """How often a role beat a bot, stage by stage."""

    role: str
    bot: str
    agent_steps: list[float]
    win_rates: list[float]

    def at(self, agent_steps: float) -> float:
        """The win rate at some point of the training, linear between two stages."""
        return float(np.interp(agent_steps, self.agent_steps, self.win_rates))


class RunFacts(Struct, frozen=True):
    """The numbers of the whole run."""

    name: str
    learned_by: str
    """self-play, or play against an opponent."""
    stages: list[StageFacts]
    curves: list[RoleCurve]
    """Of each role that learned, against the bot that is hard for it."""
    seeker_wins: float | None = None
    """Win rate of the last stage's seeker against its hider; None where only one role learned."""


def steps_text(agent_steps: float) -> str:
    """A number of steps for people."""
    if agent_steps < 1e6:
        return f"{agent_steps:,.0f} steps"
    return f"{agent_steps / 1e6:.1f} million steps"


def time_text(seconds: float) -> str:
    """A duration for people."""
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"


class MatchChoice(NamedTuple):
    """The match that a film shows, and what it was chosen from."""

    number: int
    matches: int
    seeker_wins: float
    """Share of the matches won by the agent that began as seeker; a draw is half."""


class Scene(NamedTuple):
    """A stage and the match that shows it."""

    facts: StageFacts
    chosen: str
    """How the match was chosen."""
    shot: Shot
    end_sec: float
    limit_sec: float
    tag_sec: float | None
    """The tag that is shown slowly."""
    verdict: str
    winner: str
    """The role that won; empty for a draw."""
    ends_above: bool
    """Whether it ends in the upper half of the frame."""

    @property
    def first_after(self) -> int:
        """The first drawn frame at or after the end."""
        times = self.shot.times
        over = (number for number, second in enumerate(times) if second >= self.end_sec)
        return next(over, len(times) - 1)


def plan_scene(
    match: Trajectory, facts: StageFacts, choice: MatchChoice, shot: Shot, *, rules: Rules, fps: int
) -> Scene:
    """The scene of a match; the times of `shot` are filled in."""
    end_sec = float(match.seconds[-1])
    tag_sec = match.tags[-1].tick / match.start.ticks_per_second if match.tags else None
    winner = ""
    if match.winner >= 0:
        winner = "seeker" if match.is_seeker[-1, match.winner] else "hider"
    return Scene(
        facts=facts,
        chosen=chosen_text(choice, rules),
        shot=shot._replace(times=match_times(end_sec, tag_sec, fps)),
        end_sec=end_sec,
        limit_sec=match.game_rules().limit_sec,
        tag_sec=tag_sec,
        verdict=verdict_of(match, rules),
        winner=winner,
        ends_above=bool(match.positions[-1, :, 2].mean() < 0.0),
    )


def chosen_text(choice: MatchChoice, rules: Rules) -> str:
    """How a match was chosen."""
    who = "the seeker" if rules.rule_set.tag_ends_episode else "the first seeker"
    return f"chosen from {choice.matches} matches; {who} wins {choice.seeker_wins:.0%} of them"


def verdict_of(match: Trajectory, rules: Rules) -> str:
    """How a match ended, in a few words."""
    seconds = float(match.seconds[-1])
    if match.tagged:
        return f"tagged after {seconds:.1f} s"
    if rules.rule_set.tag_ends_episode:
        return f"survived {seconds:g} s"
    tags = len(match.tags)
    return f"{tags} {'tag' if tags == 1 else 'tags'} in {seconds:g} s"


def match_times(end_sec: float, tag_sec: float | None, fps: int) -> tuple[float, ...]:
    """The seconds of a match that a film's frames show, slow around the tag."""
    times = [max(0.0, end_sec - MAX_SEC)]
    while times[-1] < end_sec + AFTER_SEC:
        times.append(round(times[-1] + pace(times[-1], tag_sec) / fps, 6))
    return tuple(times)


def pace(second: float, tag_sec: float | None) -> float:
    """The speed of the film there: 1 is the game's own time."""
    if tag_sec is None:
        return 1.0
    away = max(tag_sec - SLOW_FROM_SEC - second, second - tag_sec - SLOW_TO_SEC, 0.0)
    return SLOW + (1.0 - SLOW) * smooth_step(away / EASE_SEC)


def smooth_step(share: float) -> float:
    """0 to 1, starting and ending gently."""
    share = min(1.0, max(0.0, share))
    return share * share * (3.0 - 2.0 * share)


class Part(Enum):
    """The part of the film that a frame belongs to."""

    TITLE = "title"
    CARD = "card"
    MATCH = "match"
    END = "end"


class Moment(NamedTuple):
    """One frame of the film."""

    part: Part
    scene: int
    picture: int
    """The drawn frame of the scene that it is made from."""
    age_sec: float
    """Since its part began."""
    left_sec: float
    """Until its part ends."""


def plan_moments(scenes: Sequence[Scene], fps: int) -> list[Moment]:
    """Every frame of the film, in order."""
    moments = _still(Part.TITLE, 0, 0, TITLE_SEC, fps)
    last = 0
    for number, scene in enumerate(scenes):
        moments += _still(Part.CARD, number, 0, CARD_SEC, fps)
        last = len(scene.shot.times) - 1
        moments += [
            Moment(Part.MATCH, number, picture, picture / fps, (last - picture) / fps)
            for picture in range(last + 1)
        ]
    return moments + _still(Part.END, len(scenes) - 1, last, END_SEC, fps)


def _still(part: Part, scene: int, picture: int, seconds: float, fps: int) -> list[Moment]:
    count = round(seconds * fps)
    return [
        Moment(part, scene, picture, age / fps, (count - 1 - age) / fps) for age in range(count)
    ]
