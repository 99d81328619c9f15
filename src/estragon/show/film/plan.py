"""The course of a film: which moment of which match every frame shows, and for how long."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from estragon.show.film.facts import StageFacts
from estragon.show.film.shots import Shot

TITLE_SEC, CARD_SEC, END_SEC, AFTER_SEC = 2.6, 2.8, 4.2, 1.4
"""How long the title, each stage's card, the end, and the moment after a match are in sight."""
LONGEST_SEC = 15.0
"""Of a longer match only the last part is shown."""
SLOW = 0.25
"""The pace around a tag."""
SLOW_FROM_SEC, SLOW_TO_SEC, EASE_SEC = 0.35, 0.12, 0.3
"""It is slow from so long before the tag to so long after it; going over into it takes a while."""


class Quality(NamedTuple):
    """How a film is drawn."""

    size: tuple[int, int]
    fps: int


QUALITIES = {"low": Quality((960, 540), 30), "high": Quality((1920, 1080), 60)}


class Scene(NamedTuple):
    """A stage and the match that shows it."""

    facts: StageFacts
    chosen: str
    """How the match came into the film."""
    shot: Shot
    end_sec: float
    limit_sec: float
    tag_sec: float | None
    """The tag that is shown slowly."""
    verdict: str
    winner: str
    """The role that won; empty for a draw."""
    ends_above: bool
    """Whether it ends in the upper half of the picture."""

    @property
    def first_after(self) -> int:
        """The first drawn frame that shows the end, or what comes after it."""
        times = self.shot.times
        over = (number for number, second in enumerate(times) if second >= self.end_sec)
        return next(over, len(times) - 1)


class Part(Enum):
    """What a frame of the film belongs to."""

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


def match_times(end_sec: float, tag_sec: float | None, fps: int) -> tuple[float, ...]:
    """The seconds of a match that a film's frames show, slow around the tag."""
    times = [max(0.0, end_sec - LONGEST_SEC)]
    while times[-1] < end_sec + AFTER_SEC:
        times.append(round(times[-1] + pace(times[-1], tag_sec) / fps, 6))
    return tuple(times)


def pace(second: float, tag_sec: float | None) -> float:
    """How fast the film goes there: 1 is the game's own time."""
    if tag_sec is None:
        return 1.0
    away = max(tag_sec - SLOW_FROM_SEC - second, second - tag_sec - SLOW_TO_SEC, 0.0)
    share = min(1.0, away / EASE_SEC)
    return SLOW + (1.0 - SLOW) * share * share * (3.0 - 2.0 * share)


def moments(scenes: Sequence[Scene], fps: int) -> list[Moment]:
    """Every frame of the film, in order."""
    found = _still(Part.TITLE, 0, 0, TITLE_SEC, fps)
    for number, scene in enumerate(scenes):
        found += _still(Part.CARD, number, 0, CARD_SEC, fps)
        last = len(scene.shot.times) - 1
        found += [
            Moment(Part.MATCH, number, picture, picture / fps, (last - picture) / fps)
            for picture in range(last + 1)
        ]
    last_scene = len(scenes) - 1
    return found + _still(Part.END, last_scene, len(scenes[-1].shot.times) - 1, END_SEC, fps)


def _still(part: Part, scene: int, picture: int, seconds: float, fps: int) -> list[Moment]:
    count = round(seconds * fps)
    return [
        Moment(part, scene, picture, age / fps, (count - 1 - age) / fps) for age in range(count)
    ]
