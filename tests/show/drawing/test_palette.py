"""A role has the same colour in charts and films as in the game."""

import re
from pathlib import Path

from estragon.show.drawing.palette import ROLES

THEME = Path(__file__).parents[3] / "godot/tag/look/tag_theme.tres"


def test_the_game_has_the_same_role_colours() -> None:
    colours = dict(
        re.findall(r"^Tag/colors/(\w+) = Color\((.+), 1\)$", THEME.read_text(), re.MULTILINE)
    )
    in_the_game = {
        role: "#" + "".join(f"{round(255 * float(part)):02x}" for part in colours[role].split(", "))
        for role in ROLES
    }
    assert in_the_game == ROLES
