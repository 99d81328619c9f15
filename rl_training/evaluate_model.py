"""Let a model play, by default the VR course: `estragon judge evaluate`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estragon.cli import main

GIVEN = {word.partition("=")[0] for word in sys.argv}
GAME = [] if GIVEN & {"--game", "--preset"} else ["--preset", "vr_locomotion"]

if __name__ == "__main__":
    sys.exit(main(["judge", "evaluate", *GAME, *sys.argv[1:]]))
