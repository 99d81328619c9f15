"""`estragon godot install`."""

import dataclasses
import shutil
import sys

from estragon.godot.display import has_display
from estragon.godot.find import check_version, require_godot
from estragon.godot.install import install_private, install_xvfb
from estragon.support.errors import UserError


@dataclasses.dataclass(frozen=True)
class GodotInstallCommand:
    """Install a private copy of Godot 4, without root, unless a usable Godot is installed.

    On Linux without a display, also install Xvfb, which Godot needs for rendering.
    """

    private: bool = False
    """Install it even if another Godot (GODOT_BIN, PATH) is available."""

    def run(self) -> None:
        """Install and print the paths; without Xvfb everything but drawing works."""
        path = install_private() if self.private else require_godot()
        print(f"Godot {check_version(path)} is ready: {path}")
        if not has_display():
            try:
                print(f"Xvfb is ready: {shutil.which('Xvfb') or install_xvfb()}")
            except UserError as error:
                print(f"Godot cannot draw here: {error}", file=sys.stderr)
