"""A role has the same colour in charts and films as in the game."""

import re
from pathlib import Path

from estragon.show.drawing.palette import ROLES

LOOK = Path(__file__).parents[3] / "godot/tag/look/tag_look.gd"


def test_the_game_has_the_same_role_colours() -> None:
    (line,) = [line for line in LOOK.read_text().splitlines() if line.startswith("const ROLES")]
    in_the_game = dict(re.findall(r'"(\w+)": Color\("([0-9a-f]{6})"\)', line))
    assert {role: f"#{colour}" for role, colour in in_the_game.items()} == ROLES
