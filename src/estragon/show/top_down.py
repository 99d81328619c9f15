"""One frame of a film: the arena from above, who is where, what they see, how long is left."""

import numpy as np
from PIL import Image

from estragon.show.cube import Cube, draw_cube, draw_shadow, draw_sight, draw_trail
from estragon.show.lettering import width_of, write
from estragon.show.motion import Motion
from estragon.show.palette import HIDER, SEEKER
from estragon.show.scenery import (
    ARENA_LEFT,
    ARENA_SIDE,
    ARENA_TOP,
    HEIGHT,
    SHADOW,
    WIDTH,
    draw_scenery,
    footprint,
    view_of,
)
from estragon.show.shape import WHITE, Shape, rounded_square
from estragon.tag.layout import Layout
from estragon.tag.rules import AGENTS, Rules

SIZE = (WIDTH, HEIGHT)
INK, FAINT, TRACK = (38, 36, 34), (122, 117, 110), (222, 218, 210)
TRAIL_SEC, TRAIL_STEP = 1.0, 2
RIPPLE_SEC, RIPPLE_M = 0.6, 2.6
EDGE = ARENA_LEFT - 7
BAR_TOP, BAR_HEIGHT = 697, 6


class TopDown:
    """Draws the frames of matches in one arena."""

    def __init__(self, rules: Rules, layout: Layout) -> None:
        self._rules, self._layout = rules, layout
        self._view = view_of(rules)
        self._scenery = draw_scenery(layout, rules)

    def headed(self, name: str, caption: str) -> Image.Image:
        """The still picture of a stage: the arena under its name and caption."""
        picture = self._scenery.copy()
        write(picture, (EDGE, 33), name, 27, INK, weight=0.6, widest=WIDTH - 2 * EDGE - 150)
        write(picture, (EDGE, 54), caption, 15, FAINT, widest=WIDTH - 2 * EDGE)
        right = float(WIDTH - EDGE)
        for role, colour in (("hider", HIDER), ("seeker", SEEKER)):
            right -= width_of(role, 15)
            write(picture, (right, 33), role, 15, INK)
            mark = rounded_square(11.0) + np.array([right - 11.0, 28.0])
            Shape.around(mark).polygon(mark).fill(picture, colour)
            right -= 32.0
        return picture

    def draw(
        self, still: Image.Image, motion: Motion, frame: int, seconds: float, verdict: str = ""
    ) -> Image.Image:
        """A frame of a match, `seconds` after it began; with a verdict once it is over."""
        picture = still.copy()
        cubes = [self._cube(motion, frame, agent) for agent in range(AGENTS)]
        view, size = self._view, self._rules.agent.size_m
        first = int(np.searchsorted(motion.seconds, seconds - TRAIL_SEC))
        for agent, cube in enumerate(cubes):
            draw_sight(
                picture,
                view,
                cube,
                motion.ray_ends[frame, agent],
                self._screens(cube),
                self._rules.eyes.range_m,
            )
        for agent, cube in enumerate(cubes):
            walked = motion.positions[first : frame + 1, agent, ::2]
            draw_trail(picture, view, cube, walked[::-TRAIL_STEP][::-1])
        self._ripple(picture, motion, seconds)
        for cube in sorted(cubes, key=lambda cube: cube.height_m):
            draw_shadow(picture, view, cube, size)
            draw_cube(picture, view, cube, size)
        self._clock(picture, motion.seconds[frame])
        if verdict:
            self._announce(picture, verdict, SEEKER if motion.tags else HIDER)
        return picture

    def _cube(self, motion: Motion, frame: int, agent: int) -> Cube:
        x, y, z = motion.positions[frame, agent]
        place = np.array([x, z])
        forward = motion.forwards[frame, agent]
        sees = bool(motion.seen[frame, agent])
        across = motion.positions[frame, 1 - agent, ::2] - place
        feet = max(0.0, float(y) - self._rules.agent.size_m / 2.0)
        return Cube(
            place=place,
            forward=forward,
            gaze=across / max(1e-6, float(np.hypot(*across))) if sees else forward,
            height_m=feet,
            drop_m=max(0.0, feet - self._ground(place, feet)),
            is_seeker=bool(motion.is_seeker[frame, agent]),
            sees=sees,
        )

    def _ground(self, place: np.ndarray, feet: float) -> float:
        """The height of what is under an agent."""
        reach = self._rules.agent.size_m / 2.0
        ground = 0.0
        for box in self._layout.boxes:
            half = np.array([box.size_m[0], box.size_m[2]]) / 2.0 + reach
            over = (np.abs(place - box.at_m) < half).all()
            if over and ground < box.size_m[1] <= feet + 0.01:
                ground = box.size_m[1]
        return ground

    def _screens(self, cube: Cube) -> list[np.ndarray]:
        eyes = cube.height_m + self._rules.agent.size_m / 2.0 + self._rules.eyes.height_m
        return [footprint(box) for box in self._layout.boxes if box.size_m[1] > eyes]

    def _ripple(self, picture: Image.Image, motion: Motion, seconds: float) -> None:
        """A ring that runs outward from where a tag has just happened."""
        for when, x, z in motion.tags:
            age = (seconds - when) / RIPPLE_SEC
            if 0.0 <= age < 1.0:
                at_x, at_y = self._view.at(np.array([x, z]))
                radius = (0.5 + RIPPLE_M * (1.0 - (1.0 - age) ** 2)) * self._view.pixels_per_m
                box = (at_x - radius, at_y - radius, at_x + radius, at_y + radius)
                ring = Shape(box).disc(at_x, at_y, radius - 1.0, 0.8 * (1.0 - age))
                ring.disc(at_x, at_y, radius - 1.0 - 7.0 * (1.0 - age), 0.0)
                ring.fill(picture, SEEKER)

    def _clock(self, picture: Image.Image, seconds: float) -> None:
        """The bar at the bottom: how much of the time is left."""
        limit = self._rules.episode.time_limit_sec
        left = max(0.0, limit - seconds)
        start, end = EDGE, WIDTH - EDGE - 70
        until = start + max(BAR_HEIGHT, (end - start) * left / limit)
        for right, colour in ((end, TRACK), (until, INK)):
            box = (start, BAR_TOP, right, BAR_TOP + BAR_HEIGHT)
            Shape(box).pill(*box).fill(picture, colour)
        write(picture, (WIDTH - EDGE, BAR_TOP + 8), f"{left:.1f} s left", 15, INK, anchor="rs")

    def _announce(self, picture: Image.Image, verdict: str, colour: str) -> None:
        width, height = width_of(verdict, 26) + 56.0, 54.0
        middle = ARENA_LEFT + ARENA_SIDE / 2.0
        top = ARENA_TOP + 26.0
        left, right, bottom = middle - width / 2.0, middle + width / 2.0, top + height
        around = (left - 20.0, top - 20.0, right + 20.0, bottom + 24.0)
        shadow = Shape(around).pill(left, top + 4.0, right, bottom + 4.0, 0.3)
        shadow.fill(picture, SHADOW, blur=6.0)
        Shape(around).pill(left, top, right, bottom, 0.94).fill(picture, colour)
        at = (middle, top + height / 2.0)
        write(picture, at, verdict, 26, WHITE, anchor="mm", weight=0.4)
