"""Watch the trained agent walk its course: `estragon eval scene`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

MODEL = Path(__file__).parent / "models" / "vr_locomotion_v1_final.zip"

if __name__ == "__main__":
    sys.exit(main(["eval", "scene", "--viz", "--model", str(MODEL), *sys.argv[1:]]))
