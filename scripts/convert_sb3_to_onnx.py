"""Write the policy of a Stable-Baselines3 model as ONNX: `estragon export sb3`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

if __name__ == "__main__":
    sys.exit(main(["export", "sb3", *sys.argv[1:]]))
