"""A display for a Godot that draws: the one that is there, or a virtual one for the while."""

import contextlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from estragon.errors import UserError
from estragon.godot.supervised import SupervisedProcess

START_TIMEOUT_SEC = 20.0
X_SOCKETS = "/tmp/.X11-unix/X"  # noqa: S108 - where X11 puts them


@contextlib.contextmanager
def display(width_px: int = 1920, height_px: int = 1080) -> Iterator[dict[str, str]]:
    """The environment for a Godot with a window; starts Xvfb where there is no display."""
    if has_display():
        yield dict(os.environ)
        return
    program = shutil.which("Xvfb")
    if program is None:
        raise UserError(
            "a picture is wanted, but there is no display and no Xvfb: install it "
            "(apt-get install xvfb), or set DISPLAY"
        )
    screen = ["-screen", "0", f"{width_px}x{height_px}x24"]
    with (
        tempfile.TemporaryDirectory(prefix="estragon-") as folder,
        # -displayfd 1: it picks a free number itself, and says which on its output once it is ready
        SupervisedProcess(
            [program, "-displayfd", "1", *screen, "-nolisten", "tcp"],
            name="Xvfb",
            folder=Path(folder),
            advice="try to run Xvfb :99 by hand, or set DISPLAY",
        ) as server,
    ):
        number = server.wait_for_line("a display", str.isdecimal, START_TIMEOUT_SEC)
        env = os.environ | {"DISPLAY": f":{number}"}
        env.pop("WAYLAND_DISPLAY", None)
        env.pop("XAUTHORITY", None)
        yield env


def has_display() -> bool:
    """Whether a window could be opened here; a DISPLAY that nobody answers does not count."""
    if sys.platform in ("win32", "darwin"):
        return True
    if wayland := os.environ.get("WAYLAND_DISPLAY"):
        path = Path(os.environ.get("XDG_RUNTIME_DIR", "/")) / wayland
        if _answers(str(path)):
            return True
    name = os.environ.get("DISPLAY", "")
    host, _, number = name.rpartition(":")
    if host not in ("", "unix"):
        return True  # another machine's: only opening a window tells
    path_name = X_SOCKETS + number.split(".")[0]
    return bool(number) and (_answers(path_name) or _answers(f"\0{path_name}"))


def _answers(path: str) -> bool:
    if sys.platform == "win32":
        return False
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2.0)
        try:
            client.connect(path)
        except OSError:
            return False
    return True
