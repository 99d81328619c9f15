"""Train an agent that lands a spacecraft: `estragon train scene --preset spacecraft_landing`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

OUTPUT = ["--preset", "spacecraft_landing", "--output", str(Path(__file__).parent)]

if __name__ == "__main__":
    sys.exit(main(["train", "scene", *OUTPUT, *sys.argv[1:]]))
