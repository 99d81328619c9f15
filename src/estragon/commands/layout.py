"""`estragon layout`: check a layout, see it from above, or make one from a seed."""

import dataclasses
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from estragon.support.files import ensure_writable, write_json
from estragon.support.options import optional
from estragon.tag.layout import Box, Layout, load_layout
from estragon.tag.rules import Rules, load_rules

CELL_WIDTH_M, CELL_DEPTH_M = 0.5, 1.0
LOW, TALL, FLOOR = "░", "█", "·"


@dataclasses.dataclass(frozen=True)
class ShowLayout:
    """Check a layout and show it from above: tall boxes solid, boxes to jump on shaded."""

    layout: Annotated[str | None, tyro.conf.Positional, optional("LAYOUT")] = None
    """A layout's name, a .json file, or random:SEED; the game's default if not given."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Write the layout to this file, for playing it anywhere or changing it by hand."""

    def run(self) -> None:
        """Load, print, and write."""
        if self.json_file is not None:
            ensure_writable(self.json_file)
        rules = load_rules()
        layout = load_layout(self.layout or rules.layout, rules)
        print(f"{layout.name}: {layout.description}")
        print(draw_layout(layout, rules))
        if self.json_file is not None:
            plain = msgspec.to_builtins(layout)
            del plain["name"]
            write_json(self.json_file, plain)
            print(f"wrote {self.json_file}")


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
