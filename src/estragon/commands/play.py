"""`estragon play`: play against a policy that comes with the game, in a window."""

import dataclasses
import json
import math
import random
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import tyro

from estragon.show.godot_frames import game_error, parse_size, window_arguments
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.options import check_span, optional

SCENE = "res://scenes/Play.tscn"
SEEDS = 2**32


@dataclasses.dataclass(frozen=True)
class PlayCommand:
    """Play tag against a trained agent: WASD to run, Space to jump, Esc to quit.

    Keys 1 to 5 change the level during the game; X swaps the roles. The game runs in Godot alone;
    Python only opens the window.
    """

    role: Literal["seeker", "hider"] = "seeker"
    """Your role."""
    level: Annotated[
        str | None,
        tyro.conf.arg(aliases=("--difficulty",), metavar="LEVEL", help_behavior_hint="(optional)"),
    ] = None
    """Level of the opponent: untrained, beginner, learner (default), expert or champion."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """A layout's name, a .json file, random:SEED, or several separated by commas; by default the
    one that the policies were trained on."""
    seed: Annotated[int | None, optional("SEED")] = None
    """Seed of the start positions; by default a new one every time."""
    window: str = "1280x720"
    """Window size in pixels."""

    def run(self) -> None:
        """Open the window, and wait until it is closed."""
        from estragon.godot.display import has_display
        from estragon.godot.process import GodotProcess
        from estragon.godot.project import import_project

        size = parse_size(self.window)
        with tempfile.TemporaryDirectory(prefix="estragon-") as name:
            folder = Path(name)
            options = self._options(folder)
            if not has_display():
                raise UserError(
                    "there is no display to open a window on; estragon eval tag lets policies play "
                    "without one"
                )
            words = [*window_arguments(import_project(paths.godot_project()), size), SCENE]
            with GodotProcess([*words, "--", *options], folder=folder, name="play") as process:
                if process.wait("the window to be closed", math.inf) != 0:
                    raise game_error(process)

    def _options(self, folder: Path) -> list[str]:
        """The game's own; complains before there is a window."""
        from estragon.tag.layout import load_layouts, write_layouts
        from estragon.tag.rules import load_rules

        seed = random.randrange(SEEDS) if self.seed is None else self.seed
        check_span("--seed", seed, 0, SEEDS - 1)
        options = [f"--play={self.role}", f"--seed={seed}"]
        if self.level is not None:
            known = level_names()
            if self.level not in known:
                raise UserError(f"--level: no level '{self.level}'; there are {', '.join(known)}")
            options.append(f"--level={self.level}")
        if self.layout is not None:
            layouts = load_layouts(self.layout, load_rules())
            options.append(f"--layout={write_layouts(layouts, folder)}")
        return options


def level_names() -> list[str]:
    """The levels that come with the game, from the weakest to the strongest."""
    listed = json.loads((paths.policies_folder() / "levels.json").read_text(encoding="utf-8"))
    return [level["name"] for level in listed["levels"]]
