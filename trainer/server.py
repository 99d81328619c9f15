"""Starts the live training server from a checkout; the core packages are all it needs."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from estragon.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(["serve", "--output", str(ROOT), *sys.argv[1:]]))
