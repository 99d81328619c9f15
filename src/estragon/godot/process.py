"""A running Godot: found or installed, started with arguments, supervised to its end."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from estragon.godot.find import require_godot
from estragon.godot.supervised import SupervisedProcess
from estragon.godot.user_folders import usable_user_folders


class GodotProcess(SupervisedProcess):
    """Godot with these arguments, for example `["--headless", "--path", project]`.

    Args:
        arguments: what follows `godot` on the command line.
        folder: where `<name>.log` is written.
        name: what messages call it, where there are several.
        godot: the program; found, or installed, if not given.
        env: its environment; this process's own if not given, `display()` gives one for pictures.
        advice: what its errors tell people to do; by default to read the log.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        *,
        folder: Path,
        name: str = "godot",
        godot: Path | None = None,
        env: Mapping[str, str] | None = None,
        advice: str | None = None,
    ) -> None:
        program = require_godot() if godot is None else godot
        env = usable_user_folders(os.environ if env is None else env)
        super().__init__([program, *arguments], name=name, folder=folder, env=env, advice=advice)
