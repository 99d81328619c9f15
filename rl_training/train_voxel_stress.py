"""Train an agent that looks for slow voxel chunks: `estragon train scene --preset voxel_stress`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

OUTPUT = ["--preset", "voxel_stress", "--output", str(Path(__file__).parent)]

if __name__ == "__main__":
    sys.exit(main(["train", "scene", *OUTPUT, *sys.argv[1:]]))
