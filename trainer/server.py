"""Starts the live training server from a checkout; the core packages are all it needs."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = ("numpy", "websockets", "msgspec", "tyro", "rich", "platformdirs", "filelock")


def run() -> int:
    """Serve; 2 with one line on what to install where a core package is missing."""
    if sys.version_info < (3, 11):  # noqa: UP036 - a checkout runs under any Python
        return refuse("needs Python 3.11 or newer, this is " + sys.version.split()[0])
    sys.path.insert(0, str(ROOT / "src"))
    try:
        for package in CORE:
            __import__(package)
    except ModuleNotFoundError as error:
        return refuse(f"{error.name} is not installed: run pip install {' '.join(CORE)}")
    from estragon.cli import main

    return main(["serve", "--output", str(ROOT), *sys.argv[1:]])


def refuse(why: str) -> int:
    """Say why it does not start."""
    print("estragon: " + why, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(run())
