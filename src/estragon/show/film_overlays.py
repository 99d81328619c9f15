"""Frames of a film made from drawn frames: title, cards, captions, clock and fades over them."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from PIL import Image, ImageFilter

from estragon.show.canvas import (
    INK,
    ROLE_COLOURS,
    WHITE,
    Colour,
    Shape,
    rounded_square,
    text_width,
    write_text,
)
from estragon.show.film_plan import (
    Moment,
    Part,
    RoleCurve,
    RunFacts,
    Scene,
    StageFacts,
    pace,
    plan_moments,
    smooth_step,
    steps_text,
    time_text,
)
from estragon.show.film_renderers import in_order, workers
from estragon.show.frames import OnProgress, Quality, mp4_writer

DESIGN_HEIGHT = 540.0
"""Places and sizes are given for frames this high, and grow with the frame."""
PAGE, FAINT, TRACK = (250, 249, 246), (112, 107, 100), (222, 218, 210)
PANEL_OPACITY, CORNER = 0.9, 9.0
EDGE = 16.0
"""Between panels and the edge of the frame."""
VERDICT_SIZE = 26.0
INSET_WIDTH, INSET_HEIGHT = 188.0, 158.0
HEAD, ROW, FOOT = 21.0, 16.0, 15.0
"""Of the panel of curves: heights of the heading, of a curve's name, and below the plot."""
GUTTER, MARGIN = 30.0, 12.0
GOALS = {"seeker": "wants to touch the other", "hider": "wants to be left alone"}

FADE_SEC, GROW_FROM_SEC, GROW_SEC = 0.4, 0.5, 1.2
"""Of fades, and of the curve's growth from one stage to the next."""
BLUR, BLUR_SHRINK, DIM = 9.0, 4, 0.3
"""Behind a card: the blur in pixels of a frame 540 high, and how much darker it is."""


class Area(NamedTuple):
    """A rectangle on an overlay."""

    left: float
    top: float
    right: float
    bottom: float


class Overlay:
    """An image with opacity, as large as a frame: drawn once, pasted over many frames."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.unit = size[1] / DESIGN_HEIGHT
        self.width, self.height = size[0] / self.unit, DESIGN_HEIGHT
        self._image = Image.new("RGBA", size)

    def panel(self, left: float, top: float, right: float, bottom: float) -> Self:
        """A rounded background for text."""
        return self.bar(Area(left, top, right, bottom), PAGE, PANEL_OPACITY, CORNER)

    def bar(self, box: Area, colour: Colour, opacity: float = 1.0, radius: float = np.inf) -> Self:
        """A rectangle with round ends or corners."""
        left, top, right, bottom = (self.unit * side for side in box)
        shape = Shape((left, top, right, bottom))
        shape.rectangle(left, top, right, bottom, opacity, radius * self.unit)
        shape.fill(self._image, colour)
        return self

    def line(self, points: np.ndarray, width: float, colour: Colour) -> Self:
        """A line with round joints through points (n, 2)."""
        pixels, thick = points * self.unit, width * self.unit
        shape = Shape.around(pixels, thick + 1.0).line(pixels, thick)
        for x, y in pixels:
            shape.disc(x, y, thick / 2.0)
        shape.fill(self._image, colour)
        return self

    def write(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        colour: Colour = INK,
        *,
        anchor: str = "ls",
        weight: float = 0.0,
    ) -> Self:
        """A line of text."""
        at, unit = (x * self.unit, y * self.unit), self.unit
        write_text(self._image, at, text, size * unit, colour, anchor=anchor, weight=weight * unit)
        return self

    def cube(self, x: float, y: float, role: str, side: float = 11.0) -> Self:
        """The mark of a role, around a point."""
        outline = (rounded_square(side) + np.array([x, y])) * self.unit
        Shape.around(outline).polygon(outline).fill(self._image, ROLE_COLOURS[role])
        return self

    def text_width(self, text: str, size: float) -> float:
        """How wide a text will be."""
        return text_width(text, size * self.unit) / self.unit

    def paste_on(self, frame: Image.Image, opacity: float = 1.0) -> None:
        """Put it over a frame (RGB); nothing more may be drawn on it afterwards."""
        if opacity <= 0.0 or self._parts is None:
            return
        box, colours, alpha = self._parts
        if opacity < 1.0:
            alpha = alpha.point([round(value * opacity) for value in range(256)])
        frame.paste(colours, box, alpha)

    @functools.cached_property
    def _parts(self) -> tuple[tuple[int, int, int, int], Image.Image, Image.Image] | None:
        """Where something is drawn, its colours, and its opacity."""
        box = self._image.getbbox()
        if box is None:
            return None
        part = self._image.crop(box)
        return box, part.convert("RGB"), part.getchannel("A")


def _draw_title(overlay: Overlay, run: RunFacts) -> None:
    """The opening: what is learned, and for how long."""
    middle = overlay.width / 2.0
    overlay.panel(middle - 300.0, 175.0, middle + 300.0, 365.0)
    overlay.write(middle, 240.0, "Learning to play tag", 42.0, anchor="ms", weight=0.7)
    last = run.stages[-1]
    spent = "" if last.training_sec is None else f" in {time_text(last.training_sec)}"
    text = f"{last.title} of {run.learned_by}{spent}" if last.agent_steps else last.subtitle
    overlay.write(middle, 280.0, text, 20.0, anchor="ms")
    texts = {role: f"the {role} {goal}" for role, goal in GOALS.items()}
    width = sum(overlay.text_width(text, 15.0) for text in texts.values()) + 18.0 * 2.0 + 34.0
    left = middle - width / 2.0
    for role, text in texts.items():
        overlay.cube(left + 5.5, 323.0, role)
        overlay.write(left + 18.0, 328.0, text, 15.0, FAINT)
        left += 18.0 + overlay.text_width(text, 15.0) + 34.0


def _draw_card(overlay: Overlay, run: RunFacts, scene: Scene, agent_steps: float) -> None:
    """A stage introduced: when it was, how strong it is, and the curve up to some moment."""
    middle, facts = overlay.width / 2.0, scene.facts
    left, right = middle - 320.0, middle + 352.0
    overlay.panel(left - 32.0, 108.0, right, 432.0)
    overlay.write(left, 164.0, facts.title, 36.0, weight=0.6)
    overlay.write(left, 190.0, facts.subtitle, 16.0, FAINT)
    _draw_strengths(overlay, left, 232.0, facts)
    overlay.write(left, 414.0, scene.chosen, 13.0, FAINT)
    _draw_curves(overlay, Area(right - 322.0, 128.0, right - 14.0, 382.0), run.curves, agent_steps)


def _draw_end(overlay: Overlay, run: RunFacts) -> None:
    """The end: the whole curve, and how strong they became."""
    middle, facts = overlay.width / 2.0, run.stages[-1]
    left, right = middle - 378.0, middle + 410.0
    overlay.panel(left - 32.0, 66.0, right, 474.0)
    overlay.write(left, 124.0, facts.title, 34.0, weight=0.6)
    overlay.write(left, 150.0, facts.subtitle, 16.0, FAINT)
    top = _draw_strengths(overlay, left, 200.0, facts)
    if run.seeker_wins is not None:
        text = f"against each other the seeker wins {run.seeker_wins:.0%}"
        overlay.write(left, top + 8.0, text, 16.0)
    box = Area(right - 418.0, 84.0, right - 14.0, 456.0)
    _draw_curves(overlay, box, run.curves, facts.agent_steps)


def _draw_strengths(overlay: Overlay, left: float, top: float, facts: StageFacts) -> float:
    """The numbers of both roles; returns where the next text may start."""
    for role in ROLE_COLOURS:
        rates = {
            name.removeprefix(f"{role}_vs_"): rate
            for name, rate in facts.win_rates.items()
            if name.startswith(f"{role}_vs_")
        }
        if not rates:
            continue
        overlay.cube(left + 7.0, top - 6.0, role, 14.0)
        overlay.write(left + 22.0, top, role, 18.0, weight=0.4)
        if role in facts.elo:
            overlay.write(left + 300.0, top, f"Elo {facts.elo[role]:.0f}", 18.0, anchor="rs")
        for row, (bot, rate) in enumerate(rates.items(), start=1):
            baseline = top + 22.0 * row
            overlay.write(left + 22.0, baseline, f"beats bot:{bot}", 15.0, FAINT)
            overlay.write(left + 300.0, baseline, f"{rate:.0%}", 15.0, anchor="rs")
        top += 22.0 * len(rates) + 36.0
    return top


def _draw_caption(overlay: Overlay, run: RunFacts, scene: Scene) -> None:
    """What stays in sight during a match: the stage, the curve, and how the match was chosen."""
    facts = scene.facts
    width = max(overlay.text_width(facts.title, 22.0), overlay.text_width(facts.subtitle, 12.5))
    overlay.panel(EDGE, EDGE, EDGE + width + 26.0, EDGE + 56.0)
    overlay.write(EDGE + 13.0, EDGE + 27.0, facts.title, 22.0, weight=0.5)
    overlay.write(EDGE + 13.0, EDGE + 46.0, facts.subtitle, 12.5, FAINT)
    right, bottom = overlay.width - EDGE, overlay.height - EDGE
    first, _, second = scene.chosen.partition("; ")
    width = max(overlay.text_width(first, 12.0), overlay.text_width(second, 12.0))
    overlay.panel(EDGE, bottom - 44.0, EDGE + width + 24.0, bottom)
    overlay.write(EDGE + 12.0, bottom - 26.0, first, 12.0, FAINT)
    overlay.write(EDGE + 12.0, bottom - 10.0, second, 12.0, FAINT)
    box = Area(right - INSET_WIDTH, bottom - INSET_HEIGHT, right, bottom)
    _draw_curves(overlay, box, run.curves, facts.agent_steps)


def _draw_clock(overlay: Overlay, left_sec: float, limit_sec: float) -> None:
    """How much of the match is left."""
    right = overlay.width - EDGE
    overlay.panel(right - 190.0, EDGE, right, EDGE + 34.0)
    start, end, middle = right - 176.0, right - 76.0, EDGE + 17.0
    until = start + max(6.0, (end - start) * left_sec / limit_sec)
    for reached, colour in ((end, TRACK), (until, INK)):
        overlay.bar(Area(start, middle - 3.0, reached, middle + 3.0), colour)
    overlay.write(right - 12.0, middle + 5.0, f"{left_sec:.1f} s left", 14.0, anchor="rs")


def _draw_verdict(overlay: Overlay, scene: Scene) -> None:
    """How the match ended, in the colour of the winner; away from where it happened."""
    colour = ROLE_COLOURS[scene.winner] if scene.winner else INK
    top = overlay.height - 58.0 - 2.0 * VERDICT_SIZE if scene.ends_above else 58.0
    _draw_announcement(overlay, scene.verdict, top, VERDICT_SIZE, colour)


def _draw_announcement(
    overlay: Overlay, text: str, top: float, size: float, colour: Colour = INK
) -> None:
    middle, height = overlay.width / 2.0, 2.0 * size
    half = overlay.text_width(text, size) / 2.0 + 1.1 * size
    overlay.bar(Area(middle - half, top, middle + half, top + height), colour, 0.94)
    overlay.write(middle, top + height / 2.0, text, size, WHITE, anchor="mm", weight=0.4)


def _draw_curves(
    overlay: Overlay, box: Area, curves: Sequence[RoleCurve], agent_steps: float
) -> None:
    """A panel with the win rates up to a moment of the training, and their values there."""
    if not curves:
        return
    overlay.panel(*box)
    left, right = box.left + MARGIN, box.right - MARGIN
    overlay.write(left, box.top + HEAD, "wins against the bots", 12.0, FAINT)
    for row, curve in enumerate(curves):
        baseline = box.top + HEAD + (row + 1) * ROW
        overlay.cube(left + 4.0, baseline - 4.0, curve.role, 8.0)
        overlay.write(left + 13.0, baseline, f"{curve.role} beats {curve.bot}", 12.0)
        overlay.write(right, baseline, f"{curve.at(agent_steps):.0%}", 13.0, anchor="rs")
    top = box.top + HEAD + len(curves) * ROW + 14.0
    plot = Area(left + GUTTER, top, right - 5.0, box.bottom - FOOT - 8.0)
    whole = max(1.0, *(curve.agent_steps[-1] for curve in curves))
    for share in (0.0, 0.5, 1.0):
        height = plot.bottom + (plot.top - plot.bottom) * share
        overlay.line(np.array([[plot.left, height], [plot.right, height]]), 1.0, TRACK)
        overlay.write(plot.left - 6.0, height, f"{share:.0%}", 9.5, FAINT, anchor="rm")
    overlay.write(plot.left, plot.bottom + FOOT, "0", 9.5, FAINT)
    overlay.write(plot.right, plot.bottom + FOOT, steps_text(whole), 9.5, FAINT, anchor="rs")
    for curve in curves:
        until = min(agent_steps, curve.agent_steps[-1])
        steps = [step for step in curve.agent_steps if step < until] + [until]
        rates = np.array([curve.at(step) for step in steps])
        across = plot.left + (plot.right - plot.left) * np.array(steps) / whole
        points = np.stack([across, plot.bottom + (plot.top - plot.bottom) * rates], axis=1)
        colour = ROLE_COLOURS[curve.role]
        if len(points) > 1:
            overlay.line(points, 2.2, colour)
        x, y = points[-1]
        overlay.bar(Area(x - 4.0, y - 4.0, x + 4.0, y + 4.0), colour)


class Composer:
    """Composes the frames of one film."""

    def __init__(self, run: RunFacts, scenes: Sequence[Scene], quality: Quality) -> None:
        self._run, self._scenes, self._quality = run, scenes, quality
        # frames come in order, so a small cache is enough
        self._background = functools.lru_cache(3)(self._draw_background)
        self._overlay = functools.lru_cache(8)(self._draw_overlay)

    def compose(self, moment: Moment) -> Image.Image:
        """One frame of the film: RGB."""
        if moment.part is Part.MATCH:
            return self._match(moment)
        if moment.part is Part.CARD:
            return self._card(moment)
        ground = self._background(moment.scene, moment.picture).copy()
        shown = smooth_step(moment.age_sec / FADE_SEC)
        if moment.part is Part.TITLE:
            shown = smooth_step(min(moment.age_sec, moment.left_sec) / FADE_SEC)
        elif shown < 1.0:
            ground = Image.blend(self._drawn(moment.scene, moment.picture), ground, shown)
        self._overlay(moment.part.value).paste_on(ground, shown)
        return ground

    def _match(self, moment: Moment) -> Image.Image:
        scene = self._scenes[moment.scene]
        frame = self._drawn(moment.scene, moment.picture)
        second = scene.shot.times[moment.picture]
        shown = smooth_step(min(moment.age_sec, moment.left_sec) / FADE_SEC)
        self._overlay("caption", moment.scene).paste_on(frame, shown)
        left_sec = round(max(0.0, scene.limit_sec - min(second, scene.end_sec)), 1)
        self._overlay("clock", moment.scene, left_sec).paste_on(frame, shown)
        slowness = (1.0 - pace(second, scene.tag_sec)) / 0.5
        self._overlay("slow motion").paste_on(frame, min(1.0, slowness))
        since_end = (moment.picture - scene.first_after) / self._quality.fps
        if since_end >= 0.0:
            shown = smooth_step(min(since_end, moment.left_sec) / FADE_SEC)
            self._overlay("verdict", moment.scene).paste_on(frame, shown)
        return frame

    def _card(self, moment: Moment) -> Image.Image:
        number = moment.scene
        scene, before = self._scenes[number], self._scenes[max(0, number - 1)]
        ground = self._background(number, moment.picture).copy()
        if number and moment.age_sec < FADE_SEC:
            last = self._drawn(number - 1, len(before.shot.times) - 1)
            ground = Image.blend(last, ground, smooth_step(moment.age_sec / FADE_SEC))
        if moment.left_sec < FADE_SEC:
            sharp = self._drawn(number, moment.picture)
            ground = Image.blend(sharp, ground, smooth_step(moment.left_sec / FADE_SEC))
        grown = smooth_step((moment.age_sec - GROW_FROM_SEC) / GROW_SEC)
        start = before.facts.agent_steps
        reached = start + (scene.facts.agent_steps - start) * grown
        shown = smooth_step(min(moment.age_sec, moment.left_sec) / FADE_SEC)
        self._overlay("card", number, reached).paste_on(ground, shown)
        return ground

    def _draw_overlay(self, what: str, number: int = 0, value: float = 0.0) -> Overlay:
        overlay = Overlay(self._quality.size)
        run, scene = self._run, self._scenes[number]
        match what:
            case "title":
                _draw_title(overlay, run)
            case "card":
                _draw_card(overlay, run, scene, value)
            case "caption":
                _draw_caption(overlay, run, scene)
            case "clock":
                _draw_clock(overlay, value, scene.limit_sec)
            case "slow motion":
                _draw_announcement(overlay, "slow motion", EDGE, 14.0)
            case "verdict":
                _draw_verdict(overlay, scene)
            case _:
                _draw_end(overlay, run)
        return overlay

    def _draw_background(self, scene: int, picture: int) -> Image.Image:
        sharp = self._drawn(scene, picture)
        radius = BLUR * self._quality.size[1] / DESIGN_HEIGHT / BLUR_SHRINK
        soft = sharp.reduce(BLUR_SHRINK).filter(ImageFilter.GaussianBlur(radius))
        soft = soft.resize(sharp.size, Image.Resampling.BICUBIC)
        return Image.blend(soft, Image.new("RGB", soft.size, INK), DIM)

    def _drawn(self, scene: int, picture: int) -> Image.Image:
        return self._scenes[scene].shot.read(picture)


def encode_film(
    run: RunFacts, scenes: Sequence[Scene], quality: Quality, path: Path, on_progress: OnProgress
) -> int:
    """Compose every frame, in order, into one MP4; returns their number.

    All drawn frames of the scenes must exist.
    """
    for scene in scenes:
        scene.shot.check(quality.size)
    moments = plan_moments(scenes, quality.fps)
    with (
        workers(_prepare, run, scenes, quality) as pool,
        mp4_writer(path, quality.size, quality.fps) as add,
    ):
        for done, pixels in enumerate(in_order(pool, _compose, moments), start=1):
            add(pixels)
            on_progress(done, len(moments))
    return len(moments)


_composer: Composer


def _prepare(run: RunFacts, scenes: Sequence[Scene], quality: Quality) -> None:
    global _composer  # noqa: PLW0603 - one per worker
    _composer = Composer(run, scenes, quality)


def _compose(moment: Moment) -> bytes:
    return _composer.compose(moment).tobytes()
