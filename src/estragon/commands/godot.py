"""`estragon godot`: the engine, and any game in it."""

import dataclasses
import shutil
import sys
from pathlib import Path
from typing import Annotated

import tyro

from estragon.godot.display import has_display
from estragon.godot.doctor import examine
from estragon.godot.find import check_version, find_godot, require_godot
from estragon.godot.install import install_private, install_xvfb
from estragon.godot.project import ready_project
from estragon.support.errors import BAD_INPUT, CHECK_FAILED, OK, UserError
from estragon.support.files import ensure_writable, write_json
from estragon.support.options import optional


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


@dataclasses.dataclass(frozen=True)
class GodotPathCommand:
    """Print the path of the Godot in use, and nothing else."""

    def run(self) -> None:
        """Find and print."""
        print(find_godot())


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


@dataclasses.dataclass(frozen=True)
class GodotDoctorCommand:
    """Check that Godot is installed and starts, with and without a window."""

    def run(self) -> int:
        """Print one line per check; 0 if a match could be played, 1 if not."""
        code = OK
        for finding in examine():
            print(finding, flush=True)
            if finding.needed and not finding.good:
                code = CHECK_FAILED
        return code


@dataclasses.dataclass(frozen=True)
class GodotProbeCommand:
    """Play any game that supports the Godot RL Agents protocol at random, and report problems."""

    env_path: tyro.conf.Positional[str]
    """A project folder, a .pck or an exported game; or debug, to wait for the editor."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play, for example res://training.tscn; by default the game's main scene."""
    seconds: float = 10.0
    """How long to play."""
    action_repeat: Annotated[int | None, optional("N")] = None
    """Physics ticks per action; by default the setting of the game's Sync node."""
    n_parallel: int = 1
    """Number of game processes."""
    seed: int = 0
    """Seed of the game and of the actions."""
    port: Annotated[int | None, optional("PORT")] = None
    """Port to listen on; by default 11008 for the editor, else a free one."""
    show_window: bool = False
    """Open a window and play in real time."""
    strict_import: bool = False
    """Reject a project with any broken resource; by default missing decoration is a warning."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Write the report to this file."""

    def run(self) -> int:
        """Play, print and write the report; 2 if the game failed."""
        from estragon.envs.launch import Launch
        from estragon.envs.probe import format_report, probe

        if not 0.0 < self.seconds <= 86400.0:
            raise UserError(f"--seconds: expected more than 0, at most 86400, got {self.seconds}")
        if self.json_file is not None:
            ensure_writable(self.json_file)
        launch = Launch(
            self.env_path,
            scene=self.scene,
            n_parallel=self.n_parallel,
            seed=self.seed,
            port=self.port,
            action_repeat=self.action_repeat,
            show_window=self.show_window,
            strict_import=self.strict_import,
        )
        report = probe(launch, self.seconds)
        print("\n".join(format_report(report)))
        if self.json_file is not None:
            write_json(self.json_file, report)
            print(f"wrote {self.json_file}")
        return BAD_INPUT if report["error"] else OK
