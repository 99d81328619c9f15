"""Layouts made from a seed: different rooms to train and test in, none of which traps a spawn."""

from estragon.support.errors import UserError
from estragon.tag import streams
from estragon.tag.layout import Box, Layout, check_layout
from estragon.tag.rules import Rules

FEWEST, MOST = 3, 7
SMALLEST_M, LARGEST_M = 1.5, 4.0
TRIES = 400


def random_layout(seed: int, rules: Rules) -> Layout:
    """Some low and some tall boxes, each with room to pass on every side.

    Boxes keep more than an agent's width from each other and from the walls, so even grown by an
    agent's half width they are disjoint: the floor between them is one connected piece.
    """
    gap = rules.agent.size_m * 1.6
    heights = (round(0.7 * rules.jump_height_m, 1), round(1.8 * rules.jump_height_m, 1))
    wanted = FEWEST + int(
        streams.uniform_pair(seed, 0, 0, streams.BOXES, 0)[0] * (MOST - FEWEST + 1)
    )
    boxes: list[Box] = []
    for attempt in range(TRIES):
        if len(boxes) == wanted:
            break
        box = _draw_box(seed, attempt, heights, rules, gap)
        if box is not None and all(_apart(box, other, gap) for other in boxes):
            boxes.append(box)
    if not boxes:
        raise UserError(f"random layout {seed}: the arena is too small for boxes; use 'empty'")
    layout = Layout(boxes, f"Made from seed {seed}.", f"random:{seed}")
    check_layout(layout, rules)
    return layout


def _draw_box(
    seed: int, attempt: int, heights: tuple[float, float], rules: Rules, gap: float
) -> Box | None:
    def pair(index: int) -> tuple[float, float]:
        return streams.uniform_pair(seed, 0, 0, streams.BOXES, 1 + 3 * attempt + index)

    (share_width, share_depth), (share_x, share_z), (share_height, _) = pair(0), pair(1), pair(2)
    width = _tenth(SMALLEST_M + share_width * (LARGEST_M - SMALLEST_M))
    depth = _tenth(SMALLEST_M + share_depth * (LARGEST_M - SMALLEST_M))
    room_x = rules.arena.width_m / 2.0 - gap - width / 2.0
    room_z = rules.arena.depth_m / 2.0 - gap - depth / 2.0
    if room_x <= 0.1 or room_z <= 0.1:
        return None
    at = (
        _tenth((2.0 * share_x - 1.0) * (room_x - 0.1)),
        _tenth((2.0 * share_z - 1.0) * (room_z - 0.1)),
    )
    return Box(at, (width, heights[share_height < 0.5], depth))


def _apart(one: Box, other: Box, gap: float) -> bool:
    gap_x = abs(one.at_m[0] - other.at_m[0]) - (one.size_m[0] + other.size_m[0]) / 2.0
    gap_z = abs(one.at_m[1] - other.at_m[1]) - (one.size_m[2] + other.size_m[2]) / 2.0
    return max(gap_x, gap_z) >= gap


def _tenth(value: float) -> float:
    """Rounded to 0.1 m, so that the layout survives JSON and reads well."""
    return round(value, 1)
