"""Frames that nobody had to draw, and a Godot that only does what a test wants."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from estragon.show.frames import frame_path
from tests.godot.staging import write_program

SIZE = (80, 64)

FAKE = """\
exec {python} - "$@" <<'END'
import sys, time
from pathlib import Path
words = dict(word.lstrip("-").split("=", 1) for word in sys.argv if "=" in word)
if "--version" in sys.argv:
    print("4.6.stable.fake")
    sys.exit()
folder, first = Path(words["frames-to"]), int(words["first-frame"])
def draw(number, size={size}):
    from PIL import Image
    Image.new("RGB", size).save(folder / f"frame_{{number:06d}}.png")
print("this is what it said last", flush=True)
{body}
END
"""


def write_frames(folder: Path, count: int, size: tuple[int, int] = SIZE) -> list[Path]:
    """Frames of one colour each."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        Image.new("RGB", size, (10 * number % 256, 80, 160)).save(frame_path(folder, number))
    return [frame_path(folder, number) for number in range(count)]


def fake_godot(path: Path, body: str, size: tuple[int, int] = SIZE) -> Path:
    """A Godot that runs this Python; `draw(number)` writes a frame."""
    return write_program(path, FAKE.format(python=sys.executable, body=body, size=size))


def pixels(path: Path) -> np.ndarray:
    """A picture: (height, width, 3) uint8."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))
