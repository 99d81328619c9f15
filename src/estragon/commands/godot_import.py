"""`estragon godot import`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from estragon.godot.project import ready_project
from estragon.support.options import optional


@dataclasses.dataclass(frozen=True)
class GodotImportCommand:
    """Import a project and check that its scene can be played."""

    project: tyro.conf.Positional[Path]
    """The project's folder."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to check, such as res://training.tscn; by default the main scene."""
    strict_import: bool = False
    """Reject a project with any broken resource; ESTRAGON_STRICT_IMPORT=1 does so for all
    commands."""

    def run(self) -> None:
        """Import, and print what is missing."""
        ready = ready_project(self.project, self.scene, strict=self.strict_import)
        for name in ready.missing:
            print(f"missing     {name}")
        for name in ready.unused:
            print(f"unused      {name}")
        print(f"ready       {ready.folder}")
