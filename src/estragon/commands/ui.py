"""`estragon ui`: the controller, a web page over projects, runs, metrics, matches and exports."""

import contextlib
import dataclasses
import socket
import sys
import webbrowser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from estragon.support.errors import UserError
from estragon.support.files import locked, read_json, write_json
from estragon.support.options import check_span, optional

if TYPE_CHECKING:
    from estragon.controller.forms import Form

PORT = 8790
OPENING = "open.html"
OF_A_RESUME = {"resume", "run_id", "resume_model_path", "restore", "inference", "eval", "episodes"}


@dataclasses.dataclass(frozen=True)
class UiCommand:
    """Open the controller in the browser: a page on this machine, for this user only.

    Training continues when the page or this command is closed, and is found again.
    """

    project: Annotated[Path | None, tyro.conf.Positional, optional("FOLDER")] = None
    """The folder of a Godot game to open."""
    port: Annotated[int | None, optional("PORT")] = None
    """Port to listen on, on 127.0.0.1 only; 0: any free port; default: 8790, if it is free."""
    root: Path = dataclasses.field(default_factory=Path.home)
    """Folder that projects created or opened in the page must be in; default: your home folder."""
    browser: bool = True
    """Open the browser."""

    def run(self) -> int:
        """Serve until interrupted."""
        from estragon.controller.guard import Guard, opening_page
        from estragon.controller.project import Project, Workspace

        check_span("--port", self.port, 0, 65535)
        workspace = Workspace(self.root)
        if self.project is not None:
            workspace.use(Project.open(self.project))
        running = workspace.folder / "server.json"
        with contextlib.ExitStack() as alone:
            try:
                alone.enter_context(locked(workspace.folder / "server.lock", timeout_sec=0.0))
            except UserError:
                url = str(read_json(running, dict[str, str])["url"])
                print(f"the controller is open already: {url}", file=sys.stderr)
                self._open(workspace.folder / OPENING)
                return 0
            port = _free_port(self.port)
            url, token = f"http://127.0.0.1:{port}", workspace.new_token()
            write_json(running, {"url": url})
            workspace.write_private(OPENING, opening_page(url, token))
            print(f"{url}   (token: {workspace.folder / 'token'}; Ctrl-C ends)", file=sys.stderr)
            from estragon.controller.page import serve
            from estragon.controller.state import State

            state, guard = State(workspace, make_forms), partial(Guard, token=token)
            serve(state, port, guard, partial(self._open, workspace.folder / OPENING))
        return 0

    def _open(self, page: Path) -> None:
        if self.browser:
            webbrowser.open(page.as_uri())


def _free_port(wanted: int | None) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT if wanted is None else wanted))
        except OSError as error:
            if wanted is None:
                return _free_port(0)
            raise UserError(f"--port {wanted}: {error.strerror}; choose another") from error
        return int(probe.getsockname()[1])


def make_forms() -> tuple["Form", ...]:
    """The trainers of the page; their options take a while to load, so not before the page."""
    from estragon.commands.live import LiveCommand
    from estragon.commands.train_rllib import TrainRllibCommand
    from estragon.commands.train_sb3 import TrainSb3Command
    from estragon.commands.train_scene import TrainSceneCommand
    from estragon.commands.train_spacetime import TrainSpacetimeCommand
    from estragon.commands.train_tag import TrainTagCommand
    from estragon.controller.forms import Form

    return (
        Form(
            "sb3",
            "SB3",
            ("train", "sb3"),
            TrainSb3Command,
            ("algo", "timesteps", "experiment_name", "scene", "n_parallel", "seed"),
            frozenset({*OF_A_RESUME, "port", "trust", "experiment_dir"}),
            underscores=True,
            given={"env_path": ".", "algo": "ppo", "save_checkpoint_frequency": 50_000},
        ),
        Form(
            "rllib",
            "RLlib",
            ("train", "rllib"),
            TrainRllibCommand,
            ("algo", "timesteps", "experiment_name", "scene", "num_workers", "seed"),
            frozenset({*OF_A_RESUME, "port", "experiment_dir", "stop_file"}),
            underscores=True,
            given={"env_path": ".", "config_file": ".rlcontroller/rllib_config.yaml"},
        ),
        Form(
            "tag",
            "Tag",
            ("train", "tag"),
            TrainTagCommand,
            ("steps", "role", "opponent", "layout", "rules", "seed"),
            frozenset({*OF_A_RESUME, "output"}),
        ),
        Form(
            "live",
            "Live tag",
            ("live",),
            LiveCommand,
            ("mode", "seconds", "arenas", "layout", "seed"),
            frozenset({*OF_A_RESUME, "output"}),
        ),
        Form(
            "spacetime",
            "VR navigation",
            ("train", "spacetime"),
            TrainSpacetimeCommand,
            ("preset", "timesteps", "seed"),
            frozenset({*OF_A_RESUME, "port", "launch"}),
            given={"output": "spacetime", "preset": "quick_test"},
        ),
        Form(
            "scene",
            "VR scenes",
            ("train", "scene"),
            TrainSceneCommand,
            ("preset", "timesteps", "num_envs", "experiment_name", "seed"),
            frozenset({*OF_A_RESUME, "port", "api"}),
            underscores=True,
        ),
    )
