"""A display for a Godot with a window: the existing one, or a temporary virtual one."""

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from estragon.godot.find import private_program, xvfb_folder
from estragon.godot.process import SupervisedProcess
from estragon.support.errors import UserError

START_TIMEOUT_SEC = 20.0
X_SOCKETS = "/tmp/.X11-unix/X"  # noqa: S108 - where X11 puts them


@contextlib.contextmanager
def display(
    width_px: int = 1920, height_px: int = 1080, *, install: bool = True
) -> Iterator[dict[str, str]]:
    """The environment for a Godot with a window; starts Xvfb where there is no display.

    Virtual displays of one size share one server. Without `install`, a missing Xvfb is an error; by
    default a private one is installed.
    """
    if has_display():
        yield dict(os.environ)
        return
    server = _join_server((width_px, height_px), install=install)
    try:
        env = os.environ | {"DISPLAY": f":{server.number}"}
        env.pop("WAYLAND_DISPLAY", None)
        env.pop("XAUTHORITY", None)
        yield env
    finally:
        _leave_server(server)


def has_display(env: Mapping[str, str] | None = None) -> bool:
    """Whether a window can be opened here; a DISPLAY without a server does not count."""
    env = os.environ if env is None else env
    if sys.platform in ("win32", "darwin"):
        return True
    if wayland := env.get("WAYLAND_DISPLAY"):
        path = Path(env.get("XDG_RUNTIME_DIR", "/")) / wayland
        if _answers(str(path)):
            return True
    name = env.get("DISPLAY", "")
    host, _, number = name.rpartition(":")
    if host not in ("", "unix"):
        return True  # on another machine: only opening a window would show
    path_name = X_SOCKETS + number.split(".")[0]
    return bool(number) and (_answers(path_name) or _answers(f"\0{path_name}"))


def find_xvfb() -> Path | None:
    """The system's Xvfb, else the private copy; None if there is neither."""
    if program := shutil.which("Xvfb"):
        return Path(program)
    return private_program(xvfb_folder())


def require_xvfb() -> Path:
    """The Xvfb to use, installing a private copy where there is none."""
    if (program := find_xvfb()) is not None:
        return program
    from estragon.godot.install import install_xvfb

    try:
        return install_xvfb()
    except UserError as error:
        raise UserError(
            f"drawing needs a display or Xvfb, and there is neither: {error}"
        ) from error


def check_xvfb(program: Path) -> None:
    """Start an Xvfb; a UserError says why it does not start."""
    _Server(program, (64, 64)).close()


class _Server:
    """A running Xvfb, shared by all users of its size in this process."""

    def __init__(self, program: Path, size: tuple[int, int]) -> None:
        # -displayfd 1: it picks a free number, and prints it once it is ready.
        # -noreset: it keeps its state between one game and the next.
        words = ["-displayfd", "1", "-noreset", "-nolisten", "tcp"]
        words += ["-screen", "0", f"{size[0]}x{size[1]}x24"]
        sockets = Path(X_SOCKETS).parent
        if not os.access(sockets if sockets.exists() else sockets.parent, os.W_OK):
            words += ["-nolisten", "unix"]  # the abstract socket of the same name is enough
        self.size = size
        self.owner = os.getpid()
        self.users = 0
        with contextlib.ExitStack() as opened:
            folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="estragon-"))
            self.process = opened.enter_context(
                SupervisedProcess(
                    [program, *words],
                    name="Xvfb",
                    folder=Path(folder),
                    advice=f"try to run {program} :99 by hand, or set DISPLAY",
                )
            )
            self.number = self.process.wait_for_line("a display", str.isdecimal, START_TIMEOUT_SEC)
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Stop it."""
        self._opened.close()


_servers: dict[tuple[int, int], _Server] = {}
_servers_lock = threading.Lock()


def _join_server(size: tuple[int, int], *, install: bool) -> _Server:
    with _servers_lock:
        server = _servers.get(size)
        # A fork's parent may end before the fork does; a server may have been killed.
        if server is None or server.owner != os.getpid() or server.process.status is not None:
            program = require_xvfb() if install else find_xvfb()
            if program is None:
                raise UserError(
                    "there is no display and no Xvfb: run estragon godot install, or set DISPLAY"
                )
            server = _servers[size] = _Server(program, size)
        server.users += 1
        return server


def _leave_server(server: _Server) -> None:
    if server.owner != os.getpid():
        return
    with _servers_lock:
        server.users -= 1
        if server.users:
            return
        if _servers.get(server.size) is server:
            del _servers[server.size]
    server.close()


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
