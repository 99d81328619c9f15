"""Train an agent that walks a course in VR: `estragon train scene`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

OUTPUT = ["--output", str(Path(__file__).parent)]

if __name__ == "__main__":
    sys.exit(main(["train", "scene", *OUTPUT, *sys.argv[1:]]))
