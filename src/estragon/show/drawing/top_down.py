"""One frame of a match: the arena from above, who is where, and what they see."""

import numpy as np
from PIL import Image

from estragon.show.drawing.cube import Cube, draw_cube, draw_shadow, draw_sight, draw_trail
from estragon.show.drawing.motion import Motion
from estragon.show.drawing.palette import SEEKER
from estragon.show.drawing.scenery import draw_scenery, footprint, view_of
from estragon.show.drawing.shape import Shape
from estragon.tag.layout import Layout
from estragon.tag.rules import AGENTS, Rules

TRAIL_SEC, TRAIL_STEP_SEC = 1.0, 0.05
RIPPLE_SEC, RIPPLE_M, RIPPLE_PX = 0.6, 2.6, 7.0


class TopDown:
    """Draws the frames of matches in one arena."""

    def __init__(self, rules: Rules, layout: Layout, size: tuple[int, int]) -> None:
        self._rules, self._layout = rules, layout
        self._view = view_of(rules, size)
        self._scenery = draw_scenery(layout, rules, self._view)

    def draw(self, motion: Motion, frame: int) -> Image.Image:
        """A frame of a match, or of the moment after it."""
        picture = self._scenery.copy()
        cubes = [self._cube(motion, frame, agent) for agent in range(AGENTS)]
        view, size = self._view, self._rules.agent.size_m
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
            draw_trail(picture, view, cube, _walked(motion, frame, agent))
        self._ripple(picture, motion, float(motion.seconds[frame]))
        for cube in sorted(cubes, key=lambda cube: cube.height_m):
            draw_shadow(picture, view, cube, size)
            draw_cube(picture, view, cube, size)
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
                width = RIPPLE_PX * self._view.unit * (1.0 - age)
                ring.disc(at_x, at_y, radius - 1.0 - width, 0.0)
                ring.fill(picture, SEEKER)


def _walked(motion: Motion, frame: int, agent: int) -> np.ndarray:
    """The way an agent came in the last second of the match: (n, 2) x and z."""
    now = motion.seconds[frame]
    then = max(motion.seconds[0], now - TRAIL_SEC)
    times = np.append(np.arange(then, now, TRAIL_STEP_SEC), now)
    way = motion.positions[: frame + 1, agent]
    x, z = (np.interp(times, motion.seconds[: frame + 1], way[:, axis]) for axis in (0, 2))
    return np.stack([x, z], axis=1)
