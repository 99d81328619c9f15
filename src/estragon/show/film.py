"""A film of how play changed while it was learned: the same match, once for every stage."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from estragon.errors import UserError
from estragon.show.encode import Mp4Writer
from estragon.show.motion import Motion, motion_of
from estragon.show.record import Recording, record_match
from estragon.show.top_down import SIZE, TopDown
from estragon.tag.layout import Layout
from estragon.tag.match import TAGGED
from estragon.tag.players import Player
from estragon.tag.rules import Rules

if TYPE_CHECKING:
    from PIL import Image

FPS = 40
HOLD_SEC = 1.0
"""How long the end of a match stays in sight."""


class Stage(NamedTuple):
    """Two players of some moment in training, and how the film introduces them."""

    name: str
    seeker: Player
    hider: Player
    caption: str


def film_stages(
    stages: Sequence[Stage],
    path: Path,
    *,
    rules: Rules,
    layout: Layout,
    seed: int,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Write an MP4 in which every stage plays the match of this seed, from the same start.

    Args:
        stages: shown one after the other.
        path: the film; written whole, or not at all.
        rules: the game.
        layout: the boxes.
        seed: decides where the two begin.
        tell: hears how many frames are drawn, and of how many.
    """
    if not stages:
        raise UserError("a film needs at least one stage")
    top_down = TopDown(rules, layout)
    scenes = []
    for stage in stages:
        recording = record_match(stage.seeker, stage.hider, rules=rules, layout=layout, seed=seed)
        motion = motion_of(recording, rules, layout, FPS)
        scenes.append((stage, motion, verdict_of(recording, motion, rules)))
    total = sum(len(motion.seconds) + round(HOLD_SEC * FPS) for _, motion, _ in scenes)
    done = 0
    with Mp4Writer(path, SIZE, FPS) as film:
        for stage, motion, verdict in scenes:
            still = top_down.headed(stage.name, stage.caption)
            for picture in scene_frames(top_down, still, motion, verdict):
                film.add(picture)
                done += 1
                tell(done, total)


def scene_frames(
    top_down: TopDown, still: "Image.Image", motion: Motion, verdict: str
) -> "Iterator[Image.Image]":
    """Every frame of one match, and of the moment after it."""
    last = len(motion.seconds) - 1
    for frame, seconds in enumerate(motion.seconds):
        yield top_down.draw(still, motion, frame, float(seconds))
    for held in range(round(HOLD_SEC * FPS)):
        after = float(motion.seconds[last]) + (held + 1) / FPS
        yield top_down.draw(still, motion, last, after, verdict)


def verdict_of(recording: Recording, motion: Motion, rules: Rules) -> str:
    """How a match ended, in a few words."""
    seconds = recording.seconds(rules)
    if recording.end == TAGGED:
        return f"tagged after {seconds:.1f} s"
    if rules.rule_set.tag_ends_episode:
        return f"survived {seconds:g} s"
    tags = len(motion.tags)
    return f"{tags} {'tag' if tags == 1 else 'tags'} in {seconds:g} s"
