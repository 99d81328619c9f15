"""`estragon godot install | path | import | doctor`: getting Godot, and seeing what is wrong."""

import dataclasses
import shutil
import sys
from pathlib import Path
from typing import Annotated

import tyro

from estragon.godot.display import has_display
from estragon.godot.doctor import examine
from estragon.godot.find import find_godot, require_godot
from estragon.godot.install import install_private, install_xvfb
from estragon.godot.project import ready_project
from estragon.godot.version import check_version
from estragon.support.errors import UserError
from estragon.support.options import optional


@dataclasses.dataclass(frozen=True)
class GodotInstall:
    """Install a private copy of Godot 4, without root, unless a usable one is there already.

    On Linux without a display, the same for Xvfb, on which pictures are drawn.
    """

    private: bool = False
    """Install it even where another Godot (GODOT_BIN, PATH) is used."""

    def run(self) -> None:
        """Install, and say where; without Xvfb everything but pictures works."""
        path = install_private() if self.private else require_godot(install=True)
        print(f"Godot {check_version(path).text} is ready: {path}")
        if not has_display():
            try:
                print(f"Xvfb is ready: {shutil.which('Xvfb') or install_xvfb()}")
            except UserError as error:
                print(f"no pictures here: {error}", file=sys.stderr)


@dataclasses.dataclass(frozen=True)
class GodotPath:
    """Print the path of the Godot that is used, and nothing else."""

    def run(self) -> None:
        """Find and print."""
        print(find_godot())


@dataclasses.dataclass(frozen=True)
class GodotImport:
    """Import a project, and check that its scene can be played."""

    project: tyro.conf.Positional[Path]
    """The project's folder."""

    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to check, such as res://training.tscn; else the main scene."""

    strict_import: bool = False
    """Refuse a project in which anything is broken, as ESTRAGON_STRICT_IMPORT=1 does everywhere."""

    def run(self) -> None:
        """Import, and say what is missing."""
        ready = ready_project(self.project, self.scene, strict=self.strict_import)
        for name in ready.missing:
            print(f"missing     {name}")
        for name in ready.unused:
            print(f"unused      {name}")
        print(f"ready       {ready.folder}")


@dataclasses.dataclass(frozen=True)
class GodotDoctor:
    """Check that Godot is there and really starts, with and without a picture."""

    def run(self) -> int:
        """Print one finding a line; 0 if a match could be played, 1 if not."""
        healthy = True
        for finding in examine():
            print(finding, flush=True)
            healthy = healthy and (finding.good or not finding.needed)
        return 0 if healthy else 1
