"""Train an agent that navigates in VR, or evaluate one: `estragon train spacetime`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from estragon.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", "spacetime", *sys.argv[1:]]))
