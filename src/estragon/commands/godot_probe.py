"""`estragon godot probe`: play any game at random, and report what looks wrong."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import tyro

from estragon.envs.launch import Launch
from estragon.envs.probe import format_report, probe
from estragon.envs.sync_nodes import SyncNodes
from estragon.onnx.metadata import check_models
from estragon.support.errors import BAD_INPUT, OK, UserError
from estragon.support.files import ensure_writable, write_json
from estragon.support.options import optional


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
    wire: Literal["tcp", "http"] = "tcp"
    """How to talk to the game: tcp, or http for scenes with the HTTP API of SpaceTime."""
    show_window: bool = False
    """Open a window and play in real time."""
    strict_import: bool = False
    """Reject a project with any broken resource; by default missing decoration is a warning."""
    model: tuple[Path, ...] = ()
    """.onnx files to compare with the game's spaces; those that its scenes name are too."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Write the report to this file."""

    def run(self) -> int:
        """Play, print and write the report; 2 if the game failed."""
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
            wire=self.wire,
            action_repeat=self.action_repeat,
            show_window=self.show_window,
            strict_import=self.strict_import,
        )
        report = probe(launch, self.seconds)
        project = Path(self.env_path)
        named = SyncNodes(project).models() if (project / "project.godot").is_file() else []
        report["models"] = models = check_models([*self.model, *named], report["spaces"])
        print("\n".join(format_report(report)))
        for each in models:
            fits = f"fits {each['fits']}" if each["fits"] else f"does not fit: {each['problem']}"
            print(f"model       {each['file']}: {each['about']}; {fits}")
        if self.json_file is not None:
            write_json(self.json_file, report)
            print(f"wrote {self.json_file}")
        return BAD_INPUT if report["error"] else OK
