"""Check the metrics of a training run: `estragon judge validate`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

LOGS = ["--logs", str(Path(__file__).parent / "logs")]
DEFAULTS = [*LOGS, "--min_reward", "-10.0", "--max_physics_time", "15.0"]

if __name__ == "__main__":
    sys.exit(main(["judge", "validate", *DEFAULTS, *sys.argv[1:]]))
