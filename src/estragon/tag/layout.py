"""The boxes in an arena: read, made from a seed, checked, and drawn as text."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta, Struct

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json
from estragon.tag.rules import Rules

MAX_BOXES = 32
APEX_MARGIN_M = 0.1
"""No box top may lie this close to where a jump ends: whether it is reached must be plain."""
FEWEST_BOXES, MOST_BOXES = 3, 7
SMALLEST_BOX_M, LARGEST_BOX_M = 1.5, 4.0
TRIES = 400
"""Of a layout made from a seed: boxes, their sides, and how often one more is tried."""
CELL_WIDTH_M, CELL_DEPTH_M = 0.5, 1.0
LOW, TALL, FLOOR = "░", "█", "·"
"""A layout drawn as text: what a character covers, and what it shows."""
FLOOR_STEPS = 80
"""The floor is looked at on a grid of this many steps along each side."""

Side = Annotated[float, Meta(gt=0.0, le=1e3)]


class Box(Struct, frozen=True, forbid_unknown_fields=True):
    """A solid block that stands on the floor."""

    at_m: tuple[float, float]
    """x and z of its centre."""
    size_m: tuple[Side, Side, Side]
    """Extent along x, y (up) and z."""


class Layout(Struct, frozen=True, forbid_unknown_fields=True):
    """The boxes of one arena."""

    boxes: Annotated[list[Box], Meta(max_length=MAX_BOXES)]
    description: str = ""
    name: str = ""
    """Filled when it is loaded, from the file's name."""


def load_layout(spec: str, rules: Rules) -> Layout:
    """A layout by name (`playground`), by file (`mine.json`) or by seed (`random:7`)."""
    if spec.startswith("random:"):
        return random_layout(_seed_of(spec), rules)
    if spec.endswith(".json"):
        path = Path(spec)
    else:
        path = paths.layouts_folder() / f"{spec}.json"
        if not re.fullmatch(r"[\w-]+", spec) or not path.is_file():
            raise UserError(
                f"no layout '{spec}'; available: {', '.join(layout_names())}, "
                "random:SEED, random:FIRST-LAST, or a .json file"
            )
    loaded = read_json(path, Layout)
    layout = Layout(loaded.boxes, loaded.description, path.stem)
    check_layout(layout, rules)
    return layout


def load_layouts(spec: str, rules: Rules) -> list[Layout]:
    """Several layouts at once: `playground,four_corners,random:0-63`."""
    layouts = []
    for part in spec.split(","):
        if match := re.fullmatch(r"random:(\d+)-(\d+)", part.strip()):
            first, last = int(match[1]), int(match[2])
            if not first <= last < first + 4096:
                raise UserError(f"layout '{part}': expected random:FIRST-LAST, at most 4096")
            layouts += [load_layout(f"random:{seed}", rules) for seed in range(first, last + 1)]
        else:
            layouts.append(load_layout(part.strip(), rules))
    return layouts


def write_layouts(layouts: Sequence[Layout], folder: Path) -> str:
    """Write layouts for Godot to read; returns what to give to its `--layout=`."""
    files = [folder / f"layout_{index}.json" for index in range(len(layouts))]
    for path, layout in zip(files, layouts, strict=True):
        write_json(path, {"boxes": msgspec.to_builtins(layout.boxes)})
    return ",".join(map(str, files))


def layout_names() -> list[str]:
    """The layouts that come with the game."""
    return sorted(path.stem for path in paths.layouts_folder().glob("*.json"))


def check_layout(layout: Layout, rules: Rules) -> None:
    """Refuse what no match can be played on, naming the box and the reason."""
    half_width, half_depth = rules.arena.width_m / 2.0, rules.arena.depth_m / 2.0
    tops = sorted({0.0, *(box.size_m[1] for box in layout.boxes)})
    for index, box in enumerate(layout.boxes):
        where = f"layout '{layout.name}': boxes[{index}]"
        (x, z), (width, height, depth) = box.at_m, box.size_m
        if abs(x) + width / 2.0 > half_width or abs(z) + depth / 2.0 > half_depth:
            arena = f"{rules.arena.width_m:g} × {rules.arena.depth_m:g} m"
            raise UserError(f"{where}: sticks out of the {arena} arena")
        if min(width, depth) <= rules.episode.tag_reach_m:
            raise UserError(
                f"{where}: thinner than the tag reach of {rules.episode.tag_reach_m:g} m"
            )
        for below in tops:
            if abs(height - below - rules.jump_height_m) < APEX_MARGIN_M:
                raise UserError(
                    f"{where}: its top at {height:g} m is within {APEX_MARGIN_M:g} m of where a "
                    f"jump from {below:g} m ends ({below + rules.jump_height_m:.3f} m)"
                )
    _check_floor(layout, rules)


def far_points(layout: Layout, rules: Rules) -> np.ndarray:
    """Two free floor points far apart, as docs/physics.md says: (2, 2) float64, x and z."""
    points = _floor_points(layout, rules)[1]
    if len(points) == 0:
        raise UserError(f"layout '{layout.name}': the boxes leave no floor to stand on")
    away = points - points[0]
    second = points[np.argmax(away[:, 0] * away[:, 0] + away[:, 1] * away[:, 1])]
    return np.stack([points[0], second])


def symmetries(layouts: list[Layout], rules: Rules) -> np.ndarray:
    """What maps every one of these layouts onto itself: (found,) uint8, the identity first.

    Bit 0 mirrors along x; the bits above are the number of quarter turns, from x to z, that follow.
    """
    found = [0]
    for code in range(1, 8 if layouts else 0):
        square = rules.arena.width_m == rules.arena.depth_m
        if (square or not code & 2) and all(
            _transformed(one, code) == _transformed(one, 0) for one in layouts
        ):
            found.append(code)
    return np.array(found, dtype=np.uint8)


def _transformed(layout: Layout, code: int) -> set[tuple[float, ...]]:
    """The boxes as numbers, mirrored and turned."""
    boxes: set[tuple[float, ...]] = set()
    for box in layout.boxes:
        (x, z), (width, height, depth) = box.at_m, box.size_m
        if code & 1:
            x = -x
        for _ in range(code >> 1):
            x, z, width, depth = -z, x, depth, width
        boxes.add((x + 0.0, z + 0.0, width, height, depth))  # -0.0 + 0.0 is 0.0
    return boxes


def _check_floor(layout: Layout, rules: Rules) -> None:
    first, second = far_points(layout, rules)
    apart = float(np.sqrt(((first - second) ** 2).sum()))
    if apart < rules.episode.spawn_separation_m:
        raise UserError(
            f"layout '{layout.name}': free floor is {apart:.1f} m across, "
            f"spawns need {rules.episode.spawn_separation_m:g} m between them"
        )
    parts = _count_parts(_floor_points(layout, rules)[0])
    if parts > 1:
        raise UserError(
            f"layout '{layout.name}': the boxes cut the floor into {parts} parts; "
            "an agent could spawn where it cannot get out"
        )


def _floor_points(layout: Layout, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """A grid of floor positions: which are free (nx, nz) bool, and those points (n, 2)."""
    half, skin = rules.agent.size_m * 0.5, rules.physics.skin_m
    shares = np.arange(FLOOR_STEPS + 1) * 2.0 / FLOOR_STEPS - 1.0
    xs = shares * (rules.arena.width_m * 0.5 - half - skin)
    zs = shares * (rules.arena.depth_m * 0.5 - half - skin)
    grid_x, grid_z = np.meshgrid(xs, zs, indexing="ij")
    free = np.ones(grid_x.shape, dtype=bool)
    for box in layout.boxes:
        (x, z), (width, _, depth) = box.at_m, box.size_m
        in_x = (x - width * 0.5 - half - skin < grid_x) & (grid_x < x + width * 0.5 + half + skin)
        in_z = (z - depth * 0.5 - half - skin < grid_z) & (grid_z < z + depth * 0.5 + half + skin)
        free &= ~(in_x & in_z)
    return free, np.stack([grid_x[free], grid_z[free]], axis=1)


def _count_parts(free: np.ndarray) -> int:
    """How many separate regions the free cells form, going from side to side."""
    left = free.copy()
    parts = 0
    while left.any():
        parts += 1
        frontier = np.zeros_like(left)
        frontier[np.unravel_index(int(np.argmax(left)), left.shape)] = True
        while frontier.any():
            left &= ~frontier
            grown = np.zeros_like(left)
            grown[1:] |= frontier[:-1]
            grown[:-1] |= frontier[1:]
            grown[:, 1:] |= frontier[:, :-1]
            grown[:, :-1] |= frontier[:, 1:]
            frontier = grown & left
    return parts


def _seed_of(spec: str) -> int:
    text = spec.removeprefix("random:")
    if not text.isdecimal() or int(text) >= 2**32:
        raise UserError(f"layout '{spec}': expected random:SEED with a whole number below 2^32")
    return int(text)


def random_layout(seed: int, rules: Rules) -> Layout:
    """Some low and some tall boxes, each with room to pass on every side.

    Boxes keep more than an agent's width from each other and from the walls, so even grown by an
    agent's half width they are disjoint: the floor between them is one connected piece.
    """
    from estragon.tag.threefry import BOXES, uniform_pair  # needs numba; reading a file does not

    gap = rules.agent.size_m * 1.6
    share, _ = uniform_pair(seed, 0, 0, BOXES, 0)
    wanted = FEWEST_BOXES + int(share * (MOST_BOXES - FEWEST_BOXES + 1))
    boxes: list[Box] = []
    for attempt in range(TRIES):
        if len(boxes) == wanted:
            break
        draws = [uniform_pair(seed, 0, 0, BOXES, 1 + 3 * attempt + draw) for draw in range(3)]
        box = _box_of(draws, rules, gap)
        if box is not None and all(_apart(box, other, gap) for other in boxes):
            boxes.append(box)
    if not boxes:
        raise UserError(f"random layout {seed}: the arena is too small for boxes; use 'empty'")
    layout = Layout(boxes, f"Made from seed {seed}.", f"random:{seed}")
    check_layout(layout, rules)
    return layout


def _box_of(draws: list[tuple[float, float]], rules: Rules, gap: float) -> Box | None:
    """A box from three pairs in [0, 1), rounded to 0.1 m; None where there is no room for it."""
    (share_width, share_depth), (share_x, share_z), (share_height, _) = draws
    width = round(SMALLEST_BOX_M + share_width * (LARGEST_BOX_M - SMALLEST_BOX_M), 1)
    depth = round(SMALLEST_BOX_M + share_depth * (LARGEST_BOX_M - SMALLEST_BOX_M), 1)
    room_x = rules.arena.width_m / 2.0 - gap - width / 2.0
    room_z = rules.arena.depth_m / 2.0 - gap - depth / 2.0
    if room_x <= 0.1 or room_z <= 0.1:
        return None
    x = round((2.0 * share_x - 1.0) * (room_x - 0.1), 1)
    z = round((2.0 * share_z - 1.0) * (room_z - 0.1), 1)
    height = round((1.8 if share_height < 0.5 else 0.7) * rules.jump_height_m, 1)
    return Box((x, z), (width, height, depth))


def _apart(one: Box, other: Box, gap: float) -> bool:
    gap_x = abs(one.at_m[0] - other.at_m[0]) - (one.size_m[0] + other.size_m[0]) / 2.0
    gap_z = abs(one.at_m[1] - other.at_m[1]) - (one.size_m[2] + other.size_m[2]) / 2.0
    return max(gap_x, gap_z) >= gap


def draw_layout(layout: Layout, rules: Rules) -> str:
    """The arena from above as text, x to the right and z down."""
    width, depth = rules.arena.width_m, rules.arena.depth_m
    columns, rows = int(width / CELL_WIDTH_M), int(depth / CELL_DEPTH_M)
    lines = []
    for row in range(rows):
        z = (row + 0.5) * CELL_DEPTH_M - depth / 2.0
        across = [(column + 0.5) * CELL_WIDTH_M - width / 2.0 for column in range(columns)]
        lines.append("".join(_symbol(layout, x, z, rules) for x in across))
    edge = "─" * columns
    return "\n".join([f"┌{edge}┐", *(f"│{line}│" for line in lines), f"└{edge}┘"])


def _symbol(layout: Layout, x: float, z: float, rules: Rules) -> str:
    top = max((box.size_m[1] for box in layout.boxes if _covers(box, x, z)), default=0.0)
    return FLOOR if top == 0.0 else LOW if top < rules.jump_height_m else TALL


def _covers(box: Box, x: float, z: float) -> bool:
    return abs(x - box.at_m[0]) < box.size_m[0] / 2.0 and abs(z - box.at_m[1]) < box.size_m[2] / 2.0
