"""`estragon collect-debug`."""

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import tyro

from estragon.judge.debug_bundle import collect
from estragon.support.options import optional


@dataclasses.dataclass(frozen=True)
class CollectDebugCommand:
    """Collect versions, settings, metrics, policies, logs, matches, charts and films in one folder.

    Secrets are removed. Missing files are listed; they are not an error.
    """

    dest: Annotated[Path | None, tyro.conf.Positional, optional("DEST")] = None
    """Output folder; by default debug/<time>. Existing files in it are kept."""
    server_log: Annotated[Path | None, optional("FILE")] = None
    """A log of the server to include."""
    godot_log: Annotated[Path | None, optional("FILE")] = None
    """A log of Godot to include."""

    def run(self) -> None:
        """Collect, and print what was found."""
        folder = self.dest or Path("debug", time.strftime("%Y%m%d-%H%M%S"))
        bundle = collect(folder, {"server": self.server_log, "godot": self.godot_log})
        size = sum(path.stat().st_size for path in bundle.written)
        print(f"collected {len(bundle.written)} files, {size / 1e6:.1f} MB, in {folder}")
        for line in bundle.missing:
            print(line)
