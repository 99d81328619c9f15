#!/usr/bin/env python3
"""Make .venv beside pyproject.toml and install Estragon into it, in the versions tested together.

Standard library only. Quick when nothing changed, safe when two run at once, and mends what an
interrupted run left behind.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 11), (3, 13)
STAMP = "estragon-setup"
"""In .venv: what it was made from, or UNFINISHED; in a venv made by hand there is none."""
LOCK = "estragon-setup.lock"
UNFINISHED = "unfinished"
LAST_LINES = 20


class SetupError(Exception):
    """What happened and what to do, for the person at the keyboard."""


class KilledError(SetupError):
    """A program was ended from outside and may have left anything half done."""


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, set up, and turn failures into one exit status."""
    parser = argparse.ArgumentParser(description="Make .venv and install Estragon into it.")
    parser.add_argument(
        "--extras", default="all", help="comma-separated extras of pyproject.toml, or '' for none"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of pyproject.toml")
    options = parser.parse_args(arguments)
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        print(
            f"Estragon needs Python 3.{OLDEST[1]} to 3.{NEWEST[1]}, this is "
            f"{python_version()} ({sys.executable}); choose one: make setup PYTHON=python3.11",
            file=sys.stderr,
        )
        return 2
    try:
        set_up(options.root.resolve(), options.extras.replace(" ", ""))
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"Setup failed: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; the next run starts over.", file=sys.stderr)
        return 130
    return 0


def set_up(root: Path, extras: str) -> None:
    """Bring `root/.venv` up to date with pyproject.toml, constraints.txt, Python and `extras`."""
    venv = root / ".venv"
    if is_current(venv, stamp_of(root, extras)):
        return
    if venv.is_symlink():
        raise SetupError(
            f"Setup failed: .venv is a link to {venv.resolve()}, which may be another folder's; "
            "remove the link."
        )
    venv.mkdir(exist_ok=True)
    with locked(venv / LOCK) as lock:
        stamp = stamp_of(root, extras)
        if is_current(venv, stamp):  # by the run this one waited for
            return
        reason = reason_to_remake(venv, stamp)
        write_stamp(venv, UNFINISHED)
        if reason:
            print(f"Making .venv with Python {python_version()} ({reason})", flush=True)
            empty(venv)
            run(
                [base_python(), "-m", "venv", str(venv)],
                lock,
                "could not make .venv; on Debian and Ubuntu install python3-venv, then try again",
            )
        what = f"estragon[{extras}]" if extras else "estragon"
        hint = " (about 2 minutes the first time)" if reason and extras else ""
        print(f"Installing {what}{hint}", flush=True)
        install(root, venv, extras, lock)
        write_stamp(venv, stamp)
    print(f"Ready: {python_of(venv)}", flush=True)


def stamp_of(root: Path, extras: str) -> str:
    """One line for what is installed, one for what a venv cannot survive a change of."""
    digest = hashlib.sha256()
    for part in (
        (root / "pyproject.toml").read_bytes(),
        (root / "constraints.txt").read_bytes(),
        python_version().encode(),
        extras.encode(),
    ):
        digest.update(hashlib.sha256(part).digest())
    return f"{digest.hexdigest()}\n{sys.version_info[0]}.{sys.version_info[1]} {root}\n"


def is_current(venv: Path, stamp: str) -> bool:
    """Whether a finished setup left exactly this stamp and its Python is still there."""
    return read_stamp(venv) == stamp and python_of(venv).exists()


def reason_to_remake(venv: Path, stamp: str) -> str:
    """Why the venv has to be made from nothing, or "" where pip can go on from what is there."""
    left = read_stamp(venv)
    if left == UNFINISHED:
        return "the last setup was interrupted"
    if not (venv / "pyvenv.cfg").is_file():
        return "there is none yet"
    if not python_of(venv).exists():
        return "its Python is gone"
    if left and left.splitlines()[1:] != stamp.splitlines()[1:]:
        return "it was made for another folder or another Python"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}."
    lines = (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    versions = [line.split("=")[1].strip() for line in lines if line.startswith("version")]
    if not any(f"{found}.".startswith(version) for found in versions):
        return "it was made with another Python"
    packages = [venv / "Lib" / "site-packages", *venv.glob("lib/python*/site-packages")]
    if not any((folder / "pip").is_dir() for folder in packages):
        return "it has no pip"
    return ""


def install(root: Path, venv: Path, extras: str, lock: IO[bytes]) -> None:
    """Install the project in place, with its extras, under the constraints."""
    target = f"{root}[{extras}]" if extras else str(root)
    pip = [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # Most of what is installed is never imported: Python compiles the rest when it is.
    quick = ["install", "-q", "--no-compile"]
    command = [*pip, *quick, "-c", str(root / "constraints.txt"), "-e", target]
    try:
        run(
            command,
            lock,
            "could not install Estragon; after a network failure run it again; where a package "
            "has no build for this computer, try another Python: make setup PYTHON=python3.11",
        )
    except KilledError:
        raise
    except SetupError:
        # pip gave up by itself and has put back what it had begun: no need to start from nothing.
        (venv / STAMP).unlink(missing_ok=True)
        raise


def run(command: list[str], lock: IO[bytes], advice: str) -> None:
    """Run to the end without output; a failure shows the last lines of it, then the advice."""
    import subprocess  # not needed, and so not loaded, when nothing changed

    # The child holds the lock too: should this process be killed, the next one waits for pip.
    kept = (lock.fileno(),) if os.name == "posix" else ()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=kept,
        check=False,
    )
    if done.returncode < 0:
        raise KilledError(f"Setup failed: signal {-done.returncode} ended it; run it again.")
    if done.returncode > 0:
        last = [line for line in done.stdout.splitlines() if line.strip()][-LAST_LINES:]
        raise SetupError("\n".join([*last, f"Setup failed: {advice}."]))


@contextmanager
def locked(path: Path) -> Iterator[IO[bytes]]:
    """Hold the only lock on `path`; wait, and say so, while another run holds it."""
    with path.open("ab") as lock:
        if not try_lock(lock):
            print("Another setup is at work in this folder; waiting for it", flush=True)
            while not try_lock(lock):
                time.sleep(0.2)
        yield lock  # closing the file gives it back


if sys.platform == "win32":
    import msvcrt

    def try_lock(lock: IO[bytes]) -> bool:
        """Take the lock if it is free."""
        lock.seek(0)
        try:
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(lock: IO[bytes]) -> bool:
        """Take the lock if it is free."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def empty(venv: Path) -> None:
    """Remove everything but the lock, which is held, and the stamp, which says unfinished."""
    import shutil

    for entry in venv.iterdir():
        if entry.name in (LOCK, STAMP):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def read_stamp(venv: Path) -> str:
    """What the last setup left, or ""."""
    try:
        return (venv / STAMP).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def write_stamp(venv: Path, text: str) -> None:
    """Put the stamp in place whole."""
    temporary = venv / f"{STAMP}.new"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(venv / STAMP)


def python_of(venv: Path) -> Path:
    """The venv's interpreter."""
    return venv / "Scripts" / "python.exe" if os.name == "nt" else venv / "bin" / "python"


def base_python() -> str:
    """The interpreter to make a venv with: never one inside the venv that is being remade."""
    return sys._base_executable  # type: ignore[attr-defined,no-any-return]  # noqa: SLF001


def python_version() -> str:
    """The running Python, as 3.11.7."""
    return ".".join(str(part) for part in sys.version_info[:3])


if __name__ == "__main__":
    sys.exit(main())
