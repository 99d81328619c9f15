"""A SpaceTime game that runs for people and programs: started, watched, stopped."""

import contextlib
import os
import secrets
import shutil
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
from estragon.support.files import ensure_writable

START_SEC = 60.0
POLL_SEC = 0.2
TICKS_PER_SECOND = 90
FRAME = "frame_{:06d}.png"
"""As `estragon encode` expects it."""


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
        words += _options(parameters, model)
        process = opened.enter_context(
            GodotProcess(words, folder=folder, env=env | {"API_TOKEN": token}, name="game")
        )
        client = opened.enter_context(contextlib.closing(GodotAPIClient(port, token)))
        process.wait_for(f"it to answer on {HOST}:{port}", client.health_check, START_SEC)
        yield RunningScene(client, process)


def record_scene(
    scene: str,
    folder: Path,
    seconds: float,
    *,
    fps: int,
    parameters: Mapping[str, object] | None = None,
    model: Path | None = None,
) -> int:
    """Draw so many seconds of a game into PNG files, however long that takes; returns how many.

    A frame is 1/fps s of the game's time. Without a model, nobody plays.
    """
    project = ready_project(paths.godot_project(), scene)
    ensure_writable(folder / FRAME.format(0))
    if any(folder.glob("frame_*.png")):
        raise UserError(f"{folder} has frames already; choose another folder")
    with display() as env, tempfile.TemporaryDirectory(prefix="estragon-") as drawn:
        words: list[str | Path] = ["--path", project.folder, "--rendering-driver", "opengl3"]
        words += ["--fixed-fps", str(fps), "--write-movie", Path(drawn) / "frame.png"]
        words += ["--quit-after", str(round(seconds * fps)), scene]
        words += _options(parameters, model)
        with GodotProcess(words, folder=Path(drawn), env=env, name="game") as process:
            while process.status is None:
                time.sleep(POLL_SEC)
            if process.status:
                raise process.error(process.how_it_ended())
        found = sorted(Path(drawn).glob("frame*.png"))
        for number, path in enumerate(found):
            shutil.move(path, folder / FRAME.format(number))
    return len(found)


def _options(parameters: Mapping[str, object] | None, model: Path | None) -> list[str]:
    words = [f"--parameter.{name}={value}" for name, value in (parameters or {}).items()]
    return words + ([] if model is None else [f"--onnx_model_path={model.absolute()}"])


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
