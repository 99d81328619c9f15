"""The client of Godot RL Agents itself, in an environment of its own, to play against our addon.

Its few packages that differ from ours are installed into a folder that is kept; the heavy ones
(torch and what comes with it) are those of this very environment.
"""

import contextlib
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from estragon.godot.find import require_godot
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import locked

PACKAGES = (
    "godot-rl==0.8.2",
    "gymnasium==1.0.0",
    "numpy==1.26.4",
    "pandas==2.2.3",
    "pytz==2025.2",
    "stable-baselines3==2.4.1",
    "tzdata==2025.2",
)
INSTALL_TIMEOUT_SEC = 600.0
NEWEST_PYTHON = (3, 12)
"""That its numpy has wheels for."""


class Pace(NamedTuple):
    """What the client is asked for."""

    speedup: int
    framerate: int
    """0 for none."""


PACES = (Pace(60, 0), Pace(8, 60))
"""The best of them counts."""


@contextlib.contextmanager
def incumbent_call(
    program: str, project: Path, scene: str, copies: str, *numbers: object
) -> Iterator[list[str]]:
    """The words that call a program beside this one, which plays a scene."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        game = Path(folder) / "game.x86_64"
        words = f'"{require_godot()}" --path "{project}" "{scene}" {copies}'
        game.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        game.chmod(0o755)
        call = [incumbent_python(), Path(__file__).with_name(program), game, port, *numbers]
        yield [str(word) for word in call]


def told(lines: Iterable[str], what: str) -> float:
    """The number that a program says something is; it may say other things before."""
    for line in lines:
        if line.startswith(f"{what}: "):
            return float(line.removeprefix(f"{what}: "))
    raise UserError(f"the client of Godot RL Agents ended without a word about {what}")


def incumbent_python() -> Path:
    """A Python in which `import godot_rl` works; made the first time."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = paths.home() / "incumbent" / f"godot-rl-python{version}"
    python = folder / "bin" / "python"
    whole = folder / "installed.txt"
    with locked(folder.with_suffix(".lock"), timeout_sec=INSTALL_TIMEOUT_SEC):
        if not whole.exists() or whole.read_text() != "\n".join(PACKAGES):
            _run([sys.executable, "-m", "venv", "--clear", str(folder)])
            _run([str(python), "-m", "pip", "install", "-q", "--no-deps", *PACKAGES])
            whole.write_text("\n".join(PACKAGES))
        # The folder outlives the checkout whose packages it was made with.
        (own,) = folder.glob("lib/python*/site-packages")
        (own / "behind_these.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


def _run(words: list[str]) -> None:
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT_SEC
    )
    if done.returncode != 0:
        raise UserError(f"{' '.join(words)}: {done.stderr or done.stdout}")
