"""A whole match in one picture: the paths of both agents from above, paler the older."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from estragon.show.canvas import (
    BLACK,
    HIDER,
    INK,
    RGB,
    SEEKER,
    WHITE,
    Shape,
    blend,
    rgb,
    rounded_square,
    text_width,
    write_text,
)
from estragon.show.top_down import FLOOR, Cube, View, draw_scenery, view_of
from estragon.show.trajectory import Tagging, Trajectory
from estragon.support.files import write_whole
from estragon.tag.rules import AGENTS

SIZE = (1080, 1220)
EDGE = 44
FAINT = (122, 117, 110)
WIDTH_M, RIM_M = 0.17, 0.05
"""Of a path, and of the bright rim that sets it off from what it crosses."""
PALEST = 0.78
"""How far the beginning of a path is on its way to the floor's colour."""
DOT_M, START_M = 0.13, 0.62
LAST_TAG_M, TAG_M = 1.5, 0.5
"""Radius of the ring around the tag that ends a match, and around those that do not."""
BAR = (180.0, 14.0)
BAR_STEPS = 48


def save_paths(trajectory: Trajectory, path: Path, title: str) -> None:
    """Write the picture of a match as a PNG, whole."""
    stream = io.BytesIO()
    draw_paths(trajectory, title).save(stream, "PNG")
    write_whole(path, stream.getvalue())


def draw_paths(trajectory: Trajectory, title: str) -> Image.Image:
    """The picture of a match."""
    rules = trajectory.game_rules()
    view = view_of(rules, SIZE)
    picture = draw_scenery(trajectory.layout, rules, view)
    _draw_ways(picture, view, trajectory)
    for agent in range(AGENTS):
        _mark_seconds(picture, view, trajectory, agent)
        _mark_start(picture, view, trajectory, agent)
    cubes = [_last_cube(trajectory, agent) for agent in range(AGENTS)]
    for cube in sorted(cubes, key=lambda cube: cube.height_m):
        cube.draw_shadow(picture, view, rules.agent.size_m)
        cube.draw(picture, view, rules.agent.size_m)
    for tag in trajectory.tags:
        _mark_tag(picture, view, trajectory, tag)
    _head(picture, trajectory, title)
    _foot(picture, trajectory)
    return picture


def _draw_ways(picture: Image.Image, view: View, trajectory: Trajectory) -> None:
    """Both paths, step by step, the later one on top."""
    ways = [view.at(trajectory.positions[:, agent, ::2]) for agent in range(AGENTS)]
    width = WIDTH_M * view.pixels_per_m
    rim = width + 2.0 * RIM_M * view.pixels_per_m
    for way in ways:
        bright = Shape.around(way, rim, samples=2)
        for step in range(1, len(way)):
            _stroke(bright, way[step - 1 : step + 1], rim)
        bright.fill(picture, FLOOR)
    steps = len(trajectory.ticks) - 1
    for step in range(1, steps + 1):
        for agent, way in enumerate(ways):
            part = way[step - 1 : step + 1]
            stroke = Shape.around(part, width)
            _stroke(stroke, part, width)
            colour = _role_colour(trajectory, step - 1, agent)
            stroke.fill(picture, _faded(colour, step / steps))


def _stroke(shape: Shape, part: np.ndarray, width: float) -> None:
    shape.line(part, width)
    for x, y in part:
        shape.disc(x, y, width * 0.48)


def _mark_seconds(picture: Image.Image, view: View, trajectory: Trajectory, agent: int) -> None:
    """A dot where the agent was at every whole second, with its number."""
    seconds, way = trajectory.seconds, trajectory.positions[:, agent]
    radius = DOT_M * view.pixels_per_m
    for second in np.arange(np.floor(seconds[0]) + 1.0, np.ceil(seconds[-1])):
        place = np.array([np.interp(second, seconds, way[:, axis]) for axis in (0, 2)])
        x, y = view.at(place)
        row = int(np.searchsorted(seconds, second))
        colour = blend(_role_colour(trajectory, row, agent), BLACK, 0.45)
        around = Shape.around(np.array([[x, y]]), radius + 1.0)
        around.disc(x, y, radius).fill(picture, WHITE)
        around.disc(x, y, radius * 0.72).fill(picture, colour)
        write_text(picture, (x + 1.3 * radius, y - 1.1 * radius), f"{second:.0f}", 17, colour)


def _mark_start(picture: Image.Image, view: View, trajectory: Trajectory, agent: int) -> None:
    x, y = view.at(trajectory.positions[0, agent, ::2])
    side = START_M * view.pixels_per_m
    outline = rounded_square(side) + np.array([x, y])
    inside = rounded_square(side * 0.68) + np.array([x, y])
    colour = _role_colour(trajectory, 0, agent)
    Shape.around(outline).polygon(outline).fill(picture, colour)
    Shape.around(outline).polygon(inside).fill(picture, FLOOR)
    write_text(picture, (x, y), str(agent + 1), side * 0.5, colour, anchor="mm", weight=0.5)


def _mark_tag(picture: Image.Image, view: View, trajectory: Trajectory, tag: Tagging) -> None:
    """A ring around the place of a tag, and when it was."""
    x, y = at = view.at(trajectory.tag_place(tag))
    ends = trajectory.tagged and tag == trajectory.tags[-1]
    radius = (LAST_TAG_M if ends else TAG_M) * view.pixels_per_m
    ring = Shape.around(at[None], radius + 2.0).disc(x, y, radius, 0.85)
    ring.disc(x, y, radius - 5.0, 0.0).fill(picture, SEEKER)
    second = tag.tick / trajectory.start.ticks_per_second
    text, size = (f"tag, {second:.2f} s", 20) if ends else (f"{second:.1f} s", 15)
    half = text_width(text, size) / 2.0 + 0.6 * size
    below = y + radius + 0.4 * size
    at_x = min(max(x, half + EDGE), SIZE[0] - half - EDGE)
    plate = (at_x - half, below - 1.05 * size, at_x + half, below + 0.45 * size)
    Shape(plate).rectangle(*plate, 0.9, radius=size).fill(picture, SEEKER)
    write_text(picture, (at_x, below), text, size, WHITE, anchor="ms", weight=0.3)


def _last_cube(trajectory: Trajectory, agent: int) -> Cube:
    x, y, z = trajectory.positions[-1, agent]
    feet = max(0.0, float(y) - trajectory.start.agent_size_m / 2.0)
    forward = trajectory.forwards[-1, agent]
    return Cube(
        place=np.array([x, z]),
        forward=forward,
        gaze=forward,
        height_m=feet,
        drop_m=0.0 if trajectory.on_floor[-1, agent] else feet,
        is_seeker=bool(trajectory.is_seeker[-1, agent]),
        sees=bool(trajectory.sees[-1, agent]),
    )


def _head(picture: Image.Image, trajectory: Trajectory, title: str) -> None:
    write_text(picture, (EDGE, 58), title, 38, INK, weight=0.7, max_width=SIZE[0] - 2 * EDGE)
    players = trajectory.start.players
    right = float(SIZE[0] - EDGE)
    for role, colour, begins in (("hider", HIDER, False), ("seeker", SEEKER, True)):
        agent = trajectory.agents[trajectory.is_seeker[0].tolist().index(begins)]
        text = f"{agent}, {role}: {players.get(role) or 'unknown'}"
        right = _legend(picture, right, text, colour)


def _legend(picture: Image.Image, right: float, text: str, colour: str) -> float:
    """A name with its colour, ending at `right`; returns where the next one may end."""
    left = right - min(text_width(text, 21), SIZE[0] / 2.0 - 90.0)
    write_text(picture, (left, 92), text, 21, INK, max_width=right - left + 1.0)
    mark = rounded_square(15.0) + np.array([left - 17.0, 85.0])
    Shape.around(mark).polygon(mark).fill(picture, colour)
    return left - 46.0


def _foot(picture: Image.Image, trajectory: Trajectory) -> None:
    """How it went, and a bar that explains the shades."""
    baseline = SIZE[1] - 42.0
    start = trajectory.start
    story = f"{trajectory.summary()} · {start.layout.name} · seed {start.seed}, arena {start.arena}"
    story += f", episode {start.episode}" if start.episode else ""
    end = f"{float(trajectory.seconds[-1]):.1f} s"
    right = SIZE[0] - EDGE - text_width(end, 21)
    left = right - BAR[0]
    write_text(picture, (SIZE[0] - EDGE, baseline), end, 21, FAINT, anchor="rs")
    for step in range(BAR_STEPS):
        low = left + (right - 12.0 - left) * step / BAR_STEPS
        high = left + (right - 12.0 - left) * (step + 1) / BAR_STEPS
        for row, colour in enumerate((SEEKER, HIDER)):
            top = baseline - BAR[1] + row * BAR[1] / 2.0
            box = (low, top, high + 0.5, top + BAR[1] / 2.0)
            Shape(box).rectangle(*box).fill(picture, _faded(rgb(colour), step / BAR_STEPS))
    write_text(picture, (left - 12.0, baseline), "0 s", 21, FAINT, anchor="rs")
    write_text(picture, (EDGE, baseline), story, 22, INK, max_width=left - 70.0 - EDGE)


def _role_colour(trajectory: Trajectory, row: int, agent: int) -> RGB:
    return rgb(SEEKER if trajectory.is_seeker[row, agent] else HIDER)


def _faded(colour: RGB, share: float) -> RGB:
    """The colour of a path when this share of the match is over."""
    return blend(blend(colour, FLOOR, PALEST), colour, share)
