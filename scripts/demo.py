"""Output as a training run has it, for trying out who reads it: `estragon demo`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
