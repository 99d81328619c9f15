"""Compare an evaluation with a baseline: `estragon judge regress`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

if __name__ == "__main__":
    sys.exit(main(["judge", "regress", *sys.argv[1:]]))
