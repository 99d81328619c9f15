"""Frames of a match from above: the arena, where the agents are, and what they see."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from estragon.show.canvas import (
    BLACK,
    HIDER,
    RGB,
    SEEKER,
    WHITE,
    Shape,
    blend,
    rgb,
    rounded_square,
)
from estragon.show.trajectory import Trajectory
from estragon.tag.layout import Box, Layout
from estragon.tag.rules import AGENTS, RAY_CHANNELS, Rules
from estragon.tag.state import fan_of, vectors

SAME_SEC = 1e-9
"""Closer than this, two moments are the same."""

ARENA_SHARE = 0.92
"""How much of a frame's height the arena takes."""
DESIGN_PIXELS_PER_M = 30.0
"""The scale at which widths and blurs in pixels are given; they grow with the view."""
PAGE, WALL, FLOOR, TILE = (244, 242, 237), (92, 88, 82), (252, 251, 248), (240, 238, 232)
SHADOW = (54, 48, 40)
LOW, TALL, TALL_M = (222, 209, 184), (132, 122, 110), 3.0
"""Tops of the lowest and the tallest boxes."""
CORNERS = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
WALL_PX, TILE_M = 7, 2.0
LIGHT = np.array([0.26, 0.36])
"""The offset of a shadow: metres to the right and down per metre of height."""

CAMERA_M = 11.0
"""Apparent height of the camera: an agent nearer to it looks larger."""
TRAIL_SEC, TRAIL_STEP_SEC, TRAIL_WIDTH_M, TRAIL_OPACITY = 1.0, 0.05, 0.5, 0.45
SIGHT_OPACITY, SEEING_OPACITY = 0.3, 0.55
EYES = np.array([[0.22, -0.22], [0.22, 0.22]])
"""Ahead and to the right of the middle of a cube of size 1."""
PUPIL = (30, 30, 36)
RIPPLE_SEC, RIPPLE_M, RIPPLE_PX = 0.6, 2.6, 7.0


class Motion(NamedTuple):
    """A match at the times of some frames, one row per frame."""

    seconds: np.ndarray
    """(frames,) float64 since the match began; after its end nothing moves."""
    positions: np.ndarray
    """(frames, agents, 3) float64: centres of the cubes, m."""
    forwards: np.ndarray
    """(frames, agents, 2) float64: facing, x and z."""
    is_seeker: np.ndarray
    """(frames, agents) bool."""
    seen: np.ndarray
    """(frames, agents) bool: who sees its opponent."""
    ray_ends: np.ndarray
    """(frames, agents, rays, 2) float64: x and z of the end of each ray."""
    tags: list[tuple[float, float, float]]
    """Second, x and z of every tag."""


def motion_of(trajectory: Trajectory, seconds: Sequence[float]) -> Motion:
    """The match at these seconds, in rising order, smooth between the logged ticks."""
    rules = trajectory.game_rules()
    wanted = np.array(seconds, dtype=np.float64)
    known = trajectory.seconds
    now = np.clip(wanted, known[0], known[-1])
    row = np.searchsorted(known, now + SAME_SEC, side="right") - 1
    positions = _interpolate(now, row, trajectory)
    forwards = _turn(now, known, trajectory.forwards)
    is_seeker = trajectory.is_seeker[row]
    observations = _observe(positions, forwards, is_seeker, rules, trajectory.layout)
    reaches = observations[..., rules.field("rays")][..., ::RAY_CHANNELS].astype(np.float64)
    reaches *= rules.eyes.range_m
    ray_cos, ray_sin = fan_of(rules)
    ahead, aside = forwards[..., :1], forwards[..., 1:]
    along = [ahead * ray_cos - aside * ray_sin, ahead * ray_sin + aside * ray_cos]
    ticks_per_second = trajectory.start.ticks_per_second
    return Motion(
        seconds=wanted,
        positions=positions,
        forwards=forwards,
        is_seeker=is_seeker,
        seen=observations[..., rules.field("opponent_visible").start] > 0.5,
        ray_ends=positions[..., None, ::2] + np.stack(along, axis=-1) * reaches[..., None],
        tags=[
            (tag.tick / ticks_per_second, *map(float, trajectory.tag_place(tag)))  # type: ignore[misc]
            for tag in trajectory.tags
        ],
    )


def _interpolate(now: np.ndarray, row: np.ndarray, trajectory: Trajectory) -> np.ndarray:
    """Cubic Hermite curves through the positions, clipped to the range of the two logged ones."""
    known, positions = trajectory.seconds, trajectory.positions
    if len(known) == 1:
        return np.repeat(positions, len(now), axis=0)
    row = np.minimum(row, len(known) - 2)
    span = (known[row + 1] - known[row])[:, None, None]
    u = (now - known[row])[:, None, None] / span
    start, end = positions[row], positions[row + 1]
    curve = (
        (1.0 + 2.0 * u) * (1.0 - u) ** 2 * start
        + u * (1.0 - u) ** 2 * span * trajectory.velocities[row]
        + u**2 * (3.0 - 2.0 * u) * end
        + u**2 * (u - 1.0) * span * trajectory.velocities[row + 1]
    )
    clipped: np.ndarray = np.clip(curve, np.minimum(start, end), np.maximum(start, end))
    return clipped


def _turn(now: np.ndarray, known: np.ndarray, forwards: np.ndarray) -> np.ndarray:
    """Facing that turns the shorter way around, at an even rate."""
    angles = np.unwrap(np.arctan2(forwards[..., 1], forwards[..., 0]), axis=0)
    between = np.stack([np.interp(now, known, column) for column in angles.T], axis=1)
    return np.stack([np.cos(between), np.sin(between)], axis=-1)


def _observe(
    positions: np.ndarray,
    forwards: np.ndarray,
    is_seeker: np.ndarray,
    rules: Rules,
    layout: Layout,
) -> np.ndarray:
    """What agents in these poses observe: (frames, agents, observation size) float32.

    Rays between two decisions cannot be interpolated: one that passes an edge hits something else.
    So every frame becomes an arena of its own, which the engine observes again.
    """
    from estragon.tag.arenas import Arenas  # needs numba, which drawing alone does not

    arenas = Arenas(len(positions), rules=rules, layout=[layout], threads=1)
    arenas.reset()
    vectors(arenas.agents, "x", "y", "z")[...] = positions
    vectors(arenas.agents, "forward_x", "forward_z")[...] = forwards
    arenas.arenas["seeker"] = np.argmax(is_seeker, axis=1)
    return arenas.restore(arenas.save())


class View(NamedTuple):
    """A fixed camera straight above the arena."""

    size: tuple[int, int]
    pixels_per_m: float
    middle: np.ndarray

    @property
    def unit(self) -> float:
        """The scale relative to the one that pixel sizes are designed for."""
        return self.pixels_per_m / DESIGN_PIXELS_PER_M

    def at(self, places: np.ndarray) -> np.ndarray:
        """Pixels of places (..., 2), x and z in metres."""
        pixels: np.ndarray = self.middle + places * self.pixels_per_m
        return pixels


def view_of(rules: Rules, size: tuple[int, int]) -> View:
    """The camera that shows the whole arena in the middle of a frame."""
    scale = ARENA_SHARE * min(size) / max(rules.arena.width_m, rules.arena.depth_m)
    return View(size, scale, np.array(size) / 2.0)


def draw_scenery(layout: Layout, rules: Rules, view: View) -> Image.Image:
    """The static part of every frame: the arena, its boxes and their shadows."""
    image = Image.new("RGB", view.size, PAGE)
    unit = view.unit
    corner = np.array([rules.arena.width_m, rules.arena.depth_m]) / 2.0
    (left, top), (right, bottom) = view.at(-corner), view.at(corner)
    everywhere = (0.0, 0.0, float(view.size[0]), float(view.size[1]))
    outer = view.at(corner * CORNERS) + WALL_PX * unit * CORNERS
    fallen = outer + np.array([0, 3]) * unit
    Shape(everywhere).polygon(fallen, 0.25).fill(image, SHADOW, blur=5 * unit)
    Shape(everywhere).polygon(outer).fill(image, WALL)
    Shape(everywhere).rectangle(left, top, right, bottom).fill(image, FLOOR)
    tiles = Shape((left, top, right, bottom))
    steps = np.arange(-np.floor(corner.max() / TILE_M), corner.max() / TILE_M) * TILE_M
    half = unit / 2.0
    for x, y in view.at(np.stack([steps, steps], axis=1)):
        tiles.rectangle(x - half, top, x + half, bottom)
        tiles.rectangle(left, y - half, right, y + half)
    tiles.fill(image, TILE)
    rim = Shape((left, top, right, bottom)).rectangle(left, top, right, bottom, 0.16)
    rim.rectangle(left + 5 * unit, top + 8 * unit, right, bottom, 0.0)
    rim.fill(image, SHADOW, blur=4 * unit)
    for box in sorted(layout.boxes, key=lambda box: box.size_m[1]):
        _draw_box(image, view, box)
    return image


def _footprint(box: Box) -> np.ndarray:
    """The corners of a box from above, x and z: (4, 2)."""
    half = np.array([box.size_m[0], box.size_m[2]]) / 2.0
    corners: np.ndarray = np.array(box.at_m) + half * CORNERS
    return corners


def _draw_box(image: Image.Image, view: View, box: Box) -> None:
    height = box.size_m[1]
    corners = view.at(_footprint(box))
    thrown = LIGHT * height * view.pixels_per_m
    shadow = Shape.around(np.concatenate([corners, corners + thrown]), 12.0 * view.unit)
    for share in np.linspace(0.0, 1.0, 33):
        shadow.polygon(corners + thrown * share, 0.24)
    shadow.fill(image, SHADOW, blur=3.0 * view.unit)
    top = blend(LOW, TALL, min(1.0, height / TALL_M) ** 1.5)
    Shape.around(corners).polygon(corners).fill(image, blend(top, BLACK, 0.22))
    middle = corners.mean(axis=0)
    rim = 3.0 * view.unit
    inset = middle + (corners - middle) * np.maximum(0.0, 1.0 - rim / np.abs(corners - middle))
    Shape.around(corners).polygon(inset).fill(image, top)


class Cube(NamedTuple):
    """How an agent looks in one frame."""

    place: np.ndarray
    """x and z, m."""
    forward: np.ndarray
    gaze: np.ndarray
    """Where the pupils point: at the opponent, if it is seen, else ahead."""
    height_m: float
    """Of its feet above the floor."""
    drop_m: float
    """Of its feet above what is under it."""
    is_seeker: bool
    sees: bool

    @property
    def colour(self) -> RGB:
        """The colour of its role."""
        return rgb(SEEKER if self.is_seeker else HIDER)

    def turned(self, points: np.ndarray) -> np.ndarray:
        """Places (..., 2) of points ahead and to the right of the agent."""
        ahead, aside = self.forward
        turned: np.ndarray = self.place + points @ np.array([[ahead, aside], [-aside, ahead]])
        return turned

    def draw_shadow(self, image: Image.Image, view: View, size_m: float) -> None:
        """Its shadow, farther away and softer the higher it is above what it falls on."""
        outline = self.turned(rounded_square(size_m * 0.98))
        outline = view.at(outline + LIGHT * (self.drop_m + 0.35 * size_m))
        soft = view.unit * (2.0 + 3.0 * self.drop_m)
        opacity = 0.34 / (1.0 + 0.5 * self.drop_m)
        shadow = Shape.around(outline, 3.0 * soft).polygon(outline, opacity)
        shadow.fill(image, SHADOW, blur=soft)

    def draw(self, image: Image.Image, view: View, size_m: float) -> None:
        """The cube with its eyes, larger the higher it is."""
        size = size_m * CAMERA_M / (CAMERA_M - min(self.height_m, 0.6 * CAMERA_M))
        top = rounded_square(size * 0.74) * (0.9, 1.0) - (0.045 * size, 0.0)
        for outline, colour in (
            (rounded_square(size), blend(self.colour, BLACK, 0.32)),
            (rounded_square(size * 0.9), self.colour),
            (top, blend(self.colour, WHITE, 0.16)),
        ):
            points = view.at(self.turned(outline))
            Shape.around(points).polygon(points).fill(image, colour)
        eyes = self.turned(EYES * size)
        pupils = eyes + self.gaze * 0.07 * size
        for places, share, colour in ((eyes, 0.165, WHITE), (pupils, 0.085, PUPIL)):
            points, radius = view.at(places), share * size * view.pixels_per_m
            shape = Shape.around(points, radius + 1.0)
            for x, y in points:
                shape.disc(x, y, radius)
            shape.fill(image, colour)


class TopDown:
    """Draws the frames of matches in one arena."""

    def __init__(self, rules: Rules, layout: Layout, size: tuple[int, int]) -> None:
        self._rules, self._layout = rules, layout
        self._view = view_of(rules, size)
        self._scenery = draw_scenery(layout, rules, self._view)

    def draw(self, motion: Motion, frame: int) -> Image.Image:
        """A frame of a match, or of the moment after it."""
        image = self._scenery.copy()
        cubes = [self._cube(motion, frame, agent) for agent in range(AGENTS)]
        size_m = self._rules.agent.size_m
        for agent, cube in enumerate(cubes):
            self._draw_sight(image, cube, motion.ray_ends[frame, agent])
        for agent, cube in enumerate(cubes):
            self._draw_trail(image, cube, _trail(motion, frame, agent))
        self._draw_ripples(image, motion, float(motion.seconds[frame]))
        for cube in sorted(cubes, key=lambda cube: cube.height_m):
            cube.draw_shadow(image, self._view, size_m)
            cube.draw(image, self._view, size_m)
        return image

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

    def _draw_sight(self, image: Image.Image, cube: Cube, ray_ends: np.ndarray) -> None:
        """The area its rays (rays, 2) sweep, stronger while it sees its opponent.

        A straight line from one ray's end to the next would cut across the corners of boxes it
        cannot look over, so these are left out.
        """
        view, eyes = self._view, self._rules.eyes
        apex = view.at(cube.place)
        outline = np.concatenate([apex[None], view.at(ray_ends)])
        sight = Shape.around(outline, samples=2)
        sight.polygon(outline, SEEING_OPACITY if cube.sees else SIGHT_OPACITY)
        eye_m = cube.height_m + self._rules.agent.size_m / 2.0 + eyes.height_m
        for box in self._layout.boxes:
            if box.size_m[1] > eye_m:
                sight.polygon(view.at(_footprint(box)), 0.0)
        reach = round(eyes.range_m * view.pixels_per_m)

        def fade(left: int, top: int, size: tuple[int, int]) -> Image.Image:
            x, y = left - round(apex[0]) + reach, top - round(apex[1]) + reach
            return _falloff(reach).crop((x, y, x + size[0], y + size[1]))

        sight.fill(image, cube.colour, fade=fade)

    def _draw_trail(self, image: Image.Image, cube: Cube, trail: np.ndarray) -> None:
        """Places (n, 2) from old to new, fading with age."""
        if len(trail) < 2:
            return
        points = self._view.at(trail)
        width = TRAIL_WIDTH_M * self._view.pixels_per_m
        shape = Shape.around(points, width, samples=2)
        for step in range(1, len(points)):
            share = step / (len(points) - 1)
            thick, opacity = width * (0.3 + 0.7 * share), TRAIL_OPACITY * share**1.5
            shape.line(points[step - 1 : step + 1], thick, opacity)
            x, y = points[step]
            shape.disc(x, y, thick / 2.0, opacity)
        shape.fill(image, cube.colour)

    def _draw_ripples(self, image: Image.Image, motion: Motion, seconds: float) -> None:
        """A ring that runs outward from where a tag has just happened."""
        for when, x, z in motion.tags:
            age = (seconds - when) / RIPPLE_SEC
            if 0.0 <= age < 1.0:
                at_x, at_y = at = self._view.at(np.array([x, z]))
                radius = (0.5 + RIPPLE_M * (1.0 - (1.0 - age) ** 2)) * self._view.pixels_per_m
                width = RIPPLE_PX * self._view.unit * (1.0 - age)
                ring = Shape.around(at[None], radius)
                ring.disc(at_x, at_y, radius - 1.0, 0.8 * (1.0 - age))
                ring.disc(at_x, at_y, radius - 1.0 - width, 0.0).fill(image, SEEKER)


def _trail(motion: Motion, frame: int, agent: int) -> np.ndarray:
    """Where an agent was in the last second of the match: (n, 2) x and z."""
    now = motion.seconds[frame]
    then = max(motion.seconds[0], now - TRAIL_SEC)
    times = np.append(np.arange(then, now, TRAIL_STEP_SEC), now)
    way = motion.positions[: frame + 1, agent]
    x, z = (np.interp(times, motion.seconds[: frame + 1], way[:, axis]) for axis in (0, 2))
    return np.stack([x, z], axis=1)


@functools.cache
def _falloff(reach: int) -> Image.Image:
    """How sight fades from the middle of a square to its sides, `reach` pixels away."""
    away = np.arange(-reach, reach + 1) / reach
    distance = np.minimum(1.0, np.sqrt(away[:, None] ** 2 + away[None, :] ** 2))
    return Image.fromarray((255 * (1.0 - 0.82 * distance**0.8)).astype(np.uint8))
