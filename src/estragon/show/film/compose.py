"""Frames of a film made from drawn frames: fades, cards and captions laid over them."""

import functools
from typing import NamedTuple

from PIL import Image, ImageFilter

from estragon.show.film.cards import (
    draw_caption,
    draw_clock,
    draw_end,
    draw_slow_mark,
    draw_stage_card,
    draw_title,
    draw_verdict,
)
from estragon.show.film.facts import RunFacts
from estragon.show.film.layer import DESIGN_HEIGHT, INK, Layer
from estragon.show.film.plan import Moment, Part, Quality, Scene, pace

FADE_SEC, GROW_FROM_SEC, GROW_SEC = 0.4, 0.5, 1.2
"""Of fades, and of the curve's way from one stage to the next."""
BLUR, BLUR_SHRINK, DIM = 9.0, 4, 0.3
"""Behind a card: the blur in pixels of a frame 540 high, and how much darker it is."""


class Film(NamedTuple):
    """All it takes to compose a film from its drawn frames."""

    run: RunFacts
    scenes: tuple[Scene, ...]
    quality: Quality


class Composer:
    """Composes the frames of one film."""

    def __init__(self, film: Film) -> None:
        self._run, self._scenes, self._quality = film
        # frames come in order, so the newest few of everything are enough
        self._background = functools.lru_cache(3)(self._new_background)
        self._layer = functools.lru_cache(8)(self._new_layer)

    def compose(self, moment: Moment) -> Image.Image:
        """One frame of the film: RGB."""
        if moment.part is Part.MATCH:
            return self._match(moment)
        if moment.part is Part.CARD:
            return self._card(moment)
        return self._title(moment) if moment.part is Part.TITLE else self._end(moment)

    def _match(self, moment: Moment) -> Image.Image:
        scene = self._scenes[moment.scene]
        picture = self._drawn(moment.scene, moment.picture)
        second = scene.shot.times[moment.picture]
        shown = _share(min(moment.age_sec, moment.left_sec), FADE_SEC)
        self._layer("caption", moment.scene).lay_on(picture, shown)
        left_sec = round(max(0.0, scene.limit_sec - min(second, scene.end_sec)), 1)
        self._layer("clock", moment.scene, left_sec).lay_on(picture, shown)
        slowness = (1.0 - pace(second, scene.tag_sec)) / 0.5
        self._layer("slow motion").lay_on(picture, min(1.0, slowness))
        since_end = (moment.picture - scene.first_after) / self._quality.fps
        if since_end >= 0.0:
            told = _share(min(since_end, moment.left_sec), FADE_SEC)
            self._layer("verdict", moment.scene).lay_on(picture, told)
        return picture

    def _card(self, moment: Moment) -> Image.Image:
        ground = self._background(moment.scene, moment.picture).copy()
        if moment.scene and moment.age_sec < FADE_SEC:
            last = len(self._scenes[moment.scene - 1].shot.times) - 1
            before = self._drawn(moment.scene - 1, last)
            ground = Image.blend(before, ground, _share(moment.age_sec, FADE_SEC))
        if moment.left_sec < FADE_SEC:
            sharp = self._drawn(moment.scene, moment.picture)
            ground = Image.blend(sharp, ground, _share(moment.left_sec, FADE_SEC))
        steps = self._scenes[moment.scene].facts.agent_steps
        steps_before = self._scenes[max(0, moment.scene - 1)].facts.agent_steps
        grown = _share(moment.age_sec - GROW_FROM_SEC, GROW_SEC)
        reached = steps_before + (steps - steps_before) * grown
        card = self._layer("card", moment.scene, reached)
        card.lay_on(ground, _share(min(moment.age_sec, moment.left_sec), FADE_SEC))
        return ground

    def _title(self, moment: Moment) -> Image.Image:
        ground = self._background(moment.scene, moment.picture).copy()
        shown = _share(min(moment.age_sec, moment.left_sec), FADE_SEC)
        self._layer("title").lay_on(ground, shown)
        return ground

    def _end(self, moment: Moment) -> Image.Image:
        ground = self._background(moment.scene, moment.picture).copy()
        shown = _share(moment.age_sec, FADE_SEC)
        if shown < 1.0:
            ground = Image.blend(self._drawn(moment.scene, moment.picture), ground, shown)
        self._layer("end").lay_on(ground, shown)
        return ground

    def _new_layer(self, what: str, scene: int = 0, number: float = 0.0) -> Layer:
        layer = Layer(self._quality.size)
        run, shown = self._run, self._scenes[scene]
        match what:
            case "title":
                draw_title(layer, run)
            case "card":
                draw_stage_card(layer, run, shown, number)
            case "caption":
                draw_caption(layer, run, shown)
            case "clock":
                draw_clock(layer, number, shown.limit_sec)
            case "slow motion":
                draw_slow_mark(layer)
            case "verdict":
                draw_verdict(layer, shown)
            case _:
                draw_end(layer, run)
        return layer

    def _new_background(self, scene: int, picture: int) -> Image.Image:
        sharp = self._drawn(scene, picture)
        unit = self._quality.size[1] / DESIGN_HEIGHT
        soft = sharp.reduce(BLUR_SHRINK).filter(ImageFilter.GaussianBlur(BLUR * unit / BLUR_SHRINK))
        soft = soft.resize(sharp.size, Image.Resampling.BICUBIC)
        return Image.blend(soft, Image.new("RGB", soft.size, INK), DIM)

    def _drawn(self, scene: int, picture: int) -> Image.Image:
        return self._scenes[scene].shot.read(picture)


def _share(value: float, whole: float) -> float:
    """How far something is, 0 to 1, beginning and ending gently."""
    share = min(1.0, max(0.0, value / whole))
    return share * share * (3.0 - 2.0 * share)
