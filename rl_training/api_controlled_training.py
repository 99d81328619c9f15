"""The same training over the HTTP API: `estragon train scene --api`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

OUTPUT = ["--output", str(Path(__file__).parent)]
NAME = ["--experiment_name", "api_controlled_vr_locomotion"]

if __name__ == "__main__":
    sys.exit(main(["train", "scene", "--api", *OUTPUT, *NAME, *sys.argv[1:]]))
