"""Which packages for training are here, as JSON; exits 0 if all are, else 1."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.trainers.packages import check

if __name__ == "__main__":
    sys.exit(check())
