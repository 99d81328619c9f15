"""A SpaceTime game that runs for people and programs: started, watched, stopped."""

import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from estragon.godot.display import display
from estragon.godot.http import HOST, free_port
from estragon.godot.process import GodotProcess
from estragon.godot.project import ready_project
from estragon.spacetime.client import GodotAPIClient
from estragon.support import paths
from estragon.support.errors import UserError

START_SEC = 60.0
POLL_SEC = 0.2
TICKS_PER_SECOND = 90


class RunningScene(NamedTuple):
    """A game that serves its HTTP API."""

    client: GodotAPIClient
    process: GodotProcess


@contextlib.contextmanager
def running_scene(
    scene: str,
    port: int,
    *,
    window: bool = False,
    token: str | None = None,
    parameters: Mapping[str, object] | None = None,
    model: Path | None = None,
) -> Iterator[RunningScene]:
    """Start a game with these values of its parameters, and stop it at the end of the block.

    `model` is the ONNX file of a policy that plays until a client takes control.
    """
    project = ready_project(paths.godot_project(), scene)
    port = free_port(port)
    token = secrets.token_urlsafe(32) if token is None else token
    with contextlib.ExitStack() as opened:
        env = opened.enter_context(display()) if window else dict(os.environ)
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="estragon-")))
        words: list[str | Path] = ["--path", project.folder]
        if window:
            words += ["--rendering-driver", "opengl3"]
        else:
            words += ["--headless", "--disable-render-loop"]
            words += ["--fixed-fps", str(TICKS_PER_SECOND)]
        words += [scene, "--http-api", f"--http-port={port}"]
        words += [f"--parameter.{name}={value}" for name, value in (parameters or {}).items()]
        if model is not None:
            words.append(f"--onnx_model_path={model.absolute()}")
        process = opened.enter_context(
            GodotProcess(words, folder=folder, env=env | {"API_TOKEN": token}, name="game")
        )
        client = opened.enter_context(contextlib.closing(GodotAPIClient(port, token)))
        process.wait_for(f"it to answer on {HOST}:{port}", client.health_check, START_SEC)
        yield RunningScene(client, process)


def wait_until_loaded(client: GodotAPIClient, timeout_sec: float = START_SEC) -> None:
    """Wait for the scene that was asked for."""
    end = time.monotonic() + timeout_sec
    while client.get_scene_state()["status"] != "loaded":
        if time.monotonic() > end:
            raise UserError(f"timed out after {timeout_sec:g} s waiting for the scene")
        time.sleep(POLL_SEC)


def serve(
    scene: str,
    port: int,
    *,
    window: bool,
    seconds: float | None,
    parameters: Mapping[str, object] | None = None,
    model: Path | None = None,
) -> int:
    """Run a scene until Ctrl-C, or for so long; 1 if the game ends by itself."""
    given = os.environ.get("API_TOKEN")
    token = given or secrets.token_urlsafe(32)
    with running_scene(
        scene, port, window=window, token=token, parameters=parameters, model=model
    ) as (client, process):
        print(f"http://{HOST}:{client.port} serves {scene}; Ctrl-C stops it", flush=True)
        if not given:
            print(f"API_TOKEN={token}", flush=True)
        end = None if seconds is None else time.monotonic() + seconds
        with contextlib.suppress(KeyboardInterrupt):
            while process.status is None:
                if end is not None and time.monotonic() > end:
                    return 0
                time.sleep(POLL_SEC)
            raise process.error(process.how_it_ended())
    return 0
